#include "frontend/optimizers.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <typeinfo>
#include <unordered_map>

#include "compiler/ir/memory.h"
#include "compiler/passes/aten.h"
#include "frontend/convert.h"

namespace sinter::frontend {
namespace {

using torch::optim::Optimizer;

/// Exact types: a class derived from one may step in another way.
OptimizerKind kind_of(const Optimizer& optimizer) {
  const std::type_info& type = typeid(optimizer);
  if (type == typeid(torch::optim::SGD)) return OptimizerKind::sgd;
  if (type == typeid(torch::optim::Adam)) return OptimizerKind::adam;
  if (type == typeid(torch::optim::AdamW)) return OptimizerKind::adamw;
  return OptimizerKind::other;
}

// Positions in GroupFacts::options, Adam and AdamW.
constexpr size_t kBeta1 = 0, kBeta2 = 1, kWeightDecay = 3;

template <class Options>
std::vector<double> adam_options(const Options& options) {
  return {std::get<0>(options.betas()), std::get<1>(options.betas()), options.eps(), options.weight_decay(),
          options.amsgrad() ? 1.0 : 0.0};
}

std::vector<double> options_of(const torch::optim::OptimizerOptions& options, OptimizerKind kind) {
  if (kind == OptimizerKind::adam) return adam_options(static_cast<const torch::optim::AdamOptions&>(options));
  if (kind == OptimizerKind::adamw) return adam_options(static_cast<const torch::optim::AdamWOptions&>(options));
  if (kind == OptimizerKind::other) return {};
  const auto& sgd = static_cast<const torch::optim::SGDOptions&>(options);
  return {sgd.weight_decay(), sgd.momentum(), sgd.dampening(), sgd.nesterov() ? 1.0 : 0.0};
}

double lr_of(const torch::optim::OptimizerOptions& options, OptimizerKind kind) {
  return kind == OptimizerKind::other ? 0.0 : options.get_lr();
}

int64_t step_of(const torch::optim::OptimizerParamState& state, OptimizerKind kind) {
  if (kind == OptimizerKind::adam) return static_cast<const torch::optim::AdamParamState&>(state).step();
  if (kind == OptimizerKind::adamw) return static_cast<const torch::optim::AdamWParamState&>(state).step();
  return 0;
}

void count_step(torch::optim::OptimizerParamState& state, OptimizerKind kind) {
  if (kind == OptimizerKind::adam) {
    auto& adam = static_cast<torch::optim::AdamParamState&>(state);
    adam.step(adam.step() + 1);
  } else if (kind == OptimizerKind::adamw) {
    auto& adamw = static_cast<torch::optim::AdamWParamState&>(state);
    adamw.step(adamw.step() + 1);
  }
}

bool same_numbers(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return same_number(x, y); });
}

double value_of(Formula formula, const GroupFacts& group, int64_t steps_before) {
  const auto step = steps_before + 1;
  switch (formula) {
    case Formula::negative_lr:
      return -1 * group.lr;
    case Formula::negative_step_size: {
      const auto bias_correction1 = 1 - std::pow(group.options[kBeta1], step);
      const auto step_size = group.lr / bias_correction1;
      return -step_size;
    }
    case Formula::root_of_correction: {
      const auto bias_correction2 = 1 - std::pow(group.options[kBeta2], step);
      return std::sqrt(bias_correction2);
    }
    case Formula::decay:
      return 1 - group.lr * group.options[kWeightDecay];
  }
  return 0;
}

GraphBreak unstable(std::string reason, std::string hint) {
  return {BreakCode::unstable, {}, {}, std::move(reason), std::move(hint)};
}

/// Looks for the numbers of each optimizer where its step puts them.
class Search {
 public:
  explicit Search(const Trace& trace) : graph_(trace.graph) {
    for (const ir::NodeId id : graph_.order()) {
      const ir::Node& node = graph_.node(id);
      if (const auto* state = node.as<ir::State>()) {
        states_.emplace(trace.states[state->index].tensor._unsafe_get_target(), node.results[0]);
      }
      const auto* call = node.as<ir::Call>();
      const ir::ValueId* target = call && !call->mutates.empty() && !node.args.empty() ? node.args[0].value() : nullptr;
      if (target) writers_[ir::memory_of(graph_, *target)].push_back(id);
    }
  }

