#include "frontend/profile/operator_log.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <atomic>
#include <chrono>

#include "compiler/passes/library_product.h"
#include "compiler/support/errors.h"
#include "frontend/torch/convert.h"

namespace sinter::frontend {
namespace {

using Role = TensorOwner::Role;

int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// "aten::add_" and "aten::add_.Tensor" write their first argument.
bool writes_in_place(const std::string& name) {
  const size_t end = std::min(name.find('.'), name.size());
  return end > 0 && name[end - 1] == '_';
}

/// LibTorch's callbacks are plain functions, which leaves no other place for what they need.
std::atomic<OperatorLog*> active_log = nullptr;
std::atomic<uint64_t> log_number = 0;  ///< of the active log, among all there were

/// What a thread is inside of, of one log.
struct OpenCalls {
  uint64_t log = 0;
  std::vector<OpenCall> calls;
};

/// Of the calling thread and the active log. What an earlier log left open is forgotten.
std::vector<OpenCall>& open_calls_here() {
  static thread_local OpenCalls open;
  const uint64_t now = log_number.load(std::memory_order_relaxed);
  if (open.log != now) open = {now, {}};
  return open.calls;
}

OpenCall& begin_now(OpenCall::Kind kind, int64_t position) {
  return open_calls_here().emplace_back(OpenCall{.kind = kind, .position = position, .start = nanoseconds_now()});
}

/// Ends the innermost call of the thread, whose time is then part of the one around it.
OpenCall end_now(int64_t now) {
  std::vector<OpenCall>& open = open_calls_here();
  const OpenCall call = open.back();
  open.pop_back();
  if (!open.empty()) open.back().nested += now - call.start;
  return call;
}

bool inside_an_operator_or_step() {
  const std::vector<OpenCall>& open = open_calls_here();
  return !open.empty() && open.back().kind != OpenCall::Kind::segment;
}

std::optional<RunningNode> running_node(const ModuleTable& modules) {
  const std::shared_ptr<torch::autograd::Node> node = torch::autograd::get_current_node();
  if (node == nullptr) return std::nullopt;
  RunningNode running;
  running.name = node->name();
  if (const auto* sum = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get())) {
    running.name = "AccumulateGrad";
    running.accumulates = modules.owner_of(sum->variable).module;
  } else {
    running.made_as = NodeNumber{node->thread_id(), node->sequence_nr()};
  }
  return running;
}

}  // namespace

/// An operator that was begun, so that it is ended.
struct Entered : at::ObserverContext {
  virtual void leave(const at::RecordFunction& function, int64_t now) = 0;
};

/// A call whose operands tell its work.
struct MeasuredCall {
  MeasuredCall(const WorkTraits& of, const at::RecordFunction& function)
      : traits(&of), begun(begin_work(of, std::span(function.inputs().data(), function.inputs().size()))) {}

  [[nodiscard]] OperatorWork end(const at::RecordFunction& function) const {
    return end_work(*traits, begun, std::span(function.outputs().data(), function.outputs().size()));
  }

  const WorkTraits* traits;
  BegunWork begun;
};

bool is_measured(const WorkTraits& traits) {
  return traits.rule != WorkRule::unknown && traits.rule != WorkRule::nothing && traits.rule != WorkRule::inner;
}

/// One that the log keeps.
struct EnteredOperator : Entered {
  EnteredOperator(OperatorLog* to, const LoggedOperator& op, const StatedPlace* place)
      : log(to), updates(op.updates), module(op.owner.module) {
    if (place != nullptr) placed.emplace(*place);
  }

  void begin(const c10::OperatorName& name, const at::RecordFunction& function, int64_t position) {
    if (position < 0) return void(begin_now(OpenCall::Kind::operation, position));
    const WorkTraits& traits = log->work_traits(name);
    if (is_measured(traits)) measured.emplace(traits, function);
    OpenCall& call = begin_now(OpenCall::Kind::operation, position);
    call.work.known = traits.rule != WorkRule::unknown;
    call.composed = traits.rule == WorkRule::inner;
  }

  void leave(const at::RecordFunction& function, int64_t now) override {
    if (log != active_log.load(std::memory_order_acquire) || open_calls_here().empty()) return;
    OpenCall call = end_now(now);
    if (measured) call.work = measured->end(function);
    log->close(call, now);
    if (updates) log->note_results(function.outputs(), module);
  }

