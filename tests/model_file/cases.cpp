#include "tests/model_file/cases.h"

#include <ATen/ATen.h>
#include <ATen/core/Dict.h>
#include <ATen/core/grad_mode.h>

#include <cstdlib>
#include <limits>
#include <sstream>

namespace sinter::test {

using c10::IValue;

void PrintTo(const FileCase& subject, std::ostream* out) { *out << subject.file; }

void PrintTo(const Work& work, std::ostream* out) {
  *out << work.launches << " launches, " << work.calls << " library calls";
}

Work work_of(const Report& report) {
  Work work;
  for (const EntryReport& entry : report.entries) {
    for (const KernelRecord& kernel : entry.kernels) work.launches += kernel.launches;
    for (const ExternRecord& call : entry.externs) work.calls += call.calls;
  }
  return work;
}

const std::vector<FileCase>& file_cases() {
  static const std::vector<FileCase> cases{
      {"convnet.pt2", "layers.1.conv", "export.py:27", {4, 3}},
      {"decomposed.pt2", "layers.1.conv", "export.py:27", {4, 3}},
      {"nested.pt2", "encode", "export.py:", {3, 1}},
      {"sizes.pt2", "", "export.py:70", {2, 0}},
      {"regions.pt2", "", "", {2, 1}, 1e-2},  // a product in bf16, which need not be rounded before it is widened
      {"branch.pt2", "", "ends at aten::_local_scalar_dense", {2, 0}},
      {"host_made.pt2", "fc", "export.py:", {5, 7}},
      {"counter.pt2", "", "export.py:", {2, 1}},
      {"traced.pt", "layers.1.conv", "export.py:40", {4, 3}},
      {"windows.pt", "project", "export.py:", {2, 1}},
      {"frozen.pt", "", "export.py:40", {4, 3}},
      {"scripted.pt", "inner.0", "export.py:", {4, 0}},
  };
  return cases;
}

std::string data_file(const std::string& name) {
  const char* folder = std::getenv("SINTER_TEST_DATA");
  const std::string root = folder != nullptr ? std::string(folder) + "/model_file/data" : SINTER_MODEL_FILES;
  return root + "/" + name;
}

IValue on(const IValue& value, at::Device device) {
  if (value.isTensor()) return value.toTensor().to(device);
  if (value.isTuple()) {
    std::vector<IValue> items;
    for (const IValue& item : value.toTupleRef().elements()) items.push_back(on(item, device));
    return c10::ivalue::Tuple::create(std::move(items));
  }
  if (value.isList()) {
    c10::impl::GenericList items(value.toList().elementType());
    for (const IValue& item : value.toListRef()) items.push_back(on(item, device));
    return items;
  }
  if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    c10::impl::GenericDict items(dict.keyType(), dict.valueType());
    for (const auto& item : dict) items.insert(item.key(), on(item.value(), device));
    return items;
  }
  return value;
}

Saved saved_case(const std::string& model, at::Device device) {
  const IValue value = on(read_saved(data_file(model.substr(0, model.rfind('.')) + ".case.pt")), device);
  const auto dict = value.toGenericDict();
  Saved saved{.args = {}, .kwargs = {}, .result = dict.at("result")};
  for (const IValue& item : dict.at("args").toTupleRef().elements()) {
    // Python's dict says nothing about its types; TorchScript wants to know them.
    const bool tensors = item.isGenericDict() && item.toGenericDict().size() == 1;
    if (!tensors) {
      saved.args.push_back(item);
      continue;
    }
    c10::Dict<std::string, at::Tensor> typed;
    for (const auto& entry : item.toGenericDict()) typed.insert(entry.key().toStringRef(), entry.value().toTensor());
    saved.args.emplace_back(typed);
  }
  for (const auto& item : dict.at("kwargs").toGenericDict()) {
    saved.kwargs.values.emplace(item.key().toStringRef(), item.value());
  }
  return saved;
}