  /// Calls that write the tensor through their first argument, in order.
  [[nodiscard]] std::vector<ir::NodeId> writers(const c10::TensorImpl* tensor) const {
    const auto state = states_.find(tensor);
    const auto found = state == states_.end() ? writers_.end() : writers_.find(state->second);
    return found == writers_.end() ? std::vector<ir::NodeId>{} : found->second;
  }

  /// The call that made an argument's memory.
  [[nodiscard]] std::optional<ir::NodeId> maker(ir::NodeId call, size_t argument) const {
    const ir::ValueId* value = graph_.node(call).args[argument].value();
    if (value == nullptr) return std::nullopt;
    return graph_.value(ir::memory_of(graph_, *value)).producer;
  }

  /// True where a tensor beside an operand takes part in promotion or rounding otherwise than a number does.
  [[nodiscard]] bool is_particular(ir::NodeId id) const {
    const ir::Type& type = graph_.type(*graph_.node(id).args[0].value());
    return type.rank() == 0 || ir::is_half(type.dtype);
  }

  /// The place of a number, if the call is an overload of `op` and its argument is that number.
  [[nodiscard]] std::optional<NumberPlace> place(ir::NodeId id, std::string_view op, uint32_t argument,
                                                 double number) const {
    const ir::Node& node = graph_.node(id);
    const auto* call = node.as<ir::Call>();
    if (!call || passes::base_name(call->op) != op || node.args.size() <= argument) return std::nullopt;
    const auto* known = std::get_if<double>(&node.args[argument].data);
    if (!known || !same_number(*known, number)) return std::nullopt;
    return NumberPlace{.node = id, .part = NumberPlace::Part::argument, .path = {argument}};
  }

 private:
  const ir::Graph& graph_;
  std::unordered_map<const c10::TensorImpl*, ir::ValueId> states_;
  std::unordered_map<ir::ValueId, std::vector<ir::NodeId>> writers_;
};

/// Finds the numbers of one parameter.
class ParameterSearch {
 public:
  ParameterSearch(const Search& search, const OptimizerFacts& before, OptimizerNumber at)
      : search_(search),
        kind_(before.kind),
        group_(before.groups[at.group]),
        parameter_(group_.parameters[at.parameter]),
        at_(std::move(at)) {}

  /// False when a number that the step must have used is not where it should be.
  [[nodiscard]] bool run(bool stepped, std::vector<OptimizerNumber>& found) {
    const auto writers = search_.writers(parameter_.tensor);
    if (kind_ == OptimizerKind::sgd) {
      for (const ir::NodeId id : writers) add(id, "aten::add_", 2, Formula::negative_lr, found);
      return true;
    }
    if (!stepped) return true;
    size_t updates = 0, decays = 0;
    for (const ir::NodeId id : writers) {
      if (kind_ == OptimizerKind::adamw && decays == 0 && add(id, "aten::mul_", 1, Formula::decay, found)) ++decays;
      if (!add(id, "aten::addcdiv_", 3, Formula::negative_step_size, found)) continue;
      const auto division = search_.maker(id, 2);
      if (division && add(*division, "aten::div", 1, Formula::root_of_correction, found)) ++updates;
    }
    const bool decayed = kind_ == OptimizerKind::adamw && group_.options[kWeightDecay] != 0;
    return updates == 1 && decays == (decayed ? 1 : 0);
  }

 private:
  bool add(ir::NodeId id, std::string_view op, uint32_t argument, Formula formula,
           std::vector<OptimizerNumber>& found) {
    if (formula == Formula::decay && group_.options[kWeightDecay] == 0) return false;
    auto place = search_.place(id, op, argument, value_of(formula, group_, parameter_.step));
    if (!place || (argument == 1 && search_.is_particular(id))) return false;
    at_.place = std::move(*place);
    at_.formula = formula;
    found.push_back(at_);
    return true;
  }

  const Search& search_;
  OptimizerKind kind_;
  const GroupFacts& group_;
  const ParameterFacts& parameter_;
  OptimizerNumber at_;
};

