#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "compiler/kernel/collapse.h"
#include "compiler/kernel/kernel.h"
#include "compiler/support/errors.h"

namespace sinter::kernel {
namespace {

/// Index of each dim of a value, over the loop nest.
using Map = std::vector<ir::Index>;

/// Dims of the output that make loops: those longer than 1, by falling stride; the order of the dims breaks ties.
std::vector<size_t> loop_order(const ir::Type& type) {
  const auto sizes = type.static_sizes();
  const auto strides = type.static_strides();
  std::vector<size_t> order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1) order.push_back(d);
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  return order;
}

/// The computation dtype of a value of this dtype: halves compute in float.
ir::DType computed(ir::DType dtype) { return ir::is_half(dtype) ? ir::DType::f32 : dtype; }

/// Builds one kernel by asking for each output at the points of the loop nest, and from there for what it needs.
class Lowering {
 public:
  Lowering(const ir::Graph& body, const std::string& name) : graph_(body), cast_(ir::op_named("cast")) {
    kernel_.name = name;
  }

  Kernel run() {
    add_inputs();
    const ir::Type& first = graph_.type(graph_.outputs.front());
    const auto order = loop_order(first);
    const auto sizes = first.static_sizes();
    for (const size_t dim : order) kernel_.extents.push_back(sizes[dim]);
    add_outputs();
    if (kernel_.numel() == 0) {
      kernel_.extents = {0};
      return std::move(kernel_);
    }
    const Map points = output_map(sizes.size(), order);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) store(i, points);
    collapse(kernel_);
    return std::move(kernel_);
  }

 private:
  void add_inputs() {
    for (const ir::NodeId id : graph_.order()) {
      const ir::Node& node = graph_.node(id);
      if (node.as<ir::Input>() == nullptr) continue;
      const ir::Type& type = graph_.type(node.results[0]);
      const bool on_host =
          type.rank() == 0 && type.device.kind == ir::Device::Kind::cpu && graph_.device.kind == ir::Device::Kind::cuda;
      input_params_.emplace(node.results[0], static_cast<uint32_t>(kernel_.params.size()));
      kernel_.params.push_back({.role = on_host ? Param::Role::host_scalar : Param::Role::input, .dtype = type.dtype});
    }
  }

  void add_outputs() {
    for (const ir::ValueId output : graph_.outputs) {
      kernel_.params.push_back({.role = Param::Role::output, .dtype = graph_.type(output).dtype});
    }
  }

  ir::Index zero() const {
    return {.affine = {.offset = 0, .strides = std::vector<int64_t>(kernel_.extents.size(), 0)}, .terms = {}};
  }

  /// Each dim of the outputs is one loop, or 0 where its size is 1.
  Map output_map(size_t rank, const std::vector<size_t>& order) const {
    Map map(rank, zero());
    for (size_t loop = 0; loop < order.size(); ++loop) map[order[loop]].affine.strides[loop] = 1;
    return map;
  }

  void store(size_t output, const Map& points) {
    const ir::ValueId value = graph_.outputs[output];
    const ir::Type& type = graph_.type(value);
    const auto param = static_cast<uint32_t>(input_params_.size() + output);
    kernel_.stores.push_back({.param = param, .index = address(type, 0, points), .value = slot_of(value, points)});
  }

  ir::Index substitute(const ir::Index& outer, const Map& dims) const {
    auto index = ir::compose(outer, dims, kernel_.extents);
    if (!index) throw InternalError("lower", kernel_.name + ": an index needs nested divisions");
    index->affine.strides.resize(kernel_.extents.size(), 0);
    for (auto& term : index->terms) term.inner.strides.resize(kernel_.extents.size(), 0);
    return *std::move(index);
  }

  /// Where the element of a tensor at `at` lies, `offset` elements after the storage's first.
  ir::Index address(const ir::Type& type, int64_t offset, const Map& at) const {
    ir::Index index = substitute(ir::storage_index(type), at);
    index.affine.offset += offset;
    return index;
  }

  Slot append(Instruction instruction) {
    kernel_.body.push_back(std::move(instruction));
    return static_cast<Slot>(kernel_.body.size() - 1);
  }

