#include "compiler/kernel/lower.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/ir/reference.h"
#include "compiler/kernel/collapse.h"
#include "compiler/kernel/nest.h"
#include "compiler/kernel/split_loops.h"
#include "compiler/kernel/windows.h"
#include "compiler/support/errors.h"

namespace sinter::kernel {
namespace {

/// The computation dtype of a value of this dtype: halves compute in float.
ir::DType computed(ir::DType dtype) { return ir::is_half(dtype) ? ir::DType::f32 : dtype; }

/// Builds one kernel by asking for each output at the points of the loop nest, and from there for what it needs.
class Lowering {
 public:
  Lowering(const Region& region, size_t most_values)
      : graph_(region.graph),
        outputs_(region.outputs),
        members_(region.members.begin(), region.members.end()),
        most_values_(most_values),
        cast_(ir::op_named("cast")),
        where_(ir::op_named("where")),
        both_(ir::op_named("bitwise_and")),
        nest_(Nest::of(region)) {
    kernel_.extents = nest_.extents();
    kernel_.reduced = nest_.reduced();
  }

  /// Makes a parameter of a value that comes from memory, before any that is found by reading.
  void add_input(ir::ValueId value) { (void)param_of(value); }

  std::optional<Kernel> run() {
    const bool empty = nest_.numel() == 0;
    if ((empty && nest_.reduced() > 0) || !have_one_size() || !have_places()) return std::nullopt;
    for (uint32_t i = 0; i < outputs_.size() && !empty && !refused_; ++i) request(i);
    if (refused_) return std::nullopt;
    const auto inputs = static_cast<uint32_t>(kernel_.params.size());
    for (const ir::ValueId output : outputs_) {
      kernel_.params.push_back({.role = Param::Role::output, .dtype = graph_.type(output).dtype});
    }
    for (Store& store : kernel_.stores) store.param += inputs;
    if (empty) {
      kernel_.extents = {0};
    } else {
      collapse(kernel_);
      find_windows();
    }
    return std::move(kernel_);
  }

 private:
  /// Windows of which only divisions hide where they lie: pools whose outputs are blocks of an image.
  void find_windows() {
    if (kernel_.reduced == 0 || windows_of(kernel_)) return;
    std::optional<Kernel> split = split_loops(kernel_);
    if (split && windows_of(*split)) kernel_ = *std::move(split);
  }

  /// A value that has been lowered.
  struct Known {
    Map at;
    std::optional<Slot> guard;
    Slot slot = 0;
  };

  /// Without reductions all outputs are written at the same points, also where there is none.
  [[nodiscard]] bool have_one_size() const {
    return nest_.reduced() > 0 || std::ranges::all_of(outputs_, [&](ir::ValueId output) {
             return graph_.type(output).sizes == graph_.type(outputs_.front()).sizes;
           });
  }

  /// Where rows are reduced, each output has an element for each point, or row, or is joined of such values.
  [[nodiscard]] bool have_places() const {
    return nest_.reduced() == 0 || std::ranges::all_of(outputs_, [&](ir::ValueId output) {
             const ir::Node& producer = graph_.producer(output);
             const int64_t elements = graph_.type(output).numel();
             return elements == nest_.numel() || elements == nest_.rows() || joins_groups(producer) ||
                    joins_values_of_rows(producer);
           });
  }

  [[nodiscard]] bool joins_groups(const ir::Node& node) const {
    const auto* reduce = node.as<ir::Reduce>();
    return reduce != nullptr && nest_.joins_groups(graph_.type(*node.args[0].value()), reduce->dims);
  }

  /// Leaves no kernel; the slot stands for nothing.
  Slot refuse() {
    refused_ = true;
    return 0;
  }

  uint32_t param_of(ir::ValueId value) {
    const auto [known, added] = params_.try_emplace(value, static_cast<uint32_t>(kernel_.params.size()));
    if (!added) return known->second;
    const ir::Type& type = graph_.type(value);
    const bool on_host =
        type.rank() == 0 && type.device.kind == ir::Device::Kind::cpu && graph_.device.kind == ir::Device::Kind::cuda;
    kernel_.params.push_back({.role = on_host ? Param::Role::host_scalar : Param::Role::input, .dtype = type.dtype});
    return known->second;
  }

