#include "runtime/cuda/cuda_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/support/errors.h"
#include "compiler/support/first_line.h"
#include "compiler/support/planted.h"
#include "runtime/interpret.h"
#include "runtime/pool_bytes.h"

namespace sinter::runtime {
namespace {

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

std::string cannot_be_recorded(std::string_view call, const std::exception& error) {
  return fmt::format("{} cannot be recorded: {}", call, first_line(error.what()));
}

/// Binds in `to` the inputs and state that `from` holds.
void share_border(const Plan& plan, Frame& to, const Frame& from, const Frame* kept) {
  for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferKind kind = plan.buffers[i].kind;
    const bool given = kind == BufferKind::input || kind == BufferKind::state;
    if (given) to.share(BufferId{i}, from, BufferId{i});
    if (kind == BufferKind::frozen && kept != nullptr) to.share(BufferId{i}, *kept, BufferId{i});
  }
}

/// Ends a program where the calls that run behind its graph begin.
void leave_out(const ClosingCalls& closing, Program& program) {
  if (closing.calls.empty()) return;
  const auto begin = std::ranges::find_if(program.instructions, [&](const Program::Instruction& instruction) {
    return instruction.kind == Program::Instruction::Kind::call && instruction.index == closing.calls.front();
  });
  program.instructions.erase(begin, program.instructions.end());
}

/// An event for the time of a call.
class Event {
 public:
  explicit Event(const Driver& driver) : driver_(driver) {
    driver_.check(driver_.event_create(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  }
  ~Event() { driver_.event_destroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Makes `later` wait for what `earlier` was given so far.
  void order(CUstream earlier, CUstream later) const {
    driver_.check(driver_.event_record(event_, earlier), "cuEventRecord");
    driver_.check(driver_.stream_wait(later, event_, CU_EVENT_WAIT_DEFAULT), "cuStreamWaitEvent");
  }

 private:
  const Driver& driver_;
  CUevent event_ = nullptr;
};

/// The time in which random calls are recorded.
class RecordedDraws {
 public:
  explicit RecordedDraws(Host::Draws* draws) : draws_(draws) {
    if (draws_ != nullptr) draws_->begin_recording();
  }
  ~RecordedDraws() {
    if (draws_ != nullptr) draws_->end_recording();
  }
  RecordedDraws(const RecordedDraws&) = delete;
  RecordedDraws& operator=(const RecordedDraws&) = delete;

 private:
  Host::Draws* draws_;
};

}  // namespace

CudaGraph::CudaGraph(const CudaParts& parts, const GraphLayout& layout)
    : parts_(parts),
      layout_(layout),
      moving_(layout.moving_inputs),
      turn_(GraphTurn::of(parts.driver, parts.plan.device.index)) {
  moving_.insert(moving_.end(), layout.moving_outputs.begin(), layout.moving_outputs.end());
  addresses_.resize(moving_.size());
}

CudaGraph::~CudaGraph() {
  // Failures are not reported: at the end of the process the driver may be gone already.
  turn_.finish();
  for (const Part& part : graphs_) {
    if (part.exec != nullptr) parts_.driver.graph_exec_destroy(part.exec);
    if (part.graph != nullptr) parts_.driver.graph_destroy(part.graph);
  }
  {
    const std::lock_guard lock(turn_.mutex());
    parts_.pool.forget(this);
  }
  if (memory_) parts_.pool.release(parts_.host, *memory_);
}

std::unique_ptr<CudaGraph> CudaGraph::record(const CudaParts& parts, const GraphLayout& layout, const Program& steps,
                                             const Arrivals& arrivals, Frame& frame, const Frame* kept,
                                             CUstream stream) {
  if (!layout.refusal.empty()) throw NotRecorded(layout.refusal);
  Program recorded = flatten(parts.plan, parts.plan.steps, layout.moving_outputs);
  leave_out(layout.closing, recorded);
  const int64_t bytes = pool_bytes(parts.plan, recorded, layout.moving_outputs, layout.copied_inputs);
  parts.pool.make_room(bytes, parts.holder);
  std::unique_ptr<CudaGraph> graph(new CudaGraph(parts, layout));
  graph->kept_ = kept;
  if (layout.draws) graph->draws_ = parts.host.draws(parts.plan.device);
  graph->warm_up(steps, frame, kept, stream);
  // The recorded launches need some address for the tensors that move: those of this call.
  for (BufferId buffer : layout.moving_outputs) frame.allocate(buffer);
  try {
    graph->capture(recorded, bytes, arrivals, frame, kept);
  } catch (const NotRecorded&) {
    graph->settle_libraries(steps, frame, kept, stream);
    throw;
  }
  for (BufferId buffer : layout.moving_outputs) frame.release(buffer);
  return graph;
}

void CudaGraph::settle_libraries(const Program& steps, Frame& frame, const Frame* kept, CUstream stream) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      return warm_up(steps, frame, kept, stream);
    } catch (const NotRecorded&) {  // the failure that was waiting
    }
  }
}

