#include "runtime/cuda_executable.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/cuda/cuda_graph.h"
#include "runtime/cuda/make_executable.h"
#include "runtime/cuda/stream_uses.h"
#include "runtime/plan_executable.h"
#include "runtime/steady_inputs.h"

namespace sinter::runtime {
namespace {

class CudaExecutable final : public PlanExecutable, public GraphHolder {
 public:
  CudaExecutable(std::shared_ptr<const Plan> shared_plan, Host& given_host, const Driver& driver,
                 std::vector<CudaKernel> kernels, const ExecutableOptions& options, EntryReport& report)
      : PlanExecutable(std::move(shared_plan), given_host, options.ranges),
        context_(driver.context_of(plan().device.index)),
        kernels_(std::move(kernels)),
        pool_(options.pools == nullptr ? std::make_shared<GraphPool>(plan().device) : options.pools->on(plan().device)),
        parts_{plan(), host(), driver, kernels_, *pool_, *this},
        layout_(options.graphs ? lay_out_graph(plan()) : GraphLayout{}),
        moving_(alignment_of(layout_.moving_inputs)),
        steady_(alignment_of(layout_.copied_inputs), options.steady_inputs && may_be_recorded()),
        report_(report),
        report_mutex_(options.report_mutex),
        observer_(options.observer),
        arrivals_(options.arrivals),
        graphs_(options.graphs),
        kept_uses_(parts_.driver) {
    pool_->add(*this);
  }
  CudaExecutable(const CudaExecutable&) = delete;
  CudaExecutable& operator=(const CudaExecutable&) = delete;
  ~CudaExecutable() override {
    pool_->remove(*this);
    kept_uses_.finish();
  }

  void drop_old_graph() override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && !begun_ && graph_ != nullptr && graph_->is_old()) graph_.reset();
  }

  [[nodiscard]] std::optional<uint32_t> due(size_t part) override {
    const std::lock_guard lock(mutex_);
    if (!has_graph() || part + 1 >= graph_->parts()) return std::nullopt;
    return graph_->due(part);
  }

  [[nodiscard]] bool start(size_t part, Frame& frame) override {
    const ContextScope scope(parts_.driver, context_);
    const CUstream current = stream();
    const std::lock_guard lock(mutex_);
    const bool mine = part > 0;
    if (mine != begun_ || !graphs_ || (!mine && !has_graph())) return false;
    begun_ = false;  // also where that throws
    if (!can_start(part, frame, current)) return false;
    graph_->start(part, frame, current);
    return begun_ = true;
  }

  void drop() override {
    const std::lock_guard lock(mutex_);
    begun_ = false;
  }

 private:
  /// Where the device has other work to do first, a start gains nothing.
  [[nodiscard]] bool can_start(size_t part, const Frame& frame, CUstream current) {
    if (part == 0 && (is_recording(current) || !graph_->may_begin())) return false;
    const uint32_t due = graph_->due(part);
    const auto is_there = [&](BufferId input) { return arrivals_.inputs[plan().buffers[input.index].index] <= due; };
    return steady_.stay(frame, is_there) && is_aligned(frame, is_there);
  }

  void run_call(Frame& frame, size_t started) override {
    const ContextScope scope(parts_.driver, context_);
    if (graphs_ && replayed(frame, started)) return;
    try {
      PlanExecutable::run_call(frame, 0);
    } catch (...) {
      note_kept_use();
      throw;
    }
    note_kept_use();
  }

  /// What is kept goes back to the allocator behind what this thread's stream was given so far. LibTorch's own default
  /// stream, the one whose handle is its own for ever, needs no event where the memory is its own.
  void note_kept_use() {
    if (kept() == nullptr) return;
    const CUstream current = stream();
    if ((current == nullptr && kept_on() == nullptr) || is_recording(current)) return;
    kept_uses_.note(current);
  }

  [[nodiscard]] CUstream stream() const { return static_cast<CUstream>(host().current_stream(plan().device)); }