  OperatorLog* log;
  bool updates;
  ModuleIndex module;
  std::optional<PlaceGuard> placed;
  std::optional<MeasuredCall> measured;
};

/// One that is called by an operator, or a step, whose work it does.
struct EnteredInner : Entered {
  EnteredInner(int64_t of, const WorkTraits& traits, const at::RecordFunction& function)
      : position(of), measured(traits, function) {}

  void leave(const at::RecordFunction& function, int64_t /*now*/) override {
    std::vector<OpenCall>& open = open_calls_here();
    if (open.empty() || open.back().position != position) return;
    open.back().work.add(measured.end(function));
    open.back().composed = true;
  }

  int64_t position;  ///< in the log: of the operator around it
  MeasuredCall measured;
};

struct LogCallbacks {
  static std::unique_ptr<at::ObserverContext> entered(const at::RecordFunction& function) {
    OperatorLog* log = active_log.load(std::memory_order_acquire);
    if (log == nullptr) return nullptr;
    if (inside_an_operator_or_step()) return entered_inner(*log, function);
    const auto name = function.operator_name();
    if (!name) return nullptr;
    LoggedOperator op;
    op.name = c10::toString(*name);
    log->note_arguments(std::span(function.inputs().data(), function.inputs().size()), op);
    if (!op.node && !op.updates) {
      op.stated = stated_place();
      if (!op.stated) op.stack = stack_here();
    }
    auto begun = std::make_unique<EnteredOperator>(log, op, log->next_place(op));
    begun->begin(*name, function, log->open(std::move(op)));
    return begun;
  }

  /// What an inner operator calls itself is part of it.
  static std::unique_ptr<at::ObserverContext> entered_inner(OperatorLog& log, const at::RecordFunction& function) {
    OpenCall& outer = open_calls_here().back();
    if (outer.position < 0 || !outer.composed) return nullptr;
    const auto name = function.operator_name();
    if (!name) return nullptr;
    const WorkTraits& traits = log.work_traits(*name);
    if (traits.rule == WorkRule::unknown) outer.work.known = false;
    if (!is_measured(traits)) return nullptr;
    outer.composed = false;
    return std::make_unique<EnteredInner>(outer.position, traits, function);
  }

  static void left(const at::RecordFunction& function, at::ObserverContext* context) {
    const int64_t now = nanoseconds_now();
    if (context != nullptr) static_cast<Entered&>(*context).leave(function, now);
  }
};

OperatorLog::OperatorLog(ModuleTable& modules, LogListener listener, StepPlaces* places)
    : modules_(modules), listener_(std::move(listener)), places_(places) {
  OperatorLog* nobody = nullptr;
  if (!active_log.compare_exchange_strong(nobody, this)) {
    throw UserError("profile: another profile of this process is running; profile one program at a time");
  }
  log_number.fetch_add(1, std::memory_order_relaxed);
  callback_ = at::addGlobalCallback(at::RecordFunctionCallback(LogCallbacks::entered, LogCallbacks::left)
                                        .needsInputs(true)
                                        .needsOutputs(true)
                                        .scopes({at::RecordScope::FUNCTION}));
  runtime::listen_to_ranges(this);
}

OperatorLog::~OperatorLog() {
  runtime::listen_to_ranges(nullptr);
  at::removeCallback(callback_);
  active_log.store(nullptr, std::memory_order_release);
}

void OperatorLog::begin_step(int64_t step, int64_t steps_left) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  const auto needed = operators_.size() + static_cast<size_t>(seen_ * steps_left);
  if (operators_.capacity() < needed) operators_.reserve(needed + needed / 8);
  seen_ = 0;
}

void OperatorLog::end_step() {
  const std::lock_guard lock(mutex_);
  step_.reset();
}

std::vector<LoggedOperator> OperatorLog::take() {
  const std::lock_guard lock(mutex_);
  return std::move(operators_);
}

int64_t OperatorLog::running() {
  const std::vector<OpenCall>& open = open_calls_here();
  return open.empty() ? -1 : open.back().position;
}

at::Device OperatorLog::device() const {
  const std::lock_guard lock(mutex_);
  return device_;
}

