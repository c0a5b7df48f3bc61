#include "frontend/operands.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "compiler/ir/memory.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/pointwise.h"
#include "sinter/detail/flatten.h"

namespace sinter::frontend {
namespace {

using detail::Tag;

/// Where a kernel takes a number per call and computes with it what eager computes.
constexpr std::array<std::string_view, 8> kArithmetic{"aten::add", "aten::sub",   "aten::rsub",      "aten::mul",
                                                      "aten::div", "aten::clamp", "aten::clamp_min", "aten::clamp_max"};

/// Equal to the bit, and of one type.
bool same_scalar(const ir::Scalar& a, const ir::Scalar& b) {
  if (a.index() != b.index()) return false;
  if (const auto* real = std::get_if<double>(&a)) return same_number(*real, std::get<double>(b));
  return a == b;
}

int sign(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

/// The offsets of the numbers in a structure, one for each that it holds.
std::vector<size_t> number_offsets(std::string_view structure) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < structure.size();) {
    const auto tag = static_cast<Tag>(structure[at]);
    if (tag == Tag::tensor || tag == Tag::undefined || tag == Tag::empty) {
      ++at;
      continue;
    }
    int64_t count = 0;
    std::memcpy(&count, structure.data() + at + 1, sizeof count);
    if (tag == Tag::real) offsets.push_back(at + 1);
    at += 9 + (tag == Tag::text ? static_cast<size_t>(count) : 0);
  }
  return offsets;
}

double number_at(std::string_view structure, size_t offset) {
  double value = 0;
  std::memcpy(&value, structure.data() + offset, sizeof value);
  return value;
}

/// The dtype in which a node takes a number that is passed to it per call; nothing where it cannot.
std::optional<ir::DType> operand_dtype(const ir::Graph& graph, const NumberPlace& place) {
  const ir::Node& node = graph.node(place.node);
  const auto* call = node.as<ir::Call>();
  if (call == nullptr || place.part != NumberPlace::Part::argument || place.path.size() != 1) {
    return std::nullopt;
  }
  const std::string_view base = passes::base_name(call->op);
  if (place.path[0] > (base == "aten::clamp" ? 2U : 1U)) return std::nullopt;  // others scale by what comes third
  const bool plain = call->mutates.empty() && !call->random && node.results.size() == 1;
  if (!plain || std::find(kArithmetic.begin(), kArithmetic.end(), base) == kArithmetic.end()) return std::nullopt;
  const ir::DType dtype = graph.type(node.results[0]).dtype;
  return dtype == ir::DType::f32 || dtype == ir::DType::f64 ? std::optional(dtype) : std::nullopt;
}

/// True when an operator reads one tensor twice, and nothing writes its memory between.
bool read_the_same(const ir::Graph& graph, ir::NodeId first, ir::NodeId second) {
  const ir::Node& node = graph.node(first);
  const ir::ValueId* value = node.args.empty() ? nullptr : node.args[0].value();
  if (value == nullptr || node.as<ir::Call>()->op != graph.node(second).as<ir::Call>()->op) return false;
  if (node.args != graph.node(second).args) return false;
  const auto writes = [&, root = ir::memory_of(graph, *value)](ir::NodeId id) {
    bool found = false;
    const ir::Node& between = graph.node(id);
    const auto* call = between.as<ir::Call>();
    for (const uint32_t position : call != nullptr ? call->mutates : std::vector<uint32_t>{}) {
      ir::for_each_value(between.args[position],
                         [&](ir::ValueId written) { found = found || ir::memory_of(graph, written) == root; });
    }
    return found;
  };
  const auto& order = graph.order();
  return std::none_of(std::find(order.begin(), order.end(), first), std::find(order.begin(), order.end(), second),
                      writes);
}

/// Finds the reads that explain differences.
class Explanation {
 public:
  Explanation(const Recorded& now, const Recorded& known) : now_(now), known_(known) {}