  /// Stores of one output name it by its number, until all inputs are known.
  void request(uint32_t number) {
    const ir::ValueId output = outputs_[number];
    const ir::Type& type = graph_.type(output);
    const ir::Node& producer = graph_.producer(output);
    if (joins_groups(producer)) return request_of_groups(number, producer, *producer.as<ir::Reduce>());
    if (joins_values_of_rows(producer)) return request_parts(number, producer);
    const auto points = nest_.points(type);
    const auto place = points ? nest_.substitute(ir::storage_index(type), *points) : std::nullopt;
    if (!place) {
      (void)refuse();
      return;
    }
    const Slot slot = read(output, *points);
    kernel_.stores.push_back({.param = number, .index = *place, .value = slot});
  }

  /// True for a join, on CUDA, of values that the region computes, each with an element for each row.
  [[nodiscard]] bool joins_values_of_rows(const ir::Node& node) const {
    if (node.as<ir::Join>() == nullptr || nest_.reduced() == 0 || graph_.device.kind != ir::Device::Kind::cuda) {
      return false;
    }
    return std::ranges::all_of(node.args, [&](const ir::Arg& arg) {
      const ir::ValueId base = region_operand(graph_, *arg.value()).base;
      return members_.contains(graph_.value(base).producer) && graph_.type(*arg.value()).numel() == nest_.rows();
    });
  }

  /// Such a join is stored operand by operand, and asks no point where it lies.
  void request_parts(uint32_t number, const ir::Node& node) {
    const uint32_t dim = node.as<ir::Join>()->dim;
    const ir::Index whole = ir::storage_index(graph_.type(node.results[0]));
    int64_t begin = 0;
    for (const ir::Arg& arg : node.args) {
      const ir::Type& type = graph_.type(*arg.value());
      const auto points = nest_.points(type);
      if (!points) return void(refuse());
      Map within = *points;
      within[dim].affine.offset += begin;
      const auto place = nest_.substitute(whole, within);
      const Slot slot = read(*arg.value(), *points);
      if (refused_ || !place) return void(refuse());
      kernel_.stores.push_back({.param = number, .index = *place, .value = slot});
      begin += type.sizes[dim].constant();
    }
  }

  /// A reduction of groups of rows. Code for the CPU has none.
  void request_of_groups(uint32_t number, const ir::Node& node, const ir::Reduce& reduce) {
    Map points = nest_.points_of_space();
    const Slot slot = read(*node.args[0].value(), points);
    const ir::Type& result = graph_.type(node.results[0]);
    points[reduce.dims[0]] = nest_.zero();
    const auto place = nest_.substitute(ir::storage_index(result), points);
    if (refused_ || !place || graph_.device.kind != ir::Device::Kind::cuda ||
        kernel_.body[slot].dtype != result.dtype) {
      (void)refuse();
      return;
    }
    kernel_.stores.push_back({.param = number, .index = *place, .value = slot, .over_group = reduce.op});
  }

  Slot append(Instruction instruction) {
    kernel_.body.push_back(std::move(instruction));
    return static_cast<Slot>(kernel_.body.size() - 1);
  }

  /// The value of a member at the points that `at` gives; equal requests share one slot.
  Slot slot_of(ir::ValueId value, const Map& at) {
    if (refused_) return 0;
    for (const Known& known : slots_[value]) {
      if (known.at == at && holds_here(known.guard)) return known.slot;
    }
    if (++values_ > most_values_) return refuse();
    const Slot slot = compute(graph_.producer(value), at);
    slots_[value].push_back({at, guard_, slot});
    return slot;
  }

  Slot compute(const ir::Node& node, const Map& at) {
    if (const auto* primitive = node.as<ir::Primitive>()) return compute(primitive->op, node, at);
    if (node.as<ir::Gather>() != nullptr) return gather(node, at);
    if (const auto* position = node.as<ir::Position>()) {
      return lies_at(at[position->dim], graph_.type(node.results[0]).dtype);
    }
    return node.as<ir::Join>() != nullptr ? join(node, at) : reduce(node, at);
  }

  /// True where what was made under a guard serves under the current one.
  [[nodiscard]] bool holds_here(const std::optional<Slot>& guard) const { return !guard || guard == guard_; }

  /// An operand at these points: a member's value, also through views, or an element of memory.
  Slot read(ir::ValueId operand, const Map& at) {
    const ir::ViewSource source = region_operand(graph_, operand);
    if (!members_.contains(graph_.value(source.base).producer)) return load(source, graph_.type(operand), at);
    if (!source.is_view) return slot_of(source.base, at);
    const auto through = ir::view_map(graph_.type(source.base), graph_.type(operand), source.offset);
    const auto moved = through ? nest_.substitute(*through, at) : std::nullopt;
    return moved ? slot_of(source.base, *moved) : refuse();
  }