void CudaGraph::warm_up(const Program& steps, Frame& frame, const Frame* kept, CUstream stream) {
  const auto recording = parts_.host.record(parts_.plan.device, std::nullopt);
  const auto side = static_cast<CUstream>(recording->stream());
  const Event event(parts_.driver);
  const std::lock_guard lock(turn_.mutex());
  turn_.enter(side);
  event.order(stream, side);
  CudaExecutor executor(parts_, side);
  std::string failed;
  try {
    const auto inside = parts_.host.make_frame(parts_.plan);
    share_border(parts_.plan, *inside, frame, kept);
    for (BufferId buffer : parts_.plan.written) own(*inside, buffer, side);
    interpret(steps, *inside, executor);
  } catch (const std::exception& error) {
    failed = cannot_be_recorded(executor.last(), error);
  }
  turn_.leave(side);
  event.order(side, stream);
  if (draws_ != nullptr) draws_->rewind();
  if (!failed.empty()) throw NotRecorded(failed);
}

void CudaGraph::own(Frame& frame, BufferId buffer, CUstream stream) const {
  const void* from = frame.data(buffer);
  frame.allocate(buffer);
  const auto bytes = static_cast<size_t>(span_bytes(parts_.plan.buffers[buffer.index].type));
  if (bytes == 0) return;
  parts_.driver.check(parts_.driver.copy_on_device(address(frame.data(buffer)), address(from), bytes, stream),
                      "cuMemcpyDtoDAsync");
}

void CudaGraph::capture(const Program& steps, int64_t bytes, const Arrivals& arrivals, Frame& frame,
                        const Frame* kept) {
  const std::vector<GraphPart> cuts =
      cut_in_parts(parts_.plan, steps, layout_.draws ? Arrivals() : arrivals);  // none in vain
  for (const GraphPart& cut : cuts) graphs_.emplace_back().due = cut.due;
  const auto recording = parts_.pool.record(parts_.host, bytes);
  memory_ = recording->pool();
  const auto inside = parts_.host.make_frame(parts_.plan);
  share_border(parts_.plan, *inside, frame, kept);
  for (BufferId buffer : layout_.moving_outputs) inside->share(buffer, frame, buffer);
  for (BufferId buffer : layout_.copied_inputs) {
    inside->allocate(buffer);
    const Copy copy = copy_in_of(*inside, buffer);
    first_with(buffer, arrivals).copies_in.push_back(copy);
    const auto& written = parts_.plan.written;
    if (std::find(written.begin(), written.end(), buffer) != written.end()) copies_back_.push_back(copy);
  }
  for (BufferId buffer : layout_.scalar_binds) first_with(buffer, arrivals).scalar_binds.push_back(buffer);
  RecordingExecutor executor(parts_, static_cast<CUstream>(recording->stream()));
  Interpretation interpretation(steps, *inside, executor);
  const RecordedDraws recorded(draws_.get());
  for (size_t i = 0; i < cuts.size(); ++i) capture_part(executor, interpretation, cuts[i].end, graphs_[i]);
  for (BufferId buffer : layout_.copied_outputs) copies_out_.push_back(copy_out_of(*inside, buffer));
  for (BufferId buffer : layout_.lent) lent_.push_back(copy_in_of(*inside, buffer));
}