  std::optional<std::vector<Operand>> run() {
    TraceComparison found = compare(now_.trace, known_.trace);
    if (found.other || now_.trace.reads.size() != known_.trace.reads.size()) return std::nullopt;
    keep_equal_operands();
    const auto of_optimizer = [&](const NumberDifference& d) { return now_.optimizers.is_number(d.place); };
    const auto rest = std::stable_partition(found.numbers.begin(), found.numbers.end(), of_optimizer);
    if (now_.optimizers.number_difference(now_.trace, {found.numbers.begin(), rest}, known_.optimizers.before())) {
      return std::nullopt;
    }
    const bool explained =
        std::all_of(rest, found.numbers.end(), [this](const NumberDifference& d) { return explain_argument(d); });
    if (!explained || !explain_results() || !explain_reads() || !ranges()) return std::nullopt;
    return std::move(operands_);
  }

 private:
  /// What is an operand of the known recording stays one where its number happens to be the same this time.
  void keep_equal_operands() {
    for (const Operand& operand : known_.operands) {
      const HostRead& read = now_.trace.reads[operand.read];
      if (!(read.outcome == known_.trace.reads[operand.read].outcome)) continue;
      Operand kept = operand;
      for (NumberPlace& place : kept.arguments) place.node = counterpart(place.node);
      operands_.push_back(std::move(kept));
    }
  }

  /// The node of this recording in the place of one of the known one.
  [[nodiscard]] ir::NodeId counterpart(ir::NodeId known) const {
    const auto& order = known_.trace.graph.order();
    const auto place = std::find(order.begin(), order.end(), known) - order.begin();
    return now_.trace.graph.order()[static_cast<size_t>(place)];
  }

  static bool holds_float(const HostRead& read) {
    const auto number = read.outcome.number();
    return number && std::holds_alternative<double>(*number);
  }

  [[nodiscard]] std::vector<Operand>::iterator find(uint32_t read) {
    return std::find_if(operands_.begin(), operands_.end(), [read](const Operand& o) { return o.read == read; });
  }

  /// The operand that is these numbers in the two recordings. Nothing where reads of different things gave them: which
  /// of them it is stays open.
  Operand* operand_of(const ir::Scalar& now, const ir::Scalar& known) {
    std::optional<uint32_t> read;
    for (uint32_t i = 0; i < now_.trace.reads.size(); ++i) {
      const HostRead& a = now_.trace.reads[i];
      const HostRead& b = known_.trace.reads[i];
      if (!holds_float(a) || !holds_float(b)) continue;
      if (!same_scalar(*a.outcome.number(), now) || !same_scalar(*b.outcome.number(), known)) continue;
      if (read && !read_the_same(now_.trace.graph, now_.trace.reads[*read].node, a.node)) return nullptr;
      if (!read) read = i;
    }
    if (!read) return nullptr;
    const auto found = find(*read);
    if (found != operands_.end()) return &*found;
    return &operands_.emplace_back(Operand{.read = *read, .range = {}, .arguments = {}, .results = {}});
  }

  bool explain_argument(const NumberDifference& difference) {
    Operand* operand = operand_of(difference.first, difference.second);
    if (operand == nullptr || !operand_dtype(now_.trace.graph, difference.place)) return false;
    const ir::NodeId read = now_.trace.reads[operand->read].node;
    if (read.index > difference.place.node.index) return false;
    operand->arguments.push_back(difference.place);
    return true;
  }

  bool explain_results() {
    const auto offsets = number_offsets(now_.structure);
    if (now_.structure.size() != known_.structure.size() || offsets != number_offsets(known_.structure)) return false;
    std::string same_but_numbers(known_.structure);
    for (const size_t offset : offsets) {
      const double now = number_at(now_.structure, offset);
      const double known = number_at(known_.structure, offset);
      if (same_number(now, known)) continue;
      Operand* operand = operand_of(now, known);
      if (operand == nullptr) return false;
      operand->results.push_back(offset);
      std::memcpy(same_but_numbers.data() + offset, now_.structure.data() + offset, 8);
    }
    return same_but_numbers == now_.structure;
  }

  /// Floats that come back nowhere are operands of nothing. False when another value is: bools and integers decide.
  bool explain_reads() {
    for (uint32_t i = 0; i < now_.trace.reads.size(); ++i) {
      const HostRead& read = now_.trace.reads[i];
      if (read.outcome == known_.trace.reads[i].outcome || find(i) != operands_.end()) continue;
      if (!holds_float(read) || !holds_float(known_.trace.reads[i])) return false;
      operands_.push_back({.read = i, .range = {}, .arguments = {}, .results = {}});
    }
    return true;
  }