  Slot load(const ir::ViewSource& source, const ir::Type& type, const Map& at) {
    Load access{.param = param_of(source.base), .index = nest_.zero()};
    if (kernel_.params[access.param].role != Param::Role::host_scalar) {
      auto index = nest_.substitute(ir::storage_index(type), at);
      if (!index) return refuse();
      index->affine.offset += source.offset;
      access.index = *std::move(index);
      access.guard = guard_;
      if (guard_) access.reach = std::min(type.numel(), points_under_guard());
    }
    std::vector<Slot>& loads = loads_[access.param];
    for (const Slot known : loads) {
      const Load& load = std::get<Load>(kernel_.body[known].operation);
      if (load.index == access.index && holds_here(load.guard)) return known;
    }
    loads.push_back(append({.operation = std::move(access), .dtype = type.dtype}));
    return loads.back();
  }

  Slot reduce(const ir::Node& node, const Map& at) {
    const auto& reduce = *node.as<ir::Reduce>();
    if (guard_) return refuse();  // rows would be cut
    const ir::ValueId operand = *node.args[0].value();
    const auto row = nest_.row_of(graph_.type(operand), reduce.dims, at);
    if (!row) return refuse();
    const Slot slot = read(operand, *row);
    if (refused_ || nest_.reduced() == 0) return slot;
    return append({.operation = Reduce{reduce.op, slot}, .dtype = kernel_.body[slot].dtype});
  }

  /// The index of a point. Code for the CPU has none.
  Slot lies_at(const ir::Index& index, ir::DType dtype) {
    if (graph_.device.kind != ir::Device::Kind::cuda) return refuse();
    return append({.operation = Position{index}, .dtype = dtype});
  }

  /// An element of memory: what a region computes lies nowhere, and under a guard positions mean nothing. Code for the
  /// CPU has none.
  Slot gather(const ir::Node& node, const Map& at) {
    const std::vector<uint32_t>& dims = node.as<ir::Gather>()->dims;
    const ir::ValueId operand = *node.args[0].value();
    const ir::ViewSource source = region_operand(graph_, operand);
    const bool in_memory = !members_.contains(graph_.value(source.base).producer);
    if (guard_ || !in_memory || graph_.device.kind != ir::Device::Kind::cuda) return refuse();
    const ir::Type& type = graph_.type(operand);
    Map place = at;
    Gather made;
    for (size_t i = 0; i < dims.size(); ++i) {
      const Slot position = read_broadcast(*node.args[1 + i].value(), graph_.type(node.results[0]), at);
      made.terms.push_back({position, type.strides[dims[i]].constant(), type.sizes[dims[i]].constant()});
      place[dims[i]] = nest_.zero();
    }
    for (size_t d = 0; d < place.size(); ++d) {
      if (type.sizes[d] == ir::Dim(1)) place[d] = nest_.zero();
    }
    auto index = nest_.substitute(ir::storage_index(type), place);
    if (refused_ || !index) return refuse();
    index->affine.offset += source.offset;
    made.index = *std::move(index);
    made.param = param_of(source.base);
    return append({.operation = std::move(made), .dtype = type.dtype});
  }

  /// Every operand is asked for at all points, and reads memory only where it lies; then one is chosen. Operands that
  /// are one number (the padding of an image) are asked for once, for wherever no other one lies. Code for the CPU has
  /// none in rows.
  Slot join(const ir::Node& node, const Map& at) {
    if (nest_.reduced() > 0 && graph_.device.kind == ir::Device::Kind::cpu) return refuse();
    const uint32_t dim = node.as<ir::Join>()->dim;
    const std::optional<Slot> outer = guard_;
    const double share = share_;
    const auto whole = static_cast<double>(graph_.type(node.results[0]).sizes[dim].constant());
    std::vector<std::pair<Slot, Slot>> parts;  // where an operand lies, and its value
    Map moved = at;
    int64_t begin = 0;
    for (const ir::Arg& arg : node.args) {
      const int64_t size = graph_.type(*arg.value()).sizes[dim].constant();
      if (size == 0) continue;
      const Slot here = inside({at[dim], begin, begin + size});
      guard_ = outer ? both(*outer, here) : here;
      share_ = share * static_cast<double>(size) / whole;
      parts.emplace_back(here, read(*arg.value(), moved));
      moved[dim].affine.offset -= size;
      begin += size;
    }
    guard_ = outer;
    share_ = share;
    if (refused_ || parts.empty()) return refuse();
    if (const auto padded = chosen_or_number(parts)) return *padded;
    Slot value = parts.back().second;
    for (size_t i = parts.size() - 1; i-- > 0;) {
      const ir::DType dtype = kernel_.body[value].dtype;
      value = append({.operation = Compute{where_, {parts[i].first, parts[i].second, value}}, .dtype = dtype});
    }
    return value;
  }