int64_t OperatorLog::open(LoggedOperator op) {
  int64_t position = -1;
  {
    const std::lock_guard lock(mutex_);
    ++seen_;
    if (step_) {
      op.step = *step_;
      op.thread = at::RecordFunction::currentThreadId();
      op.first_node = at::sequence_number::peek();
      op.gradients = at::GradMode::is_enabled();
      position = std::ssize(operators_);
      operators_.push_back(std::move(op));
    }
  }
  if (position >= 0 && listener_.begin) listener_.begin(position);
  return position;
}

void OperatorLog::close(const OpenCall& call, int64_t end) {
  if (call.position < 0) return;
  if (listener_.end) listener_.end();
  const std::lock_guard lock(mutex_);
  if (call.position >= std::ssize(operators_)) return;
  LoggedOperator& op = operators_[static_cast<size_t>(call.position)];
  op.start = call.start;
  op.end = end;
  op.nested = call.nested;
  op.end_node = at::sequence_number::peek();
  op.work = call.work;
}

const WorkTraits& OperatorLog::work_traits(const c10::OperatorName& name) {
  const std::lock_guard lock(mutex_);
  return work_rules_.of(name);
}

/// Null for an operator of a model file, which states its place itself.
const StatedPlace* OperatorLog::next_place(const LoggedOperator& op) {
  if (places_ == nullptr || op.stated) return nullptr;
  const std::lock_guard lock(mutex_);
  return places_->next(op.name);
}

/// Who owns the arguments, and what calls the operator.
void OperatorLog::note_arguments(std::span<const c10::IValue> arguments, LoggedOperator& op) {
  const std::lock_guard lock(mutex_);
  op.node = running_node(modules_);
  if (op.node) saw_node_ = true;
  if (!op.node && saw_node_) {
    modules_.refresh_gradients();
    saw_node_ = false;
  }
  bool first = true;
  const bool in_place = writes_in_place(op.name);
  const bool may_update = !op.node && !at::GradMode::is_enabled();
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (tensor.defined() && tensor.is_cuda() && device_.is_cpu()) device_ = tensor.device();
      const TensorOwner owner = modules_.owner_of(tensor);
      const bool written = in_place && std::exchange(first, false);
      if (owner.role == Role::none) return;
      op.owner.module = op.owner.role == Role::none ? owner.module : modules_.common(op.owner.module, owner.module);
      op.owner.role = std::max(op.owner.role, owner.role);
      op.updates |= may_update && (owner.role != Role::parameter || written);
    });
  }
}

/// What is computed of a gradient or a state belongs to the same module.
void OperatorLog::note_results(std::span<const c10::IValue> results, ModuleIndex module) {
  const std::lock_guard lock(mutex_);
  for (const c10::IValue& result : results) {
    for_each_tensor(result, [&](const at::Tensor& tensor) { modules_.give_memory(tensor, {Role::state, module}); });
  }
}

void OperatorLog::push(const std::string& text) {
  LoggedOperator op;
  op.name = std::string(segment_prefix) + text;
  op.compiled = true;
  begin_now(OpenCall::Kind::segment, open(std::move(op))).work.known = false;
}

void OperatorLog::push(const KernelSource& kernel) {
  LoggedOperator op;
  op.name = kernel.name;
  op.compiled = true;
  op.modules = kernel.modules;
  op.sources = kernel.sources;
  OpenCall& call = begin_now(OpenCall::Kind::step, open(std::move(op)));
  call.work.bytes = kernel.bytes;
  call.work.known = kernel.bytes > 0;
}

void OperatorLog::push(const ExternCall& call) {
  LoggedOperator op;
  op.name = call.op;
  op.compiled = true;
  if (!call.module.empty()) op.modules.push_back(call.module);
  if (!call.source.empty()) op.sources.push_back(call.source);
  OpenCall& step = begin_now(OpenCall::Kind::step, open(std::move(op)));
  step.composed = call.op != passes::library_product;
  step.work.known = step.composed;  // no operator of LibTorch's tells what the library does there
}

void OperatorLog::pop() noexcept {
  const int64_t now = nanoseconds_now();
  if (open_calls_here().empty()) return;
  close(end_now(now), now);
}

}  // namespace sinter::frontend
