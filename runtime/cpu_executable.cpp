#include "runtime/cpu_executable.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>

#include "compiler/support/planted.h"
#include "runtime/kernel_cache.h"
#include "runtime/llvm_jit.h"
#include "runtime/plan_executable.h"

namespace sinter::runtime {
namespace {

using CpuKernels = std::vector<std::shared_ptr<const CompiledCpuKernel>>;

/// Kernels of this process by text. Never destroyed: they may run on LibTorch's threads until the process ends.
BuildCache<const CompiledCpuKernel>& built_kernels() {
  static auto& cache = *new BuildCache<const CompiledCpuKernel>();
  return cache;
}

/// Machine code of `source`, made once per process for equal texts. Thread-safe.
Cached<const CompiledCpuKernel> build_cpu_kernel(const KernelSource& source) {
  static auto& jit = *new LlvmJit();
  const std::string& key = planted(Bug::kernels_mixed_up) ? source.name : source.text;
  return built_kernels().get(key, [&] { return jit.compile(source); });
}

/// One launch cut into ranges that start at multiples of the kernel's granule.
struct Loop {
  CpuKernel entry;
  const void* const* params;
  int64_t granule;
  int64_t numel;

  /// Runs units [begin, end) of `granule` points or rows each.
  void operator()(int64_t begin, int64_t end) const { entry(params, begin * granule, std::min(end * granule, numel)); }
};

class CpuExecutor {
 public:
  CpuExecutor(const Plan& plan, Host& host, const CpuKernels& kernels) : plan_(plan), host_(host), kernels_(kernels) {}

  void launch(const Program::Launch& launch, std::span<const Program::Param> params, std::span<uint64_t> values) {
    std::array<const void*, 32> few{};
    std::vector<const void*> many(values.size() > few.size() ? values.size() : 0);
    const void** pointers = many.empty() ? few.data() : many.data();
    for (size_t i = 0; i < values.size(); ++i) {
      const bool is_address = params[i].pass == KernelArg::Pass::pointer;
      pointers[i] = is_address ? reinterpret_cast<const void*>(values[i]) : &values[i];
    }
    const KernelSource& source = plan_.kernels[launch.kernel];
    const int64_t granule = std::max<int64_t>(1, source.granule);
    const Loop loop{kernels_[launch.kernel]->entry(), pointers, granule, source.numel};
    const int64_t units = (source.numel + granule - 1) / granule;
    if (source.numel * source.row_points <= source.range) return loop(0, units);
    host_.parallel_for(units, std::max<int64_t>(1, source.range / (granule * source.row_points)),
                       [&loop](int64_t begin, int64_t end) { loop(begin, end); });
  }
  void call(Frame& frame, uint32_t call) { frame.call(call); }
  void copy(uint64_t to, uint64_t from, int64_t bytes) {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), static_cast<size_t>(bytes));
  }

 private:
  const Plan& plan_;
  Host& host_;
  const CpuKernels& kernels_;
};

class CpuExecutable final : public PlanExecutable {
 public:
  CpuExecutable(std::shared_ptr<const Plan> plan, Host& host, CpuKernels kernels, Ranges* ranges)
      : PlanExecutable(std::move(plan), host, ranges), kernels_(std::move(kernels)) {}

 private:
  void execute(const Program& program, Frame& frame) override {
    run_steps(program, frame, CpuExecutor(plan(), host(), kernels_));
  }
  void copy_on_device(void* to, const void* from, int64_t bytes) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void wait() override {}

  CpuKernels kernels_;
};

}  // namespace

std::unique_ptr<Executable> build_cpu_executable(std::shared_ptr<const Plan> plan, Host& host,
                                                 const ExecutableOptions& options, EntryReport& report) {
  const std::vector<uint32_t> launched = launched_kernels(*plan);
  const auto begin = std::chrono::steady_clock::now();
  CpuKernels kernels(plan->kernels.size());
  std::vector<KernelRecord> records(launched.size());
  const auto source = [&](size_t i) -> const KernelSource& { return plan->kernels[launched[i]]; };
  std::vector<Cached<const CompiledCpuKernel>> built(launched.size());
  find_or_build_all(
      built, [&](size_t i) { return built_kernels().find(source(i).text); },
      [&](size_t i) { return build_cpu_kernel(source(i)); },
      [&](size_t i, CompileObserver::Time from) {
        tell_of_kernel(options.observer, source(i).name, built[i].built->provenance(), built[i].shared, from,
                       CompileObserver::Time::clock::now());
      });
  for (size_t i = 0; i < launched.size(); ++i) {
    kernels[launched[i]] = built[i].built;
    records[i] = record_of(*plan, launched[i]);
    record_provenance(records[i], built[i].built->provenance(), built[i].shared, built[i].seconds);
  }
  end_phase(report, options.observer, "kernels", begin);
  report.add_phase("load", 0);
  for (const uint32_t kernel : launched) note_problem(report, kernels[kernel]->provenance());
  report.kernels.insert(report.kernels.end(), records.begin(), records.end());
  return std::make_unique<CpuExecutable>(std::move(plan), host, std::move(kernels), options.ranges);
}

}  // namespace sinter::runtime
