#include "frontend/trace/path_graph.h"

#include <c10/util/hash.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "frontend/trace/captured_graph.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {
namespace {

class GraphBuilder {
 public:
  explicit GraphBuilder(std::span<const TraceValueId> states) : states_(states) {}

  void add(const PathNode& node) {
    const Step& step = node.step;
    first_memory_ = memories_.size();
    memories_.insert(memories_.end(), step.memories.begin(), step.memories.end());
    for (const TraceValue& value : step.taken) take(value);
    values_.insert(values_.end(), step.made.begin(), step.made.end());
    ids_.resize(values_.size());
    if (!is_mere_look(step)) add_call(step, node.live.load(std::memory_order_relaxed));
    ++steps_;
  }

  PathGraph finish(std::span<const TraceMemoryId> escaped) {
    for (const TraceMemoryId memory : escaped) {
      result_.graph.outputs.push_back(ids_[memories_[memory.index].root.index]);
    }
    result_.graph.device = device_of_most_values(result_.graph);
    order_inputs_first();
    return std::move(result_);
  }

 private:
  [[nodiscard]] ir::Type type_of(const TraceValue& value) const {
    return value.elements.type(memories_[value.memory.index].device);
  }

  [[nodiscard]] ir::Alias alias_of(const TraceValue& value) const {
    const TraceValueId from = memories_[value.memory.index].root;
    const Elements& base = values_[from.index].elements;
    const bool across = base.dtype != value.elements.dtype;
    return {ids_[from.index], across ? 0 : value.elements.offset - base.offset};
  }

  void take(const TraceValue& value) {
    values_.push_back(value);
    if (value.from == TraceValue::From::look) {
      const ir::Alias alias = alias_of(value);
      const Elements& seen = value.elements;
      const auto id =
          result_.graph.add1(ir::Call{"aten::as_strided", {}, {}, false, false},
                             as_strided_args(alias.base, seen.sizes, seen.strides, seen.offset), type_of(value));
      result_.graph.value(id).alias = alias;
      result_.graph.value(id).hint = "as_strided";
      ids_.push_back(id);
      return;
    }
    const TraceValueId self{static_cast<uint32_t>(values_.size() - 1)};
    ids_.push_back(std::ranges::find(states_, self) == states_.end() ? take_input(self, value)
                                                                     : take_state(self, value));
  }

  ir::ValueId take_input(TraceValueId self, const TraceValue& value) {
    const auto index = static_cast<uint32_t>(result_.inputs.size());
    const auto id = result_.graph.add1(ir::Input{index}, {}, type_of(value));
    result_.graph.value(id).hint = fmt::format("x{}", index);
    result_.inputs.push_back({.value = self, .step = steps_});
    result_.alignments.push_back(value.alignment);
    return id;
  }

  ir::ValueId take_state(TraceValueId self, const TraceValue& value) {
    const auto index = static_cast<uint32_t>(result_.states.size());
    const auto id = result_.graph.add1(ir::State{index, fmt::format("state{}", index)}, {}, type_of(value));
    result_.graph.value(id).hint = fmt::format("state{}", index);
    result_.states.push_back(self);
    result_.state_alignments.push_back(value.alignment);
    return id;
  }

  /// True for a call that gives what was there: detach, alias.
  static bool is_mere_look(const Step& step) {
    return step.written.empty() && step.made.empty() && !step.facts->impure && !step.results.empty();
  }

  /// A 0-dim CPU tensor that holds a number of the step.
  ir::ValueId take_number(const StepNumber& number, uint32_t position) {
    const auto index = static_cast<uint32_t>(result_.inputs.size());
    const auto id = result_.graph.add1(ir::Input{index}, {}, ir::contiguous(number.dtype, {}, ir::Device{}));
    result_.graph.value(id).hint = fmt::format("number{}", index);
    result_.inputs.push_back({.step = steps_, .number = position, .dtype = number.dtype});
    result_.alignments.push_back(ir::full_alignment);
    return id;
  }

