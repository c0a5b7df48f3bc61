#include "frontend/model_file/graph_runner.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <set>
#include <stdexcept>

#include "frontend/model_file/constant_copies.h"
#include "frontend/torch/libtorch_version.h"

namespace sinter::frontend {
namespace {

using c10::IValue;
using Values = std::vector<IValue>;

IValue value_of(const ExportedArgument& argument, const SlotValues& values, const ModelMove& move) {
  return evaluate(argument, *c10::AnyType::get(), std::nullopt, values, move);
}

/// Lists of operands opened, in order.
void flatten_into(std::vector<ExportedArgument>& flat, const ExportedArgument& argument) {
  const auto* items = argument.list();
  if (items == nullptr) return flat.push_back(argument);
  for (const ExportedArgument& item : *items) flatten_into(flat, item);
}

/// "aten::add" and "Tensor" of "torch.ops.aten.add.Tensor".
std::optional<c10::OperatorName> operator_name(const std::string& target) {
  constexpr std::string_view prefix = "torch.ops.";
  if (!target.starts_with(prefix)) return std::nullopt;
  const size_t space = target.find('.', prefix.size());
  const size_t name = space == std::string::npos ? space : target.find('.', space + 1);
  if (name == std::string::npos) return std::nullopt;
  const std::string overload = target.substr(name + 1);
  return c10::OperatorName(
      target.substr(prefix.size(), space - prefix.size()) + "::" + target.substr(space + 1, name - space - 1),
      overload == "default" ? "" : overload);
}

struct TensorReader {
  std::string_view target;
  int64_t (*read)(const at::Tensor&, int64_t);
};
constexpr std::array<TensorReader, 7> kTensorReaders{{
    {"torch.ops.aten.sym_size.int", [](const at::Tensor& x, int64_t dim) { return x.size(dim); }},
    {"torch.ops.aten.sym_stride.int", [](const at::Tensor& x, int64_t dim) { return x.stride(dim); }},
    {"torch.ops.aten.sym_numel.default", [](const at::Tensor& x, int64_t /*dim*/) { return x.numel(); }},
    {"torch.ops.aten.sym_storage_offset.default",
     [](const at::Tensor& x, int64_t /*dim*/) { return x.storage_offset(); }},
    {"torch.ops.aten.size.int", [](const at::Tensor& x, int64_t dim) { return x.size(dim); }},
    {"torch.ops.aten.stride.int", [](const at::Tensor& x, int64_t dim) { return x.stride(dim); }},
    {"torch.ops.aten.numel.default", [](const at::Tensor& x, int64_t /*dim*/) { return x.numel(); }},
}};

/// What torch.export checked for its own example. Shapes are checked where the program is entered, and dtypes and
/// devices are the caller's to change.
constexpr std::array<std::string_view, 3> kChecksOfExport{"torch.ops.aten._assert_tensor_metadata.default",
                                                          "torch.ops.aten.sym_constrain_range.default",
                                                          "torch.ops.aten.sym_constrain_range_for_size.default"};

/// Puts a result where it belongs: lists of slots take lists.
void store(const ExportedArgument& output, IValue value, SlotValues& values) {
  if (const Slot* slot = output.slot()) {
    values[slot->index] = std::move(value);
    return;
  }
  const auto* items = output.list();
  if (items == nullptr) return;
  const Values results = value.toListRef().vec();
  for (size_t i = 0; i < items->size(); ++i) store((*items)[i], results.at(i), values);
}

/// Autocast as Python's context manager sets it.
class AutocastGuard {
 public:
  AutocastGuard(at::DeviceType device, const IValue& dtype, const IValue& enabled, const IValue& cache)
      : device_(device),
        was_enabled_(at::autocast::is_autocast_enabled(device)),
        was_dtype_(at::autocast::get_autocast_dtype(device)),
        was_cached_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_enabled(device, enabled.toBool());
    if (!dtype.isNone()) at::autocast::set_autocast_dtype(device, dtype.toScalarType());
    at::autocast::set_autocast_cache_enabled(was_cached_ && (cache.isNone() || cache.toBool()));
    at::autocast::increment_nesting();
  }
  ~AutocastGuard() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_enabled_);
    at::autocast::set_autocast_dtype(device_, was_dtype_);
    at::autocast::set_autocast_cache_enabled(was_cached_);
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
  at::ScalarType was_dtype_;
  bool was_cached_;
};

bool is_true(const IValue& value) {
  if (value.isTensor()) return value.toTensor().item().toBool();
  return value.toScalar().toBool();
}

}  // namespace

GraphRunner::GraphRunner(const ExportedGraph& graph)
    : inputs_(graph.inputs), outputs_(graph.outputs), slots_(graph.names.size()) {
  std::set<std::string> unknown;
  for (const ExportedNode& node : graph.nodes) {
    try {
      steps_.push_back({bind(node), node.outputs, {}, {node.module, node.place}});
    } catch (const UnknownOperators& nested) {
      unknown.insert(nested.reasons().begin(), nested.reasons().end());
    } catch (const std::invalid_argument& error) {
      unknown.insert(fmt::format("{}: {}", node.target, error.what()));
    }
  }
  if (!unknown.empty()) throw UnknownOperators({unknown.begin(), unknown.end()});
  mark_last_uses();
}