  void execute(const Program& program, Frame& frame) override {
    const ContextScope scope(parts_.driver, context_);
    run_steps(program, frame, CudaExecutor(parts_, stream()));
  }
  void copy_on_device(void* to, const void* from, int64_t bytes) override {
    parts_.driver.check(
        parts_.driver.copy_on_device(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                                     static_cast<size_t>(bytes), stream()),
        "cuMemcpyDtoDAsync");
  }
  void wait() override {
    const ContextScope scope(parts_.driver, context_);
    parts_.driver.check(parts_.driver.stream_synchronize(stream()), "cuStreamSynchronize");
  }

  [[nodiscard]] void* stream_of_memory() const override { return stream(); }
  [[nodiscard]] bool may_wait() const override {
    const ContextScope scope(parts_.driver, context_);
    return !is_recording(stream());
  }

  /// True when the stream is being recorded by the caller (or cannot tell): his graph gets the launches themselves.
  [[nodiscard]] bool is_recording(CUstream stream) const {
    CUstreamCaptureStatus status{};
    const CUresult result = parts_.driver.stream_is_capturing(stream, &status);
    return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
  }

  /// False when the plan launches directly whichever inputs are copied.
  [[nodiscard]] bool may_be_recorded() const { return lay_out_graph(plan(), layout_.copied_inputs).refusal.empty(); }

  /// What LibTorch draws for a tensor depends on whether that begins at a multiple of 16 bytes, as copies do that a
  /// graph makes of inputs.
  [[nodiscard]] bool draws_as_for_copies(const Frame& frame) const {
    if (!layout_.draws) return true;
    return std::ranges::all_of(
        steady_.copied(), [&](BufferId input) { return reinterpret_cast<uintptr_t>(frame.data(input)) % 16 == 0; });
  }

  /// The bits of the addresses of `inputs` that kernels need to be 0.
  [[nodiscard]] std::vector<SteadyInputs::Input> alignment_of(const std::vector<BufferId>& inputs) const {
    std::vector<SteadyInputs::Input> aligned;
    for (const BufferId input : inputs) {
      uint64_t clear = 0;
      for (const Program::Param& param : steps().params) {
        if (steps().slots[param.slot] == input) clear |= param.clear;
      }
      aligned.push_back({input, clear});
    }
    return aligned;
  }

  /// True when the graph may be re-pointed to those of these inputs that are there: none is less aligned than a kernel
  /// needs.
  template <class IsThere>
  [[nodiscard]] bool is_aligned(const Frame& frame, IsThere&& is_there) const {
    return std::ranges::all_of(moving_, [&](const SteadyInputs::Input& moving) {
      return moving.clear == 0 || !is_there(moving.buffer) ||
             (reinterpret_cast<uintptr_t>(frame.data(moving.buffer)) & moving.clear) == 0;
    });
  }

  /// Runs the call through the graph, behind the parts that were started. False when it launches directly.
  bool replayed(Frame& frame, size_t started) {
    const CUstream current = stream();
    const auto all = [](BufferId) { return true; };
    const bool refused =
        is_recording(current) || (kept() == nullptr && !plan().once.empty()) || !is_aligned(frame, all);
    const std::lock_guard lock(mutex_);
    const bool others = begun_ && started == 0;
    if (started > 0) begun_ = false;
    if (!has_graph()) started = 0;  // the graph of those parts is about to go
    if (refused || others || !has_graph_for(frame, current)) return false;
    if (has_kept_outputs()) share_frozen(frame);
    graph_->replay(started, frame, current);
    if (!has_kept_outputs()) return true;
    copy_kept_outputs(frame);
    note_kept_use();
    return true;
  }

  /// True when the graph serves this call; it is recorded where that is due.
  bool has_graph_for(Frame& frame, CUstream current) {
    if (!graphs_) return false;  // another thread tried meanwhile
    const SteadyInputs::Next next = steady_.next(frame);
    if (next == SteadyInputs::Next::launch || !draws_as_for_copies(frame)) return false;
    return (next == SteadyInputs::Next::replay && has_graph()) || record(frame, current);
  }

  [[nodiscard]] bool has_graph() const { return graph_ != nullptr && !graph_->is_old(); }