  /// One operand where it lies, else a number that all others are; nothing for other joins. Where the operand is such a
  /// choice itself (an image that is padded along two dims), both are one.
  std::optional<Slot> chosen_or_number(const std::vector<std::pair<Slot, Slot>>& parts) {
    std::optional<Slot> padding;
    std::optional<std::pair<Slot, Slot>> image;
    for (const auto& part : parts) {
      if (!number_at(part.second)) {
        if (image) return std::nullopt;
        image = part;
      } else if (!padding) {
        padding = part.second;
      } else if (!same_number(*padding, part.second)) {
        return std::nullopt;
      }
    }
    if (!image || !padding) return std::nullopt;
    auto [here, value] = *image;
    const auto* inner = std::get_if<Compute>(&kernel_.body[value].operation);
    if (inner != nullptr && inner->op == where_ && same_number(inner->operands[2], *padding)) {
      const std::vector<Slot> choice = inner->operands;
      here = both(here, choice[0]);
      value = choice[1];
    }
    const ir::DType dtype = kernel_.body[value].dtype;
    return append({.operation = Compute{where_, {here, value, *padding}}, .dtype = dtype});
  }

  /// The number that a slot is, perhaps rounded to a half.
  [[nodiscard]] const Immediate* number_at(Slot slot) const {
    const auto* compute = std::get_if<Compute>(&kernel_.body[slot].operation);
    const bool rounds = compute != nullptr && compute->op == cast_ && ir::is_half(kernel_.body[slot].dtype);
    if (rounds) slot = compute->operands[0];
    return std::get_if<Immediate>(&kernel_.body[slot].operation);
  }

  [[nodiscard]] bool same_number(Slot a, Slot b) const {
    const Immediate* x = number_at(a);
    const Immediate* y = number_at(b);
    return x != nullptr && y != nullptr && kernel_.body[a].dtype == kernel_.body[b].dtype && equal(x->value, y->value);
  }

  /// Bit for bit but for NaN, of which there is one.
  static bool equal(const ir::Scalar& x, const ir::Scalar& y) {
    const auto* a = std::get_if<double>(&x);
    const auto* b = std::get_if<double>(&y);
    if (a == nullptr || b == nullptr) return x == y;
    return (std::isnan(*a) && std::isnan(*b)) || (*a == *b && std::signbit(*a) == std::signbit(*b));
  }

  [[nodiscard]] int64_t points_under_guard() const {
    return static_cast<int64_t>(std::llround(share_ * static_cast<double>(nest_.numel())));
  }

  Slot inside(Inside question) {
    for (Slot s = 0; s < kernel_.body.size(); ++s) {
      const auto* known = std::get_if<Inside>(&kernel_.body[s].operation);
      if (known != nullptr && *known == question) return s;
    }
    return append({.operation = std::move(question), .dtype = ir::DType::b8});
  }

  /// True where both guards are.
  Slot both(Slot outer, Slot inner) {
    const auto [known, added] = guards_.try_emplace({outer, inner}, Slot{0});
    if (added) known->second = append({.operation = Compute{both_, {outer, inner}}, .dtype = ir::DType::b8});
    return known->second;
  }

  /// An operand of a primitive under broadcasting to the result's sizes.
  Slot read_broadcast(ir::ValueId operand, const ir::Type& result, const Map& at) {
    const auto dims = ir::broadcast_map(graph_.type(operand).static_sizes(), result.static_sizes());
    const auto map = nest_.substitute(dims, at);
    return map ? read(operand, *map) : refuse();
  }

  Slot compute(ir::OpId op, const ir::Node& node, const Map& at) {
    const ir::Type& result = graph_.type(node.results[0]);
    const ir::DType scalar_dtype = scalar_operand_dtype(op, node, result.dtype);
    std::vector<Slot> operands;
    for (const ir::Arg& arg : node.args) {
      if (arg.is_none()) continue;
      if (const auto* value = arg.value()) {
        operands.push_back(read_broadcast(*value, result, at));
      } else {
        const bool condition = ir::row(op).rule == ir::TypeRule::select && operands.empty();
        operands.push_back(immediate(arg, condition ? ir::DType::b8 : scalar_dtype));
      }
      if (refused_) return 0;
    }
    if (op == cast_) return cast(operands.at(0), result.dtype);
    for (Slot& operand : operands) operand = cast(operand, computed(kernel_.body[operand].dtype));
    const Slot slot = append({.operation = Compute{op, std::move(operands)}, .dtype = computed(result.dtype)});
    return cast(slot, result.dtype);
  }

