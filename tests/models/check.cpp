#include "tests/models/check.h"

#include <ATen/Context.h>
#include <ATen/ops/randn.h>

#include <limits>
#include <ostream>

#include "bench/measure/accuracy.h"
#include "bench/measure/inputs.h"

namespace sinter::test {
namespace {

bench::Model make(const bench::ModelRow& row, const bench::Settings& settings, at::Device device,
                  at::ScalarType dtype) {
  at::manual_seed(7);
  bench::Model model = bench::build(row, settings);
  if (!model.module) return model;
  model.module->to(device);
  bench::convert(*model.module, dtype);
  return model;
}

}  // namespace

Subject::Subject(const std::string& name, at::Device on, at::ScalarType type, const bench::Settings& settings)
    : row(bench::find_model(name)), model(make(row, settings, on, type)), device(on), dtype(type) {}

Inputs Subject::draw(const std::vector<int64_t>& sizes, uint64_t seed) const {
  at::manual_seed(seed);
  bench::InputSpec spec = bench::parse_input(row.inputs.at(0), 1);
  if (!ir::is_float(spec.dtype)) {
    spec.sizes = sizes;
    return {bench::draw(spec, device)};
  }
  return {at::randn(sizes, at::kFloat).to(device, dtype)};
}

Compiled<Forward> Subject::compile(Options options) const {
  options.name = row.name;
  options.compile_budget = std::numeric_limits<double>::infinity();
  if (model.module) options.modules = {{options.name, model.module}};
  return sinter::compile(model.forward, std::move(options));
}

at::Tensor Subject::exact(const Inputs& inputs) const {
  const bench::Model twin = bench::in_float64(row, model);
  if (twin.module) twin.module->to(device);
  const at::Tensor& input = inputs.at(0);
  return twin.forward({input.is_floating_point() ? input.to(at::kDouble) : input});
}

::testing::AssertionResult Subject::agrees(const Compiled<Forward>& fast, const Inputs& inputs) const {
  const at::Tensor compiled = fast(inputs);
  const at::Tensor eager = model.forward(inputs);
  if (compiled.strides() != eager.strides() || compiled.device() != eager.device()) {
    return ::testing::AssertionFailure() << "other strides or another device";
  }
  const bench::Accuracy accuracy = bench::compare(compiled, eager, exact(inputs));
  if (accuracy.ok) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "largest error " << accuracy.max_error << ", allowed " << accuracy.max_allowed
                                       << "; rms " << accuracy.rms_error << ", allowed " << accuracy.rms_allowed << "\n"
                                       << fast.report();
}

void PrintTo(const Work& work, std::ostream* out) {
  *out << work.launches << " launches of " << work.kernels << " kernels, " << work.calls << " library calls";
}

Work work_of(const EntryReport& entry) {
  Work work;
  for (const KernelRecord& kernel : entry.kernels) {
    work.launches += kernel.launches;
    work.kernels += kernel.launches > 0 ? 1 : 0;
  }
  for (const ExternRecord& call : entry.externs) work.calls += call.calls;
  return work;
}

Work work_of(const Compiled<Forward>& fast, const Subject& subject, const std::vector<int64_t>& sizes) {
  for (uint64_t call = 1; call <= 2; ++call) (void)fast(subject.draw(sizes, call));
  return work_of(fast.report().entries.at(0));
}

void expect_compiled(const Subject& subject, const std::vector<int64_t>& sizes, const Options& options,
                     const Work& work) {
  const auto fast = subject.compile(options);
  for (uint64_t call = 1; call <= 3; ++call) {
    ASSERT_TRUE(subject.agrees(fast, subject.draw(sizes, call))) << "call " << call;
  }
  const Report report = fast.report();
  ASSERT_EQ(report.entries.size(), 1U) << report;
  const EntryReport& entry = report.entries.front();
  EXPECT_TRUE(entry.compiled) << report;
  EXPECT_TRUE(entry.breaks.empty()) << report;
  EXPECT_EQ(entry.internal_error, "");
  EXPECT_EQ(fast.stats().replayed, 2) << "the first call records\n" << report;
  EXPECT_EQ(work_of(entry), work) << report;
}

}  // namespace sinter::test