/// The part that copies an input in, or binds a view of it: the first that may be started when it is there.
CudaGraph::Part& CudaGraph::first_with(BufferId input, const Arrivals& arrivals) {
  const Buffer& root = parts_.plan.buffers[root_of(parts_.plan, input).buffer.index];
  if (arrivals.empty() || root.kind != BufferKind::input) return graphs_.front();
  const uint32_t arrival = arrivals.inputs[root.index];
  return *std::ranges::find_if(graphs_,
                               [&](const Part& part) { return &part == &graphs_.back() || part.due >= arrival; });
}

void CudaGraph::capture_part(RecordingExecutor& executor, Interpretation<RecordingExecutor>& steps, size_t end,
                             Part& part) {
  try {
    executor.begin();
    steps.run_to(end);
    part.graph = executor.end();
  } catch (const NotRecorded&) {
    throw;
  } catch (const std::exception& error) {
    throw NotRecorded(cannot_be_recorded(executor.last(), error));
  }
  for (const RecordedLaunch& launch : executor.launches()) keep(launch, part);
  parts_.driver.check(parts_.driver.graph_instantiate(&part.exec, part.graph, 0), "cuGraphInstantiate");
}

CudaGraph::Copy CudaGraph::copy_in_of(const Frame& inside, BufferId input) const {
  const int64_t bytes = span_bytes(parts_.plan.buffers[input.index].type);
  return {input, address(inside.data(input)), static_cast<size_t>(bytes)};
}

CudaGraph::Copy CudaGraph::copy_out_of(const Frame& inside, BufferId root) const {
  // The root itself may be released where a view or an in-place kernel carries its memory out.
  for (BufferId output : parts_.plan.outputs) {
    const Root place = root_of(parts_.plan, output);
    if (place.buffer != root) continue;
    const CUdeviceptr start = address(inside.data(output)) - static_cast<uint64_t>(place.bytes);
    return {root, start, static_cast<size_t>(span_bytes(parts_.plan.buffers[root.index].type))};
  }
  throw InternalError("runtime", fmt::format("plan {}: buffer {} is no output", parts_.plan.name, root.index));
}

void CudaGraph::keep(const RecordedLaunch& launch, Part& part) {
  Node node{launch.node, launch.kernel, launch.values, {}};
  for (uint32_t i = 0; i < launch.params.size(); ++i) {
    const Program::Param& param = launch.params[i];
    if (param.pass == KernelArg::Pass::size) continue;
    const Root root = root_of(parts_.plan, param.buffer);
    if (param.pass == KernelArg::Pass::pointer) {
      const auto found = std::find(moving_.begin(), moving_.end(), root.buffer);
      if (found == moving_.end()) continue;
      const auto index = static_cast<uint32_t>(found - moving_.begin());
      node.moving.push_back({i, param.pass, root.buffer, index, root.bytes});
      if (std::ranges::find(part.moving, index) == part.moving.end()) part.moving.push_back(index);
      continue;
    }
    if (holds_host_numbers(parts_.plan.buffers[root.buffer.index].kind)) {
      node.moving.push_back({i, param.pass, param.buffer, 0, 0});
    }
  }
  if (!node.moving.empty()) part.nodes.push_back(std::move(node));
}

void CudaGraph::start(size_t index, Frame& frame, CUstream stream) {
  Part& part = graphs_[index];
  if (index == 0) {
    for (BufferId buffer : layout_.moving_outputs) frame.allocate(buffer);
  }
  for (BufferId buffer : part.scalar_binds) frame.bind(buffer);
  repoint(part, frame);
  const std::lock_guard lock(turn_.mutex());
  turn_.enter(stream);
  const bool goes_on = parts_.pool.is_still_of(this) || planted(Bug::graph_memory_not_checked);
  for (size_t i = goes_on ? index : 0; i <= index; ++i) launch(graphs_[i], frame, stream);
  try {
    if (index + 1 == graphs_.size()) finish(frame, stream);
  } catch (...) {
    turn_.leave(stream);
    throw;
  }
  turn_.leave(stream);
}

void CudaGraph::launch(const Part& part, Frame& frame, CUstream stream) {
  const Driver& driver = parts_.driver;
  for (const Copy& copy : part.copies_in) {
    if (copy.bytes == 0 || planted(Bug::graph_input_not_copied)) continue;
    driver.check(driver.copy_on_device(copy.address, address(frame.data(copy.buffer)), copy.bytes, stream),
                 "cuMemcpyDtoDAsync");
  }
  if (draws_ != nullptr) draws_->prepare_replay();
  if (!parts_.plan.written.empty()) frame.begin_writes();
  driver.check(driver.graph_launch(part.exec, stream), "cuGraphLaunch");
}