std::optional<GraphBreak> use_of(const Search& search, const OptimizerFacts& before, const OptimizerFacts& after,
                                 uint32_t position, std::vector<OptimizerNumber>& numbers) {
  for (uint32_t g = 0; g < before.groups.size(); ++g) {
    const GroupFacts &was = before.groups[g], &is = after.groups[g];
    if (!same_number(was.lr, is.lr) || !same_numbers(was.options, is.options) ||
        was.parameters.size() != is.parameters.size()) {
      return unstable("changes the options of torch::optim::" + before.type,
                      "step the scheduler outside the compiled callable");
    }
    for (uint32_t p = 0; p < was.parameters.size(); ++p) {
      if (before.kind == OptimizerKind::other) {
        if (search.writers(was.parameters[p].tensor).empty()) continue;
        return unstable("torch::optim::" + before.type + " computes numbers on the host that Sinter does not know",
                        "use SGD, Adam or AdamW, or step outside the compiled callable");
      }
      const int64_t steps = is.parameters[p].step - was.parameters[p].step;
      OptimizerNumber at;
      at.optimizer = position;
      at.group = g;
      at.parameter = p;
      if ((steps == 0 || steps == 1) && ParameterSearch(search, before, at).run(steps == 1, numbers)) continue;
      return unstable(
          fmt::format("torch::optim::{} steps in a way that is not recognised", before.type),
          "call step() once, without a closure; Adam and AdamW: on parameters of f32 or f64 that have dims");
    }
  }
  return std::nullopt;
}

bool was_used(const OptimizerFacts& before, const OptimizerFacts& after) {
  for (size_t g = 0; g < before.groups.size(); ++g) {
    const auto &was = before.groups[g].parameters, &is = after.groups[g].parameters;
    for (size_t p = 0; p < was.size(); ++p) {
      if (was[p].has_state != is[p].has_state || was[p].step != is[p].step) return true;
    }
  }
  return false;
}

/// "Adam" of torch::optim::Adam.
std::string type_name(const Optimizer& optimizer) {
  switch (kind_of(optimizer)) {
    case OptimizerKind::sgd:
      return "SGD";
    case OptimizerKind::adam:
      return "Adam";
    case OptimizerKind::adamw:
      return "AdamW";
    case OptimizerKind::other:
      break;
  }
  const std::string name = c10::demangle(typeid(optimizer).name());
  const size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

/// The break of a step of an optimizer that the options do not name.
std::optional<GraphBreak> unnamed_step(const Trace& trace, std::span<const OptimizerFacts> named) {
  for (const auto& [step, parameter] : trace.steps) {
    const auto* wanted = parameter._unsafe_get_target();
    const bool known = std::any_of(named.begin(), named.end(), [&](const OptimizerFacts& facts) {
      return std::any_of(facts.groups.begin(), facts.groups.end(), [&](const GroupFacts& group) {
        return std::any_of(group.parameters.begin(), group.parameters.end(),
                           [&](const ParameterFacts& known_one) { return known_one.tensor == wanted; });
      });
    });
    if (known) continue;
    return unstable(step + " computes numbers on the host, from options that may change and from counters",
                    "name the optimizer: sinter::compile(step, {.optimizers = {&optimizer}})");
  }
  return std::nullopt;
}

/// What keeps two states of an optimizer from doing the same; nothing when they do.
std::optional<GuardMiss> difference(const OptimizerFacts& was, const OptimizerFacts& is) {
  const auto count = [](const OptimizerFacts& facts) { return std::to_string(facts.groups.size()); };
  if (was.groups.size() != is.groups.size()) return GuardMiss{was.type + ": groups", count(was), count(is)};
  for (size_t g = 0; g < was.groups.size(); ++g) {
    const GroupFacts &a = was.groups[g], &b = is.groups[g];
    const auto subject = fmt::format("{}: group {}: ", was.type, g);
    if (!same_numbers(a.options, b.options)) {
      return GuardMiss{subject + "options", fmt::format("{}", fmt::join(a.options, ", ")),
                       fmt::format("{}", fmt::join(b.options, ", "))};
    }
    if (a.parameters.size() != b.parameters.size()) return GuardMiss{subject + "parameters", "as captured", "others"};
    for (size_t p = 0; p < a.parameters.size(); ++p) {
      if (a.parameters[p].tensor != b.parameters[p].tensor)
        return GuardMiss{subject + "parameters", "as captured", "others"};
      if (a.parameters[p].has_state == b.parameters[p].has_state) continue;
      return GuardMiss{fmt::format("{}state of parameter {}", subject, p), a.parameters[p].has_state ? "there" : "none",
                       b.parameters[p].has_state ? "there" : "none"};
    }
  }
  return std::nullopt;
}

}  // namespace