GraphRunner::Action GraphRunner::bind(const ExportedNode& node) {
  if (std::ranges::find(kChecksOfExport, node.target) != kChecksOfExport.end()) return Skip{};
  if (node.target == "torch.ops.aten._assert_scalar.default") {
    const IValue* message = node.inputs.size() > 1 ? node.inputs[1].argument.constant() : nullptr;
    return Assertion{node.inputs.at(0).argument,
                     message != nullptr && message->isString() ? message->toStringRef() : "an assertion"};
  }
  if (node.target.starts_with("torch.ops.higher_order.")) return bind_higher_order(node);
  if (const NumberOp op = find_number_op(node.target)) {
    NumberCall call{op, {}};
    for (const NamedArgument& input : node.inputs) call.operands.push_back(input.argument);
    return call;
  }
  const auto reader = std::ranges::find(kTensorReaders, node.target, &TensorReader::target);
  if (reader != kTensorReaders.end() && !node.inputs.empty()) {
    const ExportedArgument none{IValue(int64_t{0})};
    return TensorNumber{reader->read, node.inputs[0].argument, node.inputs.size() > 1 ? node.inputs[1].argument : none};
  }
  const auto name = operator_name(node.target);
  const auto op = name ? c10::Dispatcher::singleton().findSchema(*name) : std::nullopt;
  if (!op) throw std::invalid_argument("unknown to this LibTorch");
  return OperatorCall(node, *op);
}

GraphRunner::Action GraphRunner::bind_higher_order(const ExportedNode& node) {
  using Kind = HigherOrder::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 4> known{{
      {"torch.ops.higher_order.cond", Kind::cond},
      {"torch.ops.higher_order.while_loop", Kind::while_loop},
      {"torch.ops.higher_order.wrap_with_set_grad_enabled", Kind::set_grad_enabled},
      {"torch.ops.higher_order.wrap_with_autocast", Kind::autocast},
  }};
  const auto found = std::ranges::find(known, node.target, &std::pair<std::string_view, Kind>::first);
  if (found == known.end()) throw std::invalid_argument("higher-order operators of this kind cannot be run");
  HigherOrder call{.kind = found->second, .arguments = {}, .graphs = {}, .operands = {}};
  for (const NamedArgument& input : node.inputs) {
    if (const auto* graph = std::get_if<std::shared_ptr<const ExportedGraph>>(&input.argument.value)) {
      call.graphs.push_back(std::make_shared<const GraphRunner>(**graph));
    } else if (call.graphs.empty()) {
      call.arguments.push_back(input.argument);
    } else {
      flatten_into(call.operands, input.argument);
    }
  }
  const bool two = call.kind == Kind::cond || call.kind == Kind::while_loop;
  const size_t before = call.kind == Kind::cond || call.kind == Kind::set_grad_enabled ? 1
                        : call.kind == Kind::autocast                                  ? 4
                                                                                       : 0;
  if (call.graphs.size() != (two ? 2U : 1U) || call.arguments.size() != before) {
    throw std::invalid_argument("its arguments are not those of PyTorch 2.11");
  }
  return call;
}

template <class Visit>
void GraphRunner::for_each_read(const Action& action, const Visit& visit) {
  if (const auto* call = std::get_if<OperatorCall>(&action)) for_each_slot(call->arguments(), visit);
  if (const auto* call = std::get_if<NumberCall>(&action)) for_each_slot(call->operands, visit);
  if (const auto* number = std::get_if<TensorNumber>(&action)) {
    for_each_slot(number->tensor, visit);
    for_each_slot(number->dim, visit);
  }
  if (const auto* assertion = std::get_if<Assertion>(&action)) for_each_slot(assertion->condition, visit);
  if (const auto* call = std::get_if<HigherOrder>(&action)) {
    for_each_slot(call->arguments, visit);
    for_each_slot(call->operands, visit);
  }
}

void GraphRunner::mark_last_uses() {
  std::vector<bool> used(slots_, false);
  for_each_slot(outputs_, [&](Slot slot) { used[slot.index] = true; });
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    const auto visit = [&](Slot slot) {
      if (used[slot.index]) return;
      used[slot.index] = true;
      step->dead.push_back(slot);
    };
    for_each_slot(step->outputs, visit);  // results that nothing reads
    for_each_read(step->action, visit);
  }
}

std::vector<StepView> GraphRunner::views() const {
  std::vector<StepView> views;
  for (const Step& step : steps_) {
    StepView view{
        std::get_if<OperatorCall>(&step.action), step.outputs, {}, std::holds_alternative<HigherOrder>(step.action)};
    for_each_read(step.action, [&](Slot slot) { view.reads.push_back(slot); });
    views.push_back(std::move(view));
  }
  return views;
}