void CudaGraph::copy_out(Frame& frame, CUstream stream) {
  for (const Copy& copy : copies_out_) frame.allocate(copy.buffer);
  for (BufferId buffer : layout_.blank_outputs) frame.allocate(buffer);
  for (const std::vector<Copy>* copies : {&copies_out_, &copies_back_}) {
    for (const Copy& copy : *copies) {
      if (copy.bytes == 0) continue;
      parts_.driver.check(
          parts_.driver.copy_on_device(address(frame.data(copy.buffer)), copy.address, copy.bytes, stream),
          "cuMemcpyDtoDAsync");
    }
  }
}

void CudaGraph::finish(Frame& frame, CUstream stream) {
  copy_out(frame, stream);
  for (BufferId buffer : layout_.kept) frame.share(buffer, *kept_, buffer);
  for (BufferId buffer : layout_.closing_binds) frame.bind(buffer);
  for (const Copy& memory : lent_) frame.lend(memory.buffer, reinterpret_cast<void*>(memory.address));
  for (const uint32_t call : layout_.closing.calls) run_closing_call(call, frame, stream);
  for (const Copy& memory : lent_) frame.release(memory.buffer);
}

void CudaGraph::run_closing_call(uint32_t call, Frame& frame, CUstream stream) {
  frame.call(call);
  for (const BufferId result : parts_.plan.calls[call].results) {
    if (!result.valid()) continue;
    const CUdeviceptr from = address(frame.data(result));
    const bool is_lent = std::ranges::any_of(
        lent_, [&](const Copy& memory) { return from >= memory.address && from < memory.address + memory.bytes; });
    if (is_lent) own(frame, result, stream);  // the operator gives what it was given: the next replay overwrites it
  }
}

void CudaGraph::replay(size_t first_part, Frame& frame, CUstream stream) {
  for (size_t part = first_part; part < graphs_.size(); ++part) start(part, frame, stream);
  for (BufferId buffer : layout_.output_binds) frame.bind(buffer);
}

void CudaGraph::repoint(Part& part, Frame& frame) {
  for (const uint32_t index : part.moving) addresses_[index] = address(frame.data(moving_[index]));
  for (Node& node : part.nodes) {
    bool moved = node.stale;
    for (const MovingParam& param : node.moving) {
      const uint64_t value = value_of(param, frame);
      moved |= node.values[param.position] != value;
      node.values[param.position] = value;
    }
    if (moved && !planted(Bug::graph_not_repointed)) set(part, node);
  }
}

uint64_t CudaGraph::value_of(const MovingParam& param, const Frame& frame) const {
  switch (param.pass) {
    case KernelArg::Pass::pointer:
      return addresses_[param.index] + static_cast<uint64_t>(param.offset);
    case KernelArg::Pass::scalar_f64:
      return std::bit_cast<uint64_t>(frame.scalar_f64(param.buffer));
    case KernelArg::Pass::scalar_i64:
      return static_cast<uint64_t>(frame.scalar_i64(param.buffer));
    case KernelArg::Pass::size:
      break;  // never moves
  }
  return 0;
}

void CudaGraph::set(const Part& part, Node& node) {
  const KernelSource& source = parts_.plan.kernels[node.kernel];
  LaunchParams params(node.values);
  CUDA_KERNEL_NODE_PARAMS launch{};
  launch.func = parts_.kernels[node.kernel].function;
  launch.gridDimX = source.grid[0];
  launch.gridDimY = source.grid[1];
  launch.gridDimZ = source.grid[2];
  launch.blockDimX = source.block[0];
  launch.blockDimY = source.block[1];
  launch.blockDimZ = source.block[2];
  launch.kernelParams = params.pointers();
  node.stale = true;
  parts_.driver.check(parts_.driver.graph_set_kernel_params(part.exec, node.handle, &launch),
                      "cuGraphExecKernelNodeSetParams");
  node.stale = false;
}

}  // namespace sinter::runtime
