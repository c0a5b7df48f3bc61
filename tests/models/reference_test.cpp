#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/nn/module.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "tests/models/check.h"

/// The zoo against Python's models: the number of parameters that torchvision publishes, and where
/// `bench/peers/export_reference.py FOLDER` has written weights, input and output of each, the results. Configured with
/// -DSINTER_REFERENCES=FOLDER, which registers those tests; a model without its file there fails.
namespace sinter::test {
namespace {

std::map<std::string, at::Tensor> read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::map<std::string, at::Tensor> tensors;
  for (const auto& item : torch::jit::pickle_load(bytes).toGenericDict()) {
    tensors[item.key().toStringRef()] = item.value().toTensor();
  }
  return tensors;
}

/// Moves tensors into what `named` lists, by name and shape; what both leave over is an error.
void load(const torch::OrderedDict<std::string, at::Tensor>& named, std::map<std::string, at::Tensor>& tensors) {
  for (const auto& item : named) {
    const auto found = tensors.find(item.key());
    ASSERT_NE(found, tensors.end()) << item.key() << " is not in the file";
    ASSERT_EQ(found->second.sizes(), item.value().sizes()) << item.key();
    item.value().copy_(found->second);
    tensors.erase(found);
  }
}

class References : public ::testing::TestWithParam<std::string> {
 protected:
  static std::filesystem::path path() {
    const char* folder = std::getenv("SINTER_REFERENCES");
    return std::filesystem::path(folder == nullptr ? "" : folder) / (GetParam() + ".pt");
  }

 private:
  at::NoGradGuard no_grad_;
};

TEST_P(References, python_gives_the_same_result_with_the_same_weights) {
  ASSERT_TRUE(std::filesystem::exists(path())) << path() << " is missing: bench/peers/export_reference.py writes it, "
                                               << "SINTER_REFERENCES names its folder";
  auto tensors = read(path());
  const at::Tensor input = tensors.extract("input").mapped();
  const at::Tensor output = tensors.extract("output").mapped();
  const bench::Model model = bench::build(bench::find_model(GetParam()));
  load(model.module->named_parameters(), tensors);
  load(model.module->named_buffers(), tensors);
  for (const auto& [name, tensor] : tensors) ADD_FAILURE() << name << " is in the file and not in the model";

  const at::Tensor result = model.forward({input});
  ASSERT_EQ(result.sizes(), output.sizes());
  const double error = (result - output).abs().max().item<double>();
  const double size = output.abs().max().item<double>();
  std::cout << GetParam() << ": largest error " << error << " of " << size << "\n";
  EXPECT_LE(error, 1e-5 * size);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const bench::ModelRow& row : bench::models()) all.emplace_back(row.name);
  return all;
}

struct Published {
  const char* model;
  int64_t parameters;
};
void PrintTo(const Published& published, std::ostream* out) { *out << published.model; }

class Parameters : public ::testing::TestWithParam<Published> {};

TEST_P(Parameters, are_as_many_as_torchvision_publishes) {
  const bench::Model model = bench::build(bench::find_model(GetParam().model));
  int64_t count = 0;
  for (const at::Tensor& parameter : model.module->parameters()) count += parameter.numel();
  EXPECT_EQ(count, GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(Zoo, Parameters,
                         ::testing::Values(Published{"resnet50", 25557032}, Published{"vgg16", 138357544},
                                           Published{"vit_b16", 86567656}, Published{"swin_t", 28288354},
                                           Published{"swin_b", 87768224}, Published{"convnext_l", 197767336}),
                         [](const auto& parameter) { return std::string(parameter.param.model); });

INSTANTIATE_TEST_SUITE_P(Python, References, ::testing::ValuesIn(names()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace sinter::test