OptimizerFacts OptimizerFacts::of(Optimizer& optimizer) {
  OptimizerFacts facts;
  facts.optimizer = &optimizer;
  facts.kind = kind_of(optimizer);
  facts.type = type_name(optimizer);
  const auto& states = optimizer.state();
  for (const auto& group : optimizer.param_groups()) {
    GroupFacts& known = facts.groups.emplace_back();
    known.lr = lr_of(group.options(), facts.kind);
    known.options = options_of(group.options(), facts.kind);
    known.parameters.reserve(group.params().size());
    for (const at::Tensor& tensor : group.params()) {
      auto* impl = tensor.unsafeGetTensorImpl();
      const auto state = states.find(impl);
      const bool has_state = state != states.end();
      known.parameters.push_back({impl, has_state, has_state ? step_of(*state->second, facts.kind) : 0});
    }
  }
  return facts;
}

std::vector<OptimizerFacts> facts_of(std::span<Optimizer* const> optimizers) {
  std::vector<OptimizerFacts> facts;
  for (Optimizer* optimizer : optimizers) facts.push_back(OptimizerFacts::of(*optimizer));
  return facts;
}

std::vector<WeakTensor> parameters_of(std::span<Optimizer* const> optimizers) {
  std::vector<WeakTensor> parameters;
  for (Optimizer* optimizer : optimizers) {
    for (const auto& group : optimizer->param_groups()) {
      for (const at::Tensor& tensor : group.params()) parameters.push_back(weaken(tensor));
    }
  }
  return parameters;
}

OptimizerUse optimizer_use(const Trace& trace, std::span<const OptimizerFacts> before,
                           std::span<const OptimizerFacts> after) {
  OptimizerUse use;
  use.graph_break = unnamed_step(trace, before);
  if (trace.graph_break) return use;  // incomplete
  const Search search(trace);
  for (uint32_t i = 0; i < before.size() && !use.graph_break; ++i) {
    use.graph_break = use_of(search, before[i], after[i], i, use.numbers);
  }
  return use;
}

double value_of(const OptimizerNumber& number, std::span<const OptimizerFacts> before) {
  const GroupFacts& group = before[number.optimizer].groups[number.group];
  return value_of(number.formula, group, group.parameters[number.parameter].step);
}

void OptimizerLink::set(std::vector<OptimizerFacts> before, std::span<const OptimizerFacts> after,
                        std::vector<OptimizerNumber> numbers, Keep keep) {
  numbers_ = std::move(numbers);
  before_ = std::move(before);
  for (uint32_t i = 0; i < before_.size(); ++i) {
    const bool has_number =
        std::any_of(numbers_.begin(), numbers_.end(), [i](const auto& n) { return n.optimizer == i; });
    if (keep == Keep::all || has_number || was_used(before_[i], after[i])) used_.push_back(i);
  }
  for (const uint32_t i : used_) {
    for (uint32_t g = 0; g < before_[i].groups.size(); ++g) {
      const auto &was = before_[i].groups[g].parameters, &is = after[i].groups[g].parameters;
      for (uint32_t p = 0; p < was.size(); ++p) {
        if (was[p].step != is[p].step) stepped_.push_back({i, was[p].tensor});
        made_state_ = made_state_ || was[p].has_state != is[p].has_state;
      }
    }
  }
}

bool OptimizerLink::holds() const {
  return std::all_of(used_.begin(), used_.end(),
                     [this](uint32_t i) { return !difference(before_[i], OptimizerFacts::of(*before_[i].optimizer)); });
}

