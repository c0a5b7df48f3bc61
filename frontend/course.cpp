#include "frontend/course.h"

#include <algorithm>
#include <cstring>

#include "compiler/ir/print.h"
#include "compiler/passes/pipeline.h"
#include "frontend/convert.h"
#include "frontend/generator_states.h"
#include "frontend/host_call.h"
#include "frontend/tensor_memory.h"

namespace sinter::frontend {
namespace {

std::vector<passes::Segment> segments_of(const ir::Graph& captured, uint32_t inputs) {
  ir::Graph graph = captured;
  passes::run_pass("functionalize", graph, {});
  return passes::split_at_reads(graph, inputs);
}

std::vector<StateSlot> states_used(const ir::Graph& graph, const Trace& trace) {
  std::vector<StateSlot> slots;
  for (const ir::NodeId id : graph.order()) {
    if (const auto* state = graph.node(id).as<ir::State>()) slots.push_back(trace.states.at(state->index));
  }
  return slots;
}

/// Arguments, and gradients that the call found and used.
uint32_t inputs_of(const Trace& trace, const detail::Flat& arguments) {
  const auto reads = [](const GradientSlot& slot) { return slot.read.has_value(); };
  const auto gradients = std::count_if(trace.gradients.begin(), trace.gradients.end(), reads);
  return static_cast<uint32_t>(arguments.tensors.size() + static_cast<size_t>(gradients));
}

bool uses_number(const ir::Graph& graph, const OptimizerLink& optimizers) {
  return std::any_of(graph.order().begin(), graph.order().end(), [&](ir::NodeId id) {
    const auto* content = graph.node(id).as<ir::Constant>();
    return content != nullptr && optimizers.number_of_content(content->index) != nullptr;
  });
}

bool writes(const ir::Graph& graph) {
  return std::any_of(graph.order().begin(), graph.order().end(),
                     [&](ir::NodeId id) { return graph.node(id).as<ir::Write>() != nullptr; });
}

Guards guards_over(std::span<const StateSlot> states, std::span<const at::Tensor> results, const Modes& modes) {
  Guards guards({}, modes, {});
  guards.add_states(states, results);
  return guards;
}

bool same_content(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage().nbytes() == b.storage().nbytes() &&
         (a.storage().nbytes() == 0 || std::memcmp(a.storage().data(), b.storage().data(), a.storage().nbytes()) == 0);
}

/// True when the opaque ones among arguments of both courses are the same.
bool same_opaques(const std::vector<ir::Arg>& args, const Course& a, const Course& b) {
  return std::all_of(args.begin(), args.end(), [&](const ir::Arg& arg) {
    const auto* opaque = std::get_if<ir::Opaque>(&arg.data);
    return opaque == nullptr || same_opaque(a.trace.opaques.at(opaque->index), b.trace.opaques.at(opaque->index));
  });
}

/// True when a content is the same in both courses: a number of one optimizer, or equal bytes.
bool same_content(uint32_t content, const Course& a, const Course& b) {
  const OptimizerNumber* first = a.optimizers->number_of_content(content);
  const OptimizerNumber* second = b.optimizers->number_of_content(content);
  if (first != nullptr || second != nullptr) return first != nullptr && second != nullptr && first->computes(*second);
  return same_content(a.trace.contents.at(content).value, b.trace.contents.at(content).value);
}

/// True when what a graph calls state, content and opaque arguments is the same of both courses.
bool same_tables(const ir::Graph& graph, const Course& a, const Course& b) {
  return std::all_of(graph.order().begin(), graph.order().end(), [&](ir::NodeId id) {
    const ir::Node& node = graph.node(id);
    if (const auto* state = node.as<ir::State>()) {
      return a.trace.states.at(state->index).tensor._unsafe_get_target() ==
             b.trace.states.at(state->index).tensor._unsafe_get_target();
    }
    if (const auto* content = node.as<ir::Constant>()) return same_content(content->index, a, b);
    return same_opaques(node.args, a, b);
  });
}

bool same_read(const std::optional<passes::ReadCall>& a, const std::optional<passes::ReadCall>& b) {
  return a.has_value() == b.has_value() && (!a || (a->call.op == b->call.op && a->args == b->args));
}

}  // namespace

GraphBreak shared_state_break(const std::string& what) {
  return {.code = BreakCode::input_mutation,
          .op = {},
          .where = {},
          .reason = what + ", and the call writes to inputs or state",
          .hint = "pass a clone"};
}

Course::Course(Trace recorded, std::string result_structure, std::shared_ptr<OptimizerLink> link,
               std::span<const at::Tensor> results, const detail::Flat& arguments, const Modes& modes)
    : trace(std::move(recorded)),
      optimizers(link),
      structure(std::move(result_structure)),
      inputs(inputs_of(trace, arguments)),
      guards(arguments, modes, {}),
      generators(generators_of(trace)) {
  guards.add_states(trace.states, results);
  guards.add_gradients(trace.gradients);
  guards.add_optimizers(optimizers);
  gradients.add(trace.gradients);
  link->add_contents(trace);
  split(trace.graph, results, modes);
  if (!writes(segments.back().graph)) return;
  if (const auto shared = guards.keep_apart()) {
    shares_state = shared_state_break(*shared);
  }
}

void Course::split(const ir::Graph& graph, std::span<const at::Tensor> results, const Modes& modes) {
  segments = segments_of(optimizers->bind(graph, trace), inputs);
  texts.clear();
  state_guards.clear();
  uses_numbers.clear();
  for (const passes::Segment& segment : segments) {
    texts.push_back(ir::print(segment.graph));
    state_guards.push_back(guards_over(states_used(segment.graph, trace), results, modes));
    uses_numbers.push_back(uses_number(segment.graph, *optimizers));
  }
}

void Course::take(std::vector<Operand> numbers, std::span<const at::Tensor> results, const Modes& modes) {
  operands = std::move(numbers);
  split(graph_with_operands(trace, operands), results, modes);
}

bool Course::widen(const std::vector<Operand>& wider) {
  const auto own = [this](const Operand& other) {
    const Operand* known = operand(other.read);
    return known != nullptr && known->arguments.size() == other.arguments.size() && known->results == other.results;
  };
  if (wider.size() != operands.size() || !std::all_of(wider.begin(), wider.end(), own)) return false;
  for (Operand& known : operands) {
    const auto other =
        std::find_if(wider.begin(), wider.end(), [&](const Operand& operand) { return operand.read == known.read; });
    known.range = other->range;
  }
  return true;
}

const Operand* Course::operand(size_t read) const {
  const auto found =
      std::find_if(operands.begin(), operands.end(), [read](const Operand& operand) { return operand.read == read; });
  return found == operands.end() ? nullptr : &*found;
}

size_t common_reads(const Course& a, const Course& b) {
  const auto& first = a.trace.reads;
  const auto& second = b.trace.reads;
  size_t count = 0;
  const auto same = [&](size_t read) {
    return first[read].outcome == second[read].outcome && !a.operand(read) && !b.operand(read);
  };
  while (count < std::min(first.size(), second.size()) && same(count)) ++count;
  return count;
}

std::optional<std::string> contradiction(const Course& a, const Course& b) {
  const size_t common = common_reads(a, b);
  for (size_t i = 0; i <= common; ++i) {
    const passes::Segment& first = a.segments[i];
    const passes::Segment& second = b.segments[i];
    const bool same = a.texts[i] == b.texts[i] && first.taken == second.taken && same_read(first.read, second.read) &&
                      same_tables(first.graph, a, b) && (!first.read || same_opaques(first.read->args, a, b));
    if (!same) return "it did something else after reading the same " + std::to_string(i) + " values";
  }
  return std::nullopt;
}

std::vector<std::string> describe_reads(const Course& course) {
  std::vector<std::string> words;
  for (const HostRead& read : course.trace.reads) {
    const ir::Node& node = course.trace.graph.node(read.node);
    std::string text = node.as<ir::Call>()->op;
    if (const std::string value = read.outcome.text(); !value.empty()) text += " " + value;
    if (node.scope.valid()) {
      const ir::Scope& scope = course.trace.graph.scope(node.scope);
      if (const auto place = ir::place_text(scope.module, scope.source); !place.empty()) text += "  " + place;
    }
    words.push_back(std::move(text));
  }
  return words;
}

std::vector<GuardMiss> first_other_read(std::span<const std::shared_ptr<Course>> known, const Course& course) {
  if (known.empty()) return {};
  const auto& is = course.trace.reads;
  const auto follows = [&](const Course& other, size_t read) {
    const Operand* operand = other.operand(read);
    if (operand == nullptr) return other.trace.reads[read].outcome == is[read].outcome;
    const auto number = is[read].outcome.number();
    return number && (!operand->range || operand->range->holds(*number));
  };
  const auto followed = [&](const std::shared_ptr<Course>& other) {
    size_t count = 0;
    while (count < std::min(other->trace.reads.size(), is.size()) && follows(*other, count)) ++count;
    return count;
  };
  const auto nearest = std::ranges::max_element(known, {}, followed);
  const size_t read = followed(*nearest);
  const auto& was = (*nearest)->trace.reads;
  if (read >= std::min(was.size(), is.size())) return {{.guard = "state", .was = "as recorded", .is = "another"}};
  const ir::Node& node = course.trace.graph.node(is[read].node);
  return {{.guard = "host read " + std::to_string(read) + ": " + node.as<ir::Call>()->op,
           .was = was[read].outcome.text(),
           .is = is[read].outcome.text()}};
}

}  // namespace sinter::frontend