  void add_call(const Step& step, uint64_t live) {
    const OpFacts& facts = *step.facts;
    ir::Call call{facts.name, step.mutates, facts.functional, step.draw.has_value(), facts.impure};
    std::vector<ir::Arg> args = step.args;
    const auto opaque_base = static_cast<uint32_t>(result_.opaques.size());
    for (ir::Arg& arg : args) translate(arg, opaque_base);
    for (uint32_t i = 0; i < step.numbers.size(); ++i) {
      if ((live >> i & 1) != 0) args[step.numbers[i].argument] = {take_number(step.numbers[i], i)};
    }
    result_.opaques.insert(result_.opaques.end(), step.opaques.begin(), step.opaques.end());
    std::vector<ir::Type> types;
    for (const TraceValueId value : step.results) types.push_back(type_of(values_[value.index]));
    const ir::ScopeId scope =
        step.module.empty() && step.source.empty() ? ir::ScopeId{} : result_.graph.scope({step.module, step.source});
    const ir::NodeId node = result_.graph.add(std::move(call), std::move(args), std::move(types), scope);
    const std::vector<ir::ValueId> made = result_.graph.node(node).results;
    for (size_t i = 0; i < made.size(); ++i) place(step, step.results[i], made[i]);
  }

  void place(const Step& step, TraceValueId value, ir::ValueId id) {
    result_.graph.value(id).hint = value_hint(step.facts->name);
    const bool known = ids_[value.index].valid();
    const TraceMemoryId memory = values_[value.index].memory;
    const bool is_root = memories_[memory.index].root == value && memory.index >= first_memory_ && !known;
    const bool is_input = known && values_[value.index].from == TraceValue::From::input;
    if (is_input) {
      result_.graph.value(id).alias = ir::Alias{ids_[value.index], 0};
    } else if (!is_root) {
      result_.graph.value(id).alias = alias_of(values_[value.index]);
    }
    if (!known) ids_[value.index] = id;
  }

  void translate(ir::Arg& arg, uint32_t opaque_base) const {
    ir::for_each_value(arg, [&](ir::ValueId& value) { value = ids_[value.index]; });
    translate_opaques(arg, opaque_base);
  }

  static void translate_opaques(ir::Arg& arg, uint32_t opaque_base) {
    if (auto* opaque = std::get_if<ir::Opaque>(&arg.data)) opaque->index += opaque_base;
    if (auto* list = std::get_if<ir::ArgList>(&arg.data)) {
      for (ir::Arg& item : *list) translate_opaques(item, opaque_base);
    }
  }

  void order_inputs_first() {
    std::vector<ir::NodeId> order = result_.graph.order();
    std::ranges::stable_partition(order, [this](ir::NodeId id) {
      const ir::Node& node = result_.graph.node(id);
      return node.as<ir::Input>() != nullptr || node.as<ir::State>() != nullptr;
    });
    result_.graph.set_order(std::move(order));
  }

  const std::span<const TraceValueId> states_;
  PathGraph result_;
  std::vector<TraceValue> values_;
  std::vector<TraceMemory> memories_;
  std::vector<ir::ValueId> ids_;  ///< by value
  size_t first_memory_ = 0;       ///< of the step that is added
  uint32_t steps_ = 0;            ///< before it
};

}  // namespace

PathHash PathHash::of(std::span<const PathNode* const> steps) {
  PathHash hash;
  const auto add = [](size_t& seed, size_t value) { seed = c10::hash_combine(seed, value); };
  for (const PathNode* node : steps) {
    add(hash.operators, std::hash<const void*>()(&node->step.op->schema()));
    for (const auto* values : {&node->step.taken, &node->step.made}) {
      for (const TraceValue& value : *values) {
        add(hash.operators, static_cast<size_t>(value.elements.dtype));
        for (const int64_t size : value.elements.sizes) add(hash.sizes, static_cast<size_t>(size));
      }
    }
  }
  return hash;
}

PathGraph graph_of(std::span<const PathNode* const> steps, std::span<const TraceMemoryId> escaped,
                   std::span<const TraceValueId> states) {
  GraphBuilder builder(states);
  for (const PathNode* node : steps) builder.add(*node);
  return builder.finish(escaped);
}

}  // namespace sinter::frontend