namespace {

::testing::AssertionResult differ(const std::string& what) { return ::testing::AssertionFailure() << what; }

::testing::AssertionResult same_tensor(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type() || a.device() != b.device()) {
    return differ("tensors of another kind: " + a.toString() + " and " + b.toString());
  }
  if (a.numel() == 0) return ::testing::AssertionSuccess();
  const double error = (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
  const double size = std::max(1.0, b.to(at::kDouble).abs().max().item<double>());
  if (error <= tolerance * size) return ::testing::AssertionSuccess();
  return differ("tensors differ by " + std::to_string(error));
}

::testing::AssertionResult same_items(c10::ArrayRef<IValue> a, c10::ArrayRef<IValue> b, double tolerance) {
  if (a.size() != b.size()) return differ("containers of another size");
  for (size_t i = 0; i < a.size(); ++i) {
    if (auto result = same(a[i], b[i], tolerance); !result) return result;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace

::testing::AssertionResult same(const IValue& a, const IValue& b, double tolerance) {
  if (a.isTensor() && b.isTensor()) return same_tensor(a.toTensor(), b.toTensor(), tolerance);
  if (a.isTuple() && b.isTuple()) {
    return same_items(a.toTupleRef().elements(), b.toTupleRef().elements(), tolerance);
  }
  if (a.isList() && b.isList()) return same_items(a.toListRef(), b.toListRef(), tolerance);
  if (a.isGenericDict() && b.isGenericDict()) {
    const auto left = a.toGenericDict();
    const auto right = b.toGenericDict();
    if (left.size() != right.size()) return differ("dicts of another size");
    auto item = right.begin();
    for (const auto& entry : left) {  // in the order in which they were filled
      if (entry.key().toStringRef() != item->key().toStringRef()) return differ("dicts of other keys");
      if (auto result = same(entry.value(), (item++)->value(), tolerance); !result) return result;
    }
    return ::testing::AssertionSuccess();
  }
  if (a.tagKind() != b.tagKind()) return differ(a.tagKind() + " and " + b.tagKind());
  std::ostringstream left;
  std::ostringstream right;
  left << a;
  right << b;
  return left.str() == right.str() ? ::testing::AssertionSuccess() : differ(left.str() + " and " + right.str());
}

Work work_of_file(const std::string& file, at::Device device) {
  const at::NoGradGuard no_grad;
  Model model{std::filesystem::path(data_file(file))};
  model.to(device);
  const auto fast = compile(model, {.freeze = true, .compile_budget = std::numeric_limits<double>::infinity()});
  for (int call = 0; call < 2; ++call) (void)fast(saved_case(file, device).args.at(0));
  return work_of(fast.report());
}

void expect_as_python(const FileCase& subject, at::Device device, Mode mode) {
  const at::NoGradGuard no_grad;
  const Saved saved = saved_case(subject.file, device);
  const double tolerance = device.is_cpu() ? 1e-6 : subject.tolerance_on_gpu;
  Model eager{std::filesystem::path(data_file(subject.file))};
  eager.to(device);
  ASSERT_TRUE(same(eager.forward(saved.args, saved.kwargs), saved.result, tolerance));

  Model model{std::filesystem::path(data_file(subject.file))};
  model.to(device);
  const auto fast =
      compile(model, {.mode = mode, .freeze = true, .compile_budget = std::numeric_limits<double>::infinity()});
  for (int call = 0; call < 4; ++call) {
    // A program that changes its own state gives another result each time.
    const IValue expected = call > 0 ? eager.forward(saved.args, saved.kwargs) : saved.result;
    IValue result;
    switch (saved.args.size()) {
      case 1:
        result = fast(saved.args[0]);
        break;
      case 2:
        result = fast(saved.args[0], saved.args[1], saved.kwargs);
        break;
      default:
        result = fast(saved.args.at(0), saved.args.at(1), saved.args.at(2));
    }
    EXPECT_TRUE(same(result, expected, tolerance)) << "call " << call;
  }
  const Report report = fast.report();
  ASSERT_FALSE(report.entries.empty()) << report;
  for (const EntryReport& entry : report.entries) EXPECT_TRUE(entry.breaks.empty() && entry.compiled) << report;
  EXPECT_EQ(fast.stats().replayed, 3) << report;
  if (device.is_cpu()) {
    EXPECT_EQ(work_of(report), subject.on_cpu) << report;
  }
  EXPECT_NE(report.text().find(subject.module), std::string::npos) << report;
  EXPECT_NE(report.text().find(subject.place), std::string::npos) << report;
}

}  // namespace sinter::test
