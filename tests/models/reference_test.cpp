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

/// The zoo against Python's models. `bench/peers/export_reference.py FOLDER` writes weights, input and output of each;
/// SINTER_REFERENCES=FOLDER names them here. Skips where there are none.
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
    return folder == nullptr ? "" : std::filesystem::path(folder) / (GetParam() + ".pt");
  }

 private:
  at::NoGradGuard no_grad_;
};

TEST_P(References, python_gives_the_same_result_with_the_same_weights) {
  if (!std::filesystem::exists(path())) GTEST_SKIP() << "needs bench/peers/export_reference.py and SINTER_REFERENCES";
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

INSTANTIATE_TEST_SUITE_P(Python, References, ::testing::ValuesIn(names()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace sinter::test