bool OptimizerLink::held_before(const OptimizerLink& other) const {
  return std::all_of(used_.begin(), used_.end(), [&](uint32_t i) { return !difference(before_[i], other.before_[i]); });
}

bool OptimizerLink::is_number(const NumberPlace& place) const {
  return std::any_of(numbers_.begin(), numbers_.end(), [&](const auto& number) { return number.place == place; });
}

const OptimizerNumber* OptimizerLink::number_of_content(uint32_t content) const {
  const auto found =
      std::find_if(numbers_.begin(), numbers_.end(), [&](const auto& number) { return number.content == content; });
  return found == numbers_.end() ? nullptr : &*found;
}

std::vector<uint32_t> OptimizerLink::contents() const {
  std::vector<uint32_t> contents;
  for (const OptimizerNumber& number : numbers_) contents.push_back(number.content);
  return contents;
}

void OptimizerLink::misses(std::vector<GuardMiss>& out) const {
  for (const uint32_t i : used_) {
    if (auto miss = difference(before_[i], OptimizerFacts::of(*before_[i].optimizer))) out.push_back(std::move(*miss));
  }
}

void OptimizerLink::describe(std::vector<std::string>& words) const {
  for (const uint32_t i : used_) {
    words.push_back(fmt::format("{}: same parameters, same options but for the learning rate", before_[i].type));
  }
}

void OptimizerLink::add_contents(Trace& trace) {
  for (OptimizerNumber& number : numbers_) {
    number.content = static_cast<uint32_t>(trace.contents.size());
    at::Tensor value = at::scalar_tensor(value_of(number, before_), at::kDouble);
    value.unsafeGetTensorImpl()->set_wrapped_number(true);
    trace.contents.push_back({std::move(value)});
  }
}

ir::Graph OptimizerLink::bind(ir::Graph graph, const Trace& trace) const {
  std::vector<ir::NodeId> order = graph.order();
  std::vector<ir::NodeId> added;
  for (const OptimizerNumber& number : numbers_) {
    added.push_back(graph.add(ir::Constant{number.content}, {}, {type_of(trace.contents[number.content].value)}));
    graph.node(number.place.node).args[number.place.path[0]] = {graph.node(added.back()).results[0]};
  }
  const auto first_call =
      std::find_if(order.begin(), order.end(), [&](ir::NodeId id) { return graph.node(id).as<ir::Call>() != nullptr; });
  order.insert(first_call, added.begin(), added.end());
  graph.set_order(std::move(order));
  return graph;
}

std::optional<std::string> OptimizerLink::number_difference(const Trace& first,
                                                            std::span<const NumberDifference> differences,
                                                            std::span<const OptimizerFacts> before) const {
  for (const NumberDifference& difference : differences) {
    if (!is_number(difference.place)) return frontend::describe(difference, first);
  }
  for (const OptimizerNumber& number : numbers_) {
    const auto differs = std::find_if(differences.begin(), differences.end(),
                                      [&](const NumberDifference& d) { return d.place == number.place; });
    const auto& node = first.graph.node(number.place.node);
    const double now = differs == differences.end() ? std::get<double>(node.args[number.place.path[0]].data)
                                                    : std::get<double>(differs->second);
    const double expected = value_of(number, before);
    if (same_number(now, expected)) continue;
    return fmt::format("{}: a number of torch::optim::{} is {}, expected {}", node.as<ir::Call>()->op,
                       before_[number.optimizer].type, now, expected);
  }
  return std::nullopt;
}

void OptimizerLink::fill(std::span<const ContentSlot> contents) const {
  if (numbers_.empty()) return;
  std::vector<OptimizerFacts> now(before_.size());
  for (const uint32_t i : used_) now[i] = OptimizerFacts::of(*before_[i].optimizer);
  for (const OptimizerNumber& number : numbers_) {
    *contents[number.content].value.mutable_data_ptr<double>() = value_of(number, now);
  }
}

void OptimizerLink::advance() const {
  for (const auto& [i, tensor] : stepped_) {
    const auto& states = before_[i].optimizer->state();
    const auto state = states.find(const_cast<c10::TensorImpl*>(tensor));
    if (state != states.end()) count_step(*state->second, before_[i].kind);
  }
}

}  // namespace sinter::frontend
