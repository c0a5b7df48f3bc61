#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/nn/module.h>

#include <limits>

#include "tests/model_file/cases.h"

namespace sinter::test {
namespace {

class ModelFiles : public ::testing::TestWithParam<FileCase> {};

TEST_P(ModelFiles, give_what_python_gives) { expect_as_python(GetParam(), at::kCPU, Mode::Default); }

INSTANTIATE_TEST_SUITE_P(Exported, ModelFiles, ::testing::ValuesIn(file_cases()),
                         [](const auto& test) { return test.param.file.substr(0, test.param.file.find('.')); });

/// The message of the UserError that a call throws.
template <class Call>
std::string refusal(const Call& call) {
  try {
    (void)call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(ModelFile, compiles_from_its_path_and_computes_once_what_depends_on_weights_alone) {
  const torch::NoGradGuard no_grad;
  const auto fast = compile(data_file("convnet.pt2"));
  const Saved saved = saved_case("convnet.pt2", at::kCPU);
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(saved.args[0]), saved.result, 1e-6));
  EXPECT_NE(fast.report().text().find("x0 "), std::string::npos) << fast.report();  // a kernel of no call
  EXPECT_EQ(fast.report().function, "ConvNet");
}

thread_local int copies = 0;

/// How often a call runs aten::_to_copy.
template <class Call>
int copies_of(const Call& call) {
  copies = 0;
  const auto count = [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
    copies += std::string_view(function.name()) == "aten::_to_copy" ? 1 : 0;
    return nullptr;
  };
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(count));
  (void)call();
  at::removeCallback(handle);
  return copies;
}

/// On a device without data: what a call does there is what it does on a GPU.
TEST(ModelFile, makes_constants_of_the_host_once) {
  const torch::NoGradGuard no_grad;
  Model model(data_file("host_made.pt2"));
  model.to(at::kMeta);
  const at::Tensor x = at::randn({4, 8}, at::kMeta);
  // Three of six copies stay: of what the program writes to on the device, or on the host after a copy.
  EXPECT_EQ(copies_of([&] { return model.forward({x}); }), 3);
}

TEST(ModelFile, is_the_same_work_whichever_way_it_was_saved) {
  const Work work = work_of_file("convnet.pt2", at::kCPU);
  for (const char* file : {"traced.pt", "frozen.pt"}) EXPECT_EQ(work_of_file(file, at::kCPU), work) << file;
}

TEST(ModelFile, of_a_state_dict_has_the_weights_and_buffers_of_its_model_in_their_order) {
  const c10::IValue saved = read_saved(data_file("state.pt"));
  const auto traced = torch::jit::load(data_file("traced.pt"));
  std::map<std::string, at::Tensor> wanted;
  for (const auto& item : traced.named_parameters()) wanted[item.name] = item.value;
  for (const auto& item : traced.named_buffers()) wanted[item.name] = item.value;
  std::vector<std::string> names;
  for (const auto& item : saved.toGenericDict()) {
    names.push_back(item.key().toStringRef());
    ASSERT_EQ(wanted.count(names.back()), 1U) << names.back();
    EXPECT_TRUE(at::equal(item.value().toTensor(), wanted.at(names.back()))) << names.back();
  }
  EXPECT_EQ(names.size(), wanted.size());
  const std::vector<std::string> first{"stem.weight", "stem.bias", "layers.0.conv.weight", "layers.0.bn.weight"};
  EXPECT_EQ(std::vector(names.begin(), names.begin() + 4), first);
  EXPECT_EQ(wanted.count("layers.1.bn.num_batches_tracked"), 1U);
}

TEST(ModelFile, takes_every_size_in_the_range_of_a_symbol_and_refuses_others) {
  const torch::NoGradGuard no_grad;
  const auto fast = compile(data_file("sizes.pt2"));
  const auto calls = [&](const at::Tensor& x) { return refusal([&] { return fast(x); }); };
  EXPECT_EQ(fast(at::ones({2, 8})).toTupleRef().elements()[2].toTensor().sizes(), c10::IntArrayRef({3, 3}));
  EXPECT_EQ(fast(at::ones({64, 8})).toTupleRef().elements()[2].toTensor().sizes(), c10::IntArrayRef({65, 3}));
  EXPECT_NE(calls(at::ones({65, 8})).find("'x' is Float[65,8], the file was exported for Float["), std::string::npos);
  EXPECT_NE(calls(at::ones({4, 7})).find("dynamic_shapes"), std::string::npos);
  EXPECT_NE(calls(at::ones({4})).find("'x' is Float[4]"), std::string::npos);
  EXPECT_NE(calls(at::ones({4, 8}, at::kDouble)).find("'x' is Double[4,8]"), std::string::npos);
}

TEST(ModelFile, refuses_arguments_that_the_model_does_not_take) {
  const torch::NoGradGuard no_grad;
  const Model model{std::filesystem::path(data_file("nested.pt2"))};
  const Saved saved = saved_case("nested.pt2", at::kCPU);
  const auto with = [&](const char* name, c10::IValue value) {
    Kwargs kwargs = saved.kwargs;
    kwargs.values[name] = std::move(value);
    return refusal([&] { return model.forward(saved.args, kwargs); });
  };
  EXPECT_NE(with("factor", 4.0).find("'factor' was exported as a constant"), std::string::npos);
  EXPECT_NE(with("fcator", 4.0).find("no argument named 'fcator'"), std::string::npos);
  EXPECT_NE(refusal([&] { return model(saved.args[0]); }).find("argument 1 (extra) is missing"), std::string::npos);
  EXPECT_NE(refusal([&] { return model(saved.args[0], 3); }).find("argument 1 (extra) must be a dict"),
            std::string::npos);
}

TEST(ModelFile, leaves_out_what_was_exported_as_a_constant) {
  const torch::NoGradGuard no_grad;
  const Model model{std::filesystem::path(data_file("nested.pt2"))};
  Saved saved = saved_case("nested.pt2", at::kCPU);
  saved.kwargs.values.erase("factor");
  EXPECT_TRUE(same(model.forward(saved.args, saved.kwargs), saved.result, 1e-6));
}

TEST(ModelFile, converts_its_weights_before_the_first_call_only) {
  const torch::NoGradGuard no_grad;
  Model model{std::filesystem::path(data_file("convnet.pt2"))};
  model.to(at::kDouble);
  const Saved saved = saved_case("convnet.pt2", at::kCPU);
  const at::Tensor wide = model(saved.args[0].toTensor().to(at::kDouble)).toTensor();
  EXPECT_EQ(wide.scalar_type(), at::kDouble);
  EXPECT_LT((wide - saved.result.toTensor()).abs().max().item<double>(), 1e-5);
  EXPECT_NE(refusal([&] { return model.to(at::kFloat); }).find("before its first call"), std::string::npos);
}

TEST(ModelFile, of_halves_is_wide_where_it_names_them_once_it_is_widened) {
  const torch::NoGradGuard no_grad;
  const Saved saved = saved_case("names_its_dtype.pt2", at::kCPU);
  const at::Tensor x = saved.args[0].toTensor();
  const auto result_in = [&](at::ScalarType dtype) {
    Model model{std::filesystem::path(data_file("names_its_dtype.pt2"))};
    model.to(dtype);
    return model(x.to(dtype)).toTensor().to(at::kDouble);
  };
  const at::Tensor exact = result_in(at::kDouble);
  const auto distance = [&](const at::Tensor& found) { return (found - exact).abs().max().item<double>(); };
  EXPECT_LT(distance(result_in(at::kFloat)), 1e-5);
  const double rounding = distance(saved.result.toTensor().to(at::kDouble));
  EXPECT_GT(rounding, 1e-5) << "halves are no less exact";
  EXPECT_LT(rounding, 1e-2);
}

TEST(ModelFile, keeps_tied_weights_tied) {
  const Model model{std::filesystem::path(data_file("nested.pt2"))};
  const auto parameters = model.module()->named_parameters();
  EXPECT_EQ(parameters["encode.weight"].data_ptr(), parameters["decode.weight"].data_ptr());
}

TEST(ModelFile, a_loaded_script_module_compiles_and_follows_its_train_flag) {
  const torch::NoGradGuard no_grad;
  auto module = torch::jit::load(data_file("traced.pt"));
  const auto fast = compile(module, {.compile_budget = std::numeric_limits<double>::infinity()});
  const Saved saved = saved_case("traced.pt", at::kCPU);
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(saved.args[0]), saved.result, 1e-6));
  ASSERT_EQ(fast.report().entries.size(), 1U);
  module.train();
  for (int call = 0; call < 3; ++call) {
    at::manual_seed(call);
    const c10::IValue expected = module.forward({saved.args[0]});
    at::manual_seed(call);
    EXPECT_TRUE(same(fast(saved.args[0]), expected, 1e-6)) << "call " << call;
  }
  module.eval();
  EXPECT_TRUE(same(fast(saved.args[0]), saved.result, 1e-6));
}

TEST(ModelFile, weights_of_a_script_module_that_change_are_seen) {
  const torch::NoGradGuard no_grad;
  auto module = torch::jit::load(data_file("scripted.pt"));
  const auto fast = compile(module, {.compile_budget = std::numeric_limits<double>::infinity()});
  const at::Tensor x = at::ones({4, 8});
  for (int call = 0; call < 3; ++call) (void)fast(x);
  for (auto parameter : module.parameters()) parameter.mul_(2);
  EXPECT_TRUE(same(fast(x), module.forward({x}), 1e-6));
}

}  // namespace
}  // namespace sinter::test