  /// The value at the points that `at` gives; equal requests share one slot.
  Slot slot_of(ir::ValueId value, const Map& at) {
    for (const auto& [known, slot] : slots_[value]) {
      if (known == at) return slot;
    }
    const Slot slot = build(value, at);
    slots_[value].emplace_back(at, slot);
    return slot;
  }

  Slot build(ir::ValueId value, const Map& at) {
    const ir::Node& node = graph_.producer(value);
    if (node.as<ir::Input>() != nullptr) return load(value, graph_.type(value), 0, at);
    if (node.as<ir::View>() != nullptr) return view(value, at);
    if (const auto* primitive = node.as<ir::Primitive>()) return compute(primitive->op, node, at);
    throw InternalError("lower", kernel_.name + ": a fused body holds a node that is no primitive, view or input");
  }

  Slot load(ir::ValueId input, const ir::Type& type, int64_t offset, const Map& at) {
    const uint32_t param = input_params_.at(input);
    Load access{.param = param, .index = zero()};
    if (kernel_.params[param].role != Param::Role::host_scalar) access.index = address(type, offset, at);
    for (Slot s = 0; s < kernel_.body.size(); ++s) {
      const auto* known = std::get_if<Load>(&kernel_.body[s].operation);
      if (known != nullptr && known->param == param && known->index == access.index) return s;
    }
    return append({.operation = std::move(access), .dtype = type.dtype});
  }

  /// Views of an input address its storage; views of a computed value ask for the value at other points.
  Slot view(ir::ValueId value, const Map& at) {
    int64_t offset = 0;
    ir::ValueId root = value;
    while (const auto* step = graph_.producer(root).as<ir::View>()) {
      offset += step->offset;
      root = *graph_.producer(root).args[0].value();
    }
    const ir::Type& type = graph_.type(value);
    if (graph_.producer(root).as<ir::Input>() != nullptr) return load(root, type, offset, at);
    const auto dims = ir::view_map(graph_.type(root), type, offset);
    if (!dims) throw InternalError("lower", kernel_.name + ": a view of a computed value cannot be indexed");
    Map moved;
    for (const ir::Index& dim : *dims) moved.push_back(substitute(dim, at));
    return slot_of(root, moved);
  }

  /// The operands' points under broadcasting to the result's sizes.
  Map operand_map(const ir::Type& operand, const ir::Type& result, const Map& at) const {
    const auto dims = ir::broadcast_map(operand.static_sizes(), result.static_sizes());
    Map map;
    for (const ir::Index& dim : dims) map.push_back(substitute(dim, at));
    return map;
  }

  Slot compute(ir::OpId op, const ir::Node& node, const Map& at) {
    const ir::Type& result = graph_.type(node.results[0]);
    const ir::DType scalar_dtype = scalar_operand_dtype(op, node, result.dtype);
    std::vector<Slot> operands;
    for (const ir::Arg& arg : node.args) {
      if (arg.is_none()) continue;
      if (const auto* value = arg.value()) {
        operands.push_back(slot_of(*value, operand_map(graph_.type(*value), result, at)));
      } else {
        const bool condition = ir::row(op).rule == ir::TypeRule::select && operands.empty();
        operands.push_back(immediate(arg, condition ? ir::DType::b8 : scalar_dtype));
      }
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

  Slot immediate(const ir::Arg& arg, ir::DType dtype) {
    Immediate value;
    if (const auto* flag = std::get_if<bool>(&arg.data))
      value.value = *flag;
    else if (const auto* integer = std::get_if<int64_t>(&arg.data))
      value.value = *integer;
    else if (const auto* real = std::get_if<double>(&arg.data))
      value.value = *real;
    else
      throw InternalError("lower", kernel_.name + ": an operand of a primitive is neither a value nor a number");
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
  const ir::OpId cast_;
  Kernel kernel_;
  std::unordered_map<ir::ValueId, uint32_t> input_params_;
  std::unordered_map<ir::ValueId, std::vector<std::pair<Map, Slot>>> slots_;
  std::map<std::pair<Slot, ir::DType>, Slot> casts_;
};

}  // namespace

Kernel lower(const ir::Graph& body, const std::string& name) { return Lowering(body, name).run(); }

}  // namespace sinter::kernel
