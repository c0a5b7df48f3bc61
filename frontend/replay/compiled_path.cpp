#include "frontend/replay/compiled_path.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "compiler/compile.h"
#include "compiler/ir/print.h"
#include "compiler/support/fault.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/tensor_memory.h"
#include "frontend/trace/captured_graph.h"
#include "runtime/program.h"
#include "runtime/ranges.h"

namespace sinter::frontend {
namespace {

void fail_where_planted() {
  static const bool planted = Faults::environment().planted("run");
  if (planted) throw std::runtime_error("this failure was planted");
}

std::string signature_of(const PathGraph& path) {
  constexpr size_t most = 4;
  std::string text;
  for (const ir::NodeId id : path.graph.order()) {
    const ir::Node& node = path.graph.node(id);
    const auto* input = node.as<ir::Input>();
    if (input == nullptr) continue;
    if (input->index == most) return text + ", ...";
    text += (text.empty() ? "" : ", ") + ir::to_string(path.graph.type(node.results.front()), path.graph.device);
  }
  return text;
}

/// By output of a plan: true where it does not have memory of its own.
std::vector<bool> without_own_memory(const Plan& plan) {
  std::vector<bool> shared;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const BufferId memory = runtime::root_of(plan, plan.outputs[i]).buffer;
    const BufferKind kind = plan.buffers[memory.index].kind;
    bool other = kind == BufferKind::input || kind == BufferKind::state;
    for (size_t j = 0; j < i; ++j) other = other || runtime::root_of(plan, plan.outputs[j]).buffer == memory;
    shared.push_back(other);
  }
  return shared;
}

}  // namespace

InputMemory memory_of(const PathInput& input, const TensorTable& table) {
  const TraceValue& value = table.value(input.value);
  return {&table.memories()[value.memory.index].held, value.elements.dtype, table.offset_of(input.value)};
}

CompiledPath::CompiledPath(const PathNode& end, const PathSettings& settings, const TensorTable& table)
    : escaped_(end.ending.escaped), observer_(settings.observer) {
  const Options& options = settings.options;
  const auto begin = std::chrono::steady_clock::now();
  const auto steps = steps_to(end);
  PathGraph path = graph_of(steps, escaped_, settings.states);
  path.graph.name = identifier(settings.function);
  inputs_ = std::move(path.inputs);
  state_ids_ = std::move(path.states);
  for (const TraceValueId state : state_ids_) states_.push_back(table.given(state));
  opaques_ = std::move(path.opaques);
  record_.signature = signature_of(path);
  record_.device = ir::to_string(path.graph.device);
  record_.captured_calls = static_cast<int64_t>(steps.size());
  record_.notes.push_back(fmt::format("ends at {}", fmt::join(end.ending.reasons, ", ")));
  if (settings.generic_sizes) record_.notes.emplace_back("kernels take sizes as parameters: another size came");
  for (const ir::ValueId output : path.graph.outputs) {
    const ir::Type& type = path.graph.type(output);
    Elements elements;
    elements.dtype = scalar_type_of(type.dtype).value_or(at::kByte);
    for (const int64_t size : type.static_sizes()) elements.sizes.push_back(size);
    for (const int64_t stride : type.static_strides()) elements.strides.push_back(stride);
    elements_.push_back(std::move(elements));
  }
  end_phase(record_, observer_.get(), "graph", begin);
  const CompileOptions compile_options{
      .numerics = options.numerics,
      .freeze = options.freeze,
      .generic_sizes = settings.generic_sizes,
      .measuring_seconds = options.mode == Mode::MaxAutotune ? options.autotune_seconds : 0,
      .device = device_info(path.graph),
      .input_alignment = std::move(path.alignments),
      .state_alignment = std::move(path.state_alignments),
      .observer = observer_.get()};
  plan_ = std::make_shared<const Plan>(sinter::compile(std::move(path.graph), compile_options, record_));
  copied_ = without_own_memory(*plan_);
  host_ = std::make_unique<TorchHost>(plan_, opaques_);
  const bool graphs = on_gpu() && options.mode != Mode::Default;
  const auto arrivals = graphs ? arrivals_of(*plan_, inputs_, steps) : runtime::Arrivals();
  if (!arrivals.empty()) nodes_ = steps;
  const runtime::ExecutableOptions runtime_options{.graphs = graphs,
                                                   .steady_inputs = true,
                                                   .report_mutex = &mutex_,
                                                   .pools = settings.pools,
                                                   .arrivals = arrivals,
                                                   .ranges = runtime::nvtx_ranges(),
                                                   .observer = observer_.get()};
  executable_ = runtime::Executable::build(plan_, *host_, runtime_options, record_);
  const auto preparing = std::chrono::steady_clock::now();
  const c10::OptionalDeviceGuard device(device_to_set(*plan_));
  const auto frame = host_->make_torch_frame();
  const at::Tensor none(at::detail::empty_cpu({0}, at::kFloat));  // what is computed once takes no inputs
  const std::vector<InputMemory> nothing(inputs_.size(), {&none.storage(), at::kFloat, 0});
  frame->bind_arguments(nothing, states_);
  executable_->prepare(*frame);
  end_phase(record_, observer_.get(), "prepare", preparing);
  record_.compiled = true;
}