void GraphRunner::keep_constants(const ModelMove& move) {
  kept_.clear();
  for (Step& step : steps_) step.left_out = false;
  const std::vector<StepView> views = this->views();
  const std::vector<size_t> steps = steps_of_constant_copies(views, outputs_, slots_);
  SlotValues values(slots_);
  try {
    run_apart(steps, values, move);
  } catch (const std::exception&) {
    return;  // the program throws the same, if it gets there
  }
  std::vector<Slot> kept;
  for (const size_t index : steps) {
    const auto copy = copied_by(std::get<OperatorCall>(steps_[index].action), steps_[index].outputs);
    if (!copy || values[copy->from.index].toTensor().device() == values[copy->to.index].toTensor().device()) continue;
    kept_.emplace_back(copy->to, values[copy->to.index]);
    kept.push_back(copy->to);
  }
  for (const size_t index : steps_without_use(views, steps, kept, slots_)) steps_[index].left_out = true;
}

void GraphRunner::run_apart(std::span<const size_t> steps, SlotValues& values, const ModelMove& move) const {
  const c10::impl::ExcludeDispatchKeyGuard no_hook(kHookKeys);
  const at::AutoGradMode no_gradients(false);
  const c10::InferenceMode ordinary(false);
  for (const size_t index : steps) run(steps_[index], values, move);
}

void GraphRunner::run(const Step& step, SlotValues& values, const ModelMove& move) {
  Values results = perform(step.action, values, move);
  // One list of slots takes all results of a graph; else each output takes one.
  const bool spread =
      step.outputs.size() == 1 && step.outputs[0].list() != nullptr && std::holds_alternative<HigherOrder>(step.action);
  const auto& outputs = spread ? *step.outputs[0].list() : step.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) store(outputs[i], std::move(results.at(i)), values);
}

Values GraphRunner::run(Values inputs, const ModelMove& move) const {
  SlotValues values(slots_);
  for (const auto& [slot, value] : kept_) values[slot.index] = value;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].slot() != nullptr) store(inputs_[i], std::move(inputs.at(i)), values);
  }
  inputs.clear();
  for (const Step& step : steps_) {
    if (step.left_out) continue;
    const PlaceGuard place(step.place);
    run(step, values, move);
    for (const Slot slot : step.dead) values[slot.index] = {};
  }
  Values results;
  for (const ExportedArgument& output : outputs_) results.push_back(value_of(output, values, move));
  return results;
}

Values GraphRunner::perform(const Action& action, const SlotValues& values, const ModelMove& move) {
  if (const auto* call = std::get_if<OperatorCall>(&action)) return call->run(values, move);
  if (const auto* number = std::get_if<TensorNumber>(&action)) {
    return {
        number->read(value_of(number->tensor, values, move).toTensor(), value_of(number->dim, values, move).toInt())};
  }
  if (const auto* call = std::get_if<NumberCall>(&action)) {
    Values operands;
    for (const ExportedArgument& operand : call->operands) operands.push_back(value_of(operand, values, move));
    return {call->op(operands)};
  }
  if (const auto* assertion = std::get_if<Assertion>(&action)) {
    if (!is_true(value_of(assertion->condition, values, move))) throw std::invalid_argument(assertion->message);
    return {};
  }
  if (const auto* call = std::get_if<HigherOrder>(&action)) return perform(*call, values, move);
  return {};
}

Values GraphRunner::perform(const HigherOrder& call, const SlotValues& values, const ModelMove& move) {
  using Kind = HigherOrder::Kind;
  Values arguments;
  for (const ExportedArgument& argument : call.arguments) arguments.push_back(value_of(argument, values, move));
  Values operands;
  for (const ExportedArgument& operand : call.operands) operands.push_back(value_of(operand, values, move));
  switch (call.kind) {
    case Kind::cond:
      return call.graphs[is_true(arguments[0]) ? 0 : 1]->run(std::move(operands), move);
    case Kind::set_grad_enabled: {
      const at::AutoGradMode mode(arguments[0].toBool() && at::GradMode::is_enabled());
      return call.graphs[0]->run(std::move(operands), move);
    }
    case Kind::autocast: {
      const at::Device named(arguments[0].toStringRef());
      const auto device = named.type() == move.from.type() ? move.to.type() : named.type();
      const AutocastGuard autocast(device, arguments[1], arguments[2], arguments[3]);
      return call.graphs[0]->run(std::move(operands), move);
    }
    case Kind::while_loop:
      break;
  }
  // The carried values come first; what the loop only reads stays behind them.
  while (is_true(call.graphs[0]->run(operands, move).at(0))) {
    Values carried = call.graphs[1]->run(operands, move);
    std::ranges::move(carried, operands.begin());
  }
  operands.resize(call.graphs[1]->outputs_.size());
  return operands;
}

}  // namespace sinter::frontend