  bool ranges() {
    for (Operand& operand : operands_) {
      const auto seen = [&](const Recorded& recorded) {
        if (!recorded.trace.reads[operand.read].decides) return std::optional(NumberRange::all());
        return NumberRange::of(std::get<double>(*recorded.trace.reads[operand.read].outcome.number()));
      };
      const auto earlier = std::find_if(known_.operands.begin(), known_.operands.end(),
                                        [&](const Operand& other) { return other.read == operand.read; });
      const auto now = seen(now_);
      const auto known = earlier == known_.operands.end() ? seen(known_) : earlier->range;
      operand.range = now && known ? now->joined(*known) : std::nullopt;
      if (!operand.range) return false;
    }
    return std::all_of(known_.operands.begin(), known_.operands.end(), [&](const Operand& other) {
      const auto found = find(other.read);
      return found != operands_.end() && found->arguments.size() == other.arguments.size() &&
             found->results == other.results;
    });
  }

  const Recorded& now_;
  const Recorded& known_;
  std::vector<Operand> operands_;
};

/// True when kernels compute all that takes an operand: a library call would need the number itself.
bool kernels_take(const ir::Graph& graph, const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    for (const NumberPlace& place : operand.arguments) {
      const ir::Node& node = graph.node(place.node);
      if (!passes::can_expand(graph, node.as<ir::Call>()->op, node.args, graph.type(node.results[0]))) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<NumberRange> NumberRange::of(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  NumberRange range;
  range.seen_.push_back(number);
  return range;
}

std::optional<NumberRange> NumberRange::joined(const NumberRange& other) const {
  if (seen_.empty()) return all();
  if (sign(seen_.front()) != sign(other.seen_.front())) return std::nullopt;
  NumberRange both;
  std::set_union(seen_.begin(), seen_.end(), other.seen_.begin(), other.seen_.end(), std::back_inserter(both.seen_));
  return both;
}

bool NumberRange::holds(const ir::Scalar& number) const {
  if (!spans(number)) return false;
  if (seen_.empty()) return true;
  const double value = std::get<double>(number);
  const auto above = std::lower_bound(seen_.begin(), seen_.end(), value);
  if (*above == value) return true;
  const double below = *(above - 1);
  const auto [nearer, farther] = std::minmax({std::abs(below), std::abs(*above)});
  return farther <= 2 * nearer;
}

bool NumberRange::spans(const ir::Scalar& number) const {
  const auto* value = std::get_if<double>(&number);
  return value != nullptr && (seen_.empty() || (seen_.front() <= *value && *value <= seen_.back()));
}

bool NumberRange::overlaps(const NumberRange& other) const {
  if (seen_.empty() || other.seen_.empty()) return true;
  return seen_.front() <= other.seen_.back() && other.seen_.front() <= seen_.back();
}

std::optional<std::vector<Operand>> common_operands(const Recorded& now, const Recorded& known) {
  auto operands = Explanation(now, known).run();
  if (!operands || !kernels_take(graph_with_operands(now.trace, *operands), *operands)) return std::nullopt;
  return operands;
}

ir::Graph graph_with_operands(const Trace& trace, const std::vector<Operand>& operands) {
  ir::Graph graph = trace.graph;
  for (const Operand& operand : operands) {
    const HostRead& read = trace.reads[operand.read];
    std::vector<ir::DType> dtypes;
    for (const NumberPlace& place : operand.arguments) {
      const ir::DType dtype = operand_dtype(graph, place).value();
      if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end()) dtypes.push_back(dtype);
    }
    std::vector<ir::Type> types;
    for (const ir::DType dtype : dtypes) types.push_back(ir::contiguous(dtype, {}, ir::Device{}));
    const ir::Node old = graph.node(read.node);
    std::vector<ir::NodeId> order = graph.order();
    const ir::NodeId made = graph.add(old.payload, old.args, std::move(types), old.scope);
    std::replace(order.begin(), order.end(), read.node, made);
    graph.set_order(std::move(order));
    for (const NumberPlace& place : operand.arguments) {
      const auto dtype = std::find(dtypes.begin(), dtypes.end(), operand_dtype(graph, place));
      graph.node(place.node).args[place.path[0]] = {
          graph.node(made).results[static_cast<size_t>(dtype - dtypes.begin())]};
    }
  }
  return graph;
}

}  // namespace sinter::frontend