bool CompiledPath::gives(std::span<const TraceMemoryId> escaped) const {
  return std::ranges::all_of(
      escaped, [this](TraceMemoryId memory) { return std::ranges::find(escaped_, memory) != escaped_.end(); });
}

bool CompiledPath::takes(std::span<const LiveNumber> numbers) const {
  size_t known = 0;
  for (const PathInput& input : inputs_) {
    if (input.value.valid()) continue;
    if (known == numbers.size() || numbers[known].step != input.step || numbers[known].number != input.number) {
      return false;
    }
    ++known;
  }
  return known == numbers.size();
}

std::vector<TraceValueId> CompiledPath::moved_states(const TensorTable& table) const {
  std::vector<TraceValueId> moved;
  for (size_t i = 0; i < states_.size(); ++i) {
    const TraceValueId state = state_ids_[i];
    const c10::Storage& storage = table.memories()[table.value(state).memory.index].held;
    const bool same = storage.unsafeGetStorageImpl() == states_[i].storage().unsafeGetStorageImpl() &&
                      table.offset_of(state) == states_[i].storage_offset();
    if (!same) moved.push_back(state);
  }
  return moved;
}

void CompiledPath::run(const TensorTable& table, std::span<const LiveNumber> numbers,
                       const std::function<void(TraceMemoryId, at::Tensor)>& give, bool& wrote, EarlyRun* early) {
  std::vector<at::Tensor> number_tensors;
  number_tensors.reserve(numbers.size());
  std::vector<InputMemory> memories;
  memories.reserve(inputs_.size());
  for (const PathInput& wanted : inputs_) {
    if (wanted.value.valid()) {
      memories.push_back(memory_of(wanted, table));
    } else {
      const at::Tensor& number =
          number_tensors.emplace_back(tensor_of(numbers[number_tensors.size()].value, wanted.dtype));
      memories.push_back({&number.storage(), number.scalar_type(), 0});
    }
  }
  auto outputs = early != nullptr ? finish(*early, memories, wrote) : run(memories, wrote);
  for (size_t i = 0; i < escaped_.size(); ++i) give(escaped_[i], std::move(outputs[i]));
}

std::vector<at::Tensor> CompiledPath::run(std::span<const InputMemory> inputs, bool& wrote) {
  const FrameLease frame(frames_, *host_);
  frame->bind_arguments(inputs, states_);
  return run_in(*frame, 0, wrote);
}

std::vector<at::Tensor> CompiledPath::finish(EarlyRun& early, std::span<const InputMemory> inputs, bool& wrote) {
  early.frame().bind_arguments(inputs, states_);
  early.hand_over();
  if (early.started() > 0) early_.fetch_add(1, std::memory_order_relaxed);
  return run_in(early.frame(), early.started(), wrote);
}

std::vector<at::Tensor> CompiledPath::run_in(TorchFrame& frame, size_t started, bool& wrote) {
  const c10::OptionalDeviceGuard device(device_to_set(*plan_));
  std::vector<at::Tensor> outputs;
  outputs.reserve(escaped_.size());
  try {
    fail_where_planted();
    executable_->run(frame, started);
  } catch (...) {
    wrote = frame.writing();
    throw;
  }
  wrote = frame.writing();
  for (size_t i = 0; i < escaped_.size(); ++i) outputs.push_back(take_output(frame, i));
  runs_.fetch_add(1, std::memory_order_relaxed);
  return outputs;
}

/// With memory that begins at its first element, and is nobody else's.
at::Tensor CompiledPath::take_output(TorchFrame& frame, size_t output) const {
  const at::Tensor& tensor = frame.tensor(plan_->outputs[output]);
  const bool own = !copied_[output] && tensor.storage_offset() == 0;
  if (own) return tensor;
  const Elements& elements = elements_[output];
  at::Tensor copy = at::empty_strided(elements.sizes, elements.strides, tensor.options());
  return copy.copy_(tensor);
}

EntryReport CompiledPath::report() const {
  const std::lock_guard lock(mutex_);
  EntryReport report = record_;
  report.choices = host_->choices();
  report.replays = runs_.load(std::memory_order_relaxed);
  report.early = early_.load(std::memory_order_relaxed);
  return report;
}

}  // namespace sinter::frontend