  bool record(Frame& frame, CUstream current) {
    const auto begin = std::chrono::steady_clock::now();
    graph_.reset();  // before its layout goes; the next one may have its memory
    try {
      layout_ = lay_out_graph(plan(), steady_.steady());
      graph_ = CudaGraph::record(parts_, layout_, steps(), arrivals_, frame, kept(), current);
    } catch (const std::exception& error) {
      graphs_ = false;
      report([&] {
        report_.graphs = 0;
        report_.notes.push_back(std::string("launched directly: ") + error.what());
      });
      return false;
    }
    steady_.recorded();
    report([&] {
      end_phase(report_, observer_, "record", begin);
      report_.graphs = 1;
      for (const uint32_t call : layout_.closing.calls) report_.notes.push_back(note_of(plan().calls[call]));
      if (steady_.gave_up()) report_.notes.emplace_back("inputs moved time and again: every replay copies them");
    });
    return true;
  }

  static std::string note_of(const ExternCall& closing) {
    return closing.op + " runs behind the graph, where its result needs no copy";
  }

  template <class Change>
  void report(Change&& change) {
    std::unique_lock<std::mutex> lock;
    if (report_mutex_ != nullptr) lock = std::unique_lock(*report_mutex_);
    change();
  }

  CUcontext context_;
  std::vector<CudaKernel> kernels_;
  std::shared_ptr<GraphPool> pool_;
  CudaParts parts_;
  GraphLayout layout_;                       ///< of the graph, or of one that copies every input
  std::vector<SteadyInputs::Input> moving_;  ///< inputs that the graph is re-pointed to
  SteadyInputs steady_;
  EntryReport& report_;
  std::mutex* report_mutex_;
  CompileObserver* observer_;
  const Arrivals arrivals_;
  std::atomic<bool> graphs_;  ///< false once a recording failed
  std::mutex mutex_;          ///< one thread at a time records or replays; guards what follows, layout_ and steady_
  bool begun_ = false;        ///< a call has started parts of the graph, and goes on
  std::unique_ptr<CudaGraph> graph_;  ///< null until recorded
  StreamUses kept_uses_;              ///< of the frozen buffers, but for what turns of the graph wait for
};

}  // namespace

std::unique_ptr<Executable> make_cuda_executable(std::shared_ptr<const Plan> plan, Host& host, const Driver& driver,
                                                 std::vector<CudaKernel> kernels, const ExecutableOptions& options,
                                                 EntryReport& report) {
  return std::make_unique<CudaExecutable>(std::move(plan), host, driver, std::move(kernels), options, report);
}

std::unique_ptr<Executable> build_cuda_executable(std::shared_ptr<const Plan> plan, Host& host,
                                                  const ExecutableOptions& options, EntryReport& report) {
  const Driver& driver = Driver::get();
  const int device = plan->device.index;
  const int sm = driver.sm_of(device);
  const std::vector<uint32_t> launched = launched_kernels(*plan);
  std::vector<const KernelSource*> sources;
  for (const uint32_t kernel : launched) sources.push_back(&plan->kernels[kernel]);
  const auto building = std::chrono::steady_clock::now();
  const auto cubins = CubinBuilder::process().build(
      sources, sm, [&](size_t i, const Cached<Cubin>& cubin, CompileObserver::Time begin, CompileObserver::Time end) {
        tell_of_kernel(options.observer, sources[i]->name, cubin.built->provenance, cubin.shared, begin, end);
      });
  end_phase(report, options.observer, "kernels", building);

  const auto loading = std::chrono::steady_clock::now();
  std::vector<CudaKernel> kernels(plan->kernels.size());
  for (size_t i = 0; i < launched.size(); ++i) {
    const CudaKernel kernel = load_kernel(cubins[i].built->code, plan->kernels[launched[i]].name, device);
    kernels[launched[i]] = kernel;
    KernelRecord record = record_of(*plan, launched[i]);
    record.registers = kernel.registers;
    record.spill_bytes = kernel.spill_bytes;
    record.shared_bytes = kernel.shared_bytes;
    record_provenance(record, cubins[i].built->provenance, cubins[i].shared, cubins[i].seconds);
    note_problem(report, cubins[i].built->provenance);
    report.kernels.push_back(std::move(record));
  }
  end_phase(report, options.observer, "load", loading);
  return make_cuda_executable(std::move(plan), host, driver, std::move(kernels), options, report);
}

}  // namespace sinter::runtime
