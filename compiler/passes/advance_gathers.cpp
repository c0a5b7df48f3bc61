#include "compiler/passes/advance_gathers.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/view_source.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t fewest_elements_of_one = 4;  ///< of the operand, for one that is gathered
constexpr size_t most_computed = 16;           ///< primitives that are done for gathered elements

/// One gather of what primitives compute.
class Advance {
 public:
  Advance(Rewriter& rewrite, const Node& node)
      : rewrite_(rewrite),
        graph_(rewrite.old()),
        node_(node),
        operand_(*node.args[0].value()),
        result_(graph_.type(node.results[0])) {}

  /// True where all that has as many elements as the operand, and is no primitive's, lies in memory.
  [[nodiscard]] bool may_be_advanced() {
    const Type& operand = graph_.type(operand_);
    if (!operand.is_static() || !result_.is_static() || !is_primitive(operand_) || !has_whole_sizes()) return false;
    return result_.numel() * fewest_elements_of_one <= operand.numel() && reads_memory(operand_);
  }

  ValueId run() { return computed(operand_); }

 private:
  [[nodiscard]] bool is_primitive(ValueId value) const { return graph_.producer(value).as<Primitive>() != nullptr; }
  [[nodiscard]] bool is_gathered(size_t dim) const {
    const std::vector<uint32_t>& dims = node_.as<Gather>()->dims;
    return std::ranges::find(dims, dim) != dims.end();
  }

  /// Along dims that are not gathered the operand has the result's sizes: none is repeated.
  [[nodiscard]] bool has_whole_sizes() const {
    for (size_t d = 0; d < result_.rank(); ++d) {
      if (!is_gathered(d) && graph_.type(operand_).sizes[d] != result_.sizes[d]) return false;
    }
    return true;
  }

  /// True for a value that has one element along every gathered dim, as it broadcasts to the operand.
  [[nodiscard]] bool is_the_same_everywhere(const Type& type) const {
    const size_t before = result_.rank() - type.rank();
    for (size_t d = 0; d < type.rank(); ++d) {
      if (is_gathered(before + d) && type.sizes[d] != Dim(1)) return false;
    }
    return true;
  }

  /// Looks at what is to be computed for gathered elements, each value once.
  bool reads_memory(ValueId value) {
    if (!seen_.insert(value).second) return true;
    if (!is_primitive(value)) return !is_computed(graph_.producer(memory_base(graph_, value)));
    if (graph_.value(value).alias || ++primitives_ > most_computed) return false;
    return std::ranges::all_of(graph_.producer(value).args, [&](const Arg& arg) {
      return arg.value() == nullptr || is_the_same_everywhere(graph_.type(*arg.value())) || reads_memory(*arg.value());
    });
  }

  /// The gathered elements of what a primitive computes.
  ValueId computed(ValueId value) {
    if (const auto known = made_.find(value); known != made_.end()) return known->second;
    const Node& producer = graph_.producer(value);
    std::vector<Arg> args = producer.args;
    for (Arg& arg : args) {
      if (arg.value() != nullptr) arg.data = element(*arg.value());
    }
    Type type = contiguous(graph_.type(value).dtype, result_.sizes, result_.device);
    if (value == operand_) type = result_;
    const ValueId made = rewrite_.add(producer.payload, std::move(args), std::move(type), producer.scope);
    made_.emplace(value, made);
    return made;
  }

  ValueId element(ValueId value) {
    if (is_the_same_everywhere(graph_.type(value))) return rewrite_.get(value);
    return is_primitive(value) ? computed(value) : gathered(value);
  }

  /// The gathered elements of what lies in memory, with dims of size 1 in front where it has fewer.
  ValueId gathered(ValueId value) {
    if (const auto known = made_.find(value); known != made_.end()) return known->second;
    Type seen = graph_.type(value);
    const size_t missing = result_.rank() - seen.rank();
    seen.sizes.insert(seen.sizes.begin(), missing, Dim(1));
    seen.strides.insert(seen.strides.begin(), missing, Dim(1));
    ValueId from = rewrite_.get(value);
    if (missing > 0) from = rewrite_.add(View{0}, {{from}}, seen, node_.scope);
    std::vector<Arg> args = rewrite_.map_args(node_.args);
    args[0] = {from};
    Type type = contiguous(seen.dtype, result_.sizes, result_.device);
    const ValueId made = rewrite_.add(*node_.as<Gather>(), std::move(args), std::move(type), node_.scope);
    made_.emplace(value, made);
    return made;
  }

  Rewriter& rewrite_;
  const Graph& graph_;
  const Node& node_;
  const ValueId operand_;
  const Type& result_;
  size_t primitives_ = 0;
  std::unordered_set<ValueId> seen_;
  std::unordered_map<ValueId, ValueId> made_;
};

}  // namespace

PassResult advance_gathers(Graph& graph, const PassContext&) {
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    if (node.as<Gather>() == nullptr) return std::nullopt;
    Advance advance(rewrite, node);
    return advance.may_be_advanced() ? std::optional(advance.run()) : std::nullopt;
  });
}

}  // namespace sinter::passes