  /// The dtype a scalar operand is converted to: that of the value operands beside it.
  ir::DType scalar_operand_dtype(ir::OpId op, const ir::Node& node, ir::DType result) const {
    const ir::TypeRule rule = ir::row(op).rule;
    if (rule != ir::TypeRule::compare && rule != ir::TypeRule::predicate) return computed(result);
    for (const ir::Arg& arg : node.args) {
      if (const auto* value = arg.value()) return computed(graph_.type(*value).dtype);
    }
    return ir::DType::f64;
  }

  /// A number as the dtype holds it.
  Slot immediate(const ir::Arg& arg, ir::DType dtype) {
    if (!arg.is_scalar()) return refuse();
    const auto* flag = std::get_if<bool>(&arg.data);
    const auto* integer = std::get_if<int64_t>(&arg.data);
    const ir::RefValue given = flag != nullptr      ? ir::RefValue{int64_t{*flag}}
                               : integer != nullptr ? ir::RefValue{*integer}
                                                    : ir::RefValue{std::get<double>(arg.data)};
    const ir::RefValue held = ir::ref::convert(given, dtype);
    Immediate value;
    if (ir::is_float(dtype)) {
      value.value = std::get<double>(held);
    } else if (dtype == ir::DType::b8) {
      value.value = std::get<int64_t>(held) != 0;
    } else {
      value.value = std::get<int64_t>(held);
    }
    return append({.operation = value, .dtype = dtype});
  }

  /// Converts to a dtype. Halves are reached from and left for f32 only, as ATen converts them.
  Slot cast(Slot slot, ir::DType to) {
    const ir::DType from = kernel_.body[slot].dtype;
    if (from == to) return slot;
    if (const auto known = casts_.find({slot, to}); known != casts_.end()) return known->second;
    const bool through_float = (ir::is_half(from) || ir::is_half(to)) && from != ir::DType::f32 && to != ir::DType::f32;
    const Slot source = through_float ? cast(slot, ir::DType::f32) : slot;
    const Slot result = append({.operation = Compute{cast_, {source}}, .dtype = to});
    casts_.emplace(std::pair{slot, to}, result);
    return result;
  }

  const ir::Graph& graph_;
  std::span<const ir::ValueId> outputs_;
  std::unordered_set<ir::NodeId> members_;
  size_t most_values_;
  const ir::OpId cast_;
  const ir::OpId where_;
  const ir::OpId both_;
  Nest nest_;
  Kernel kernel_;
  size_t values_ = 0;
  bool refused_ = false;
  std::unordered_map<ir::ValueId, uint32_t> params_;
  std::unordered_map<uint32_t, std::vector<Slot>> loads_;  ///< by param
  std::unordered_map<ir::ValueId, std::vector<Known>> slots_;
  std::map<std::pair<Slot, Slot>, Slot> guards_;
  std::optional<Slot> guard_;  ///< where what is lowered now is needed; everywhere without one
  double share_ = 1;           ///< of the points, where that is
  std::map<std::pair<Slot, ir::DType>, Slot> casts_;
};

}  // namespace

std::optional<Kernel> try_lower(const Region& region, size_t most_values) {
  return Lowering(region, most_values).run();
}

Kernel lower(const ir::Graph& body, const std::string& name) {
  std::vector<ir::NodeId> members;
  for (const ir::NodeId id : body.order()) {
    const ir::Node& node = body.node(id);
    if (ir::is_computed(node)) members.push_back(id);
    if (ir::is_computed(node) || node.as<ir::Input>() != nullptr || node.as<ir::View>() != nullptr) continue;
    throw InternalError("lower", name + ": a fused body holds a node that is neither computed nor a view or an input");
  }
  Lowering lowering({body, members, body.outputs}, std::numeric_limits<size_t>::max());
  for (const ir::NodeId id : body.order()) {
    if (body.node(id).as<ir::Input>() != nullptr) lowering.add_input(body.node(id).results[0]);
  }
  auto kernel = lowering.run();
  if (!kernel) throw InternalError("lower", name + ": one nest of loops cannot compute the region");
  kernel->name = name;
  return *std::move(kernel);
}

}  // namespace sinter::kernel
