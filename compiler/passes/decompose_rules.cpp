#include "compiler/passes/decompose_rules.h"

#include <algorithm>
#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/pointwise.h"

namespace sinter::passes {
namespace {

using namespace ir;

std::optional<ValueId> cast_of(Graph& graph, const CallSite& site, const Arg& source) {
  if (!is_kernel_operand(graph, source) || !is_kernel_result(graph, site.type)) return std::nullopt;
  return graph.add1(Primitive{op_named("cast")}, {source}, site.type, site.scope);
}

template <size_t position>
std::optional<ValueId> copy_arg(Graph& graph, const CallSite& site) {
  return site.args.size() > position ? cast_of(graph, site, site.args[position]) : std::nullopt;
}

/// _to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format)
std::optional<ValueId> to_copy(Graph& graph, const CallSite& site) {
  const auto* pinned = site.args.size() > 4 ? std::get_if<bool>(&site.args[4].data) : nullptr;
  if (pinned != nullptr && *pinned) return std::nullopt;
  return copy_arg<0>(graph, site);
}

template <int64_t number>
std::optional<ValueId> constant(Graph& graph, const CallSite& site) {
  return cast_of(graph, site, Arg{number});
}

/// Batch norm by stored statistics: (x - mean) / sqrt(var + eps) * weight + bias. Schema positions: 0 input, 1 weight,
/// 2 bias, 3 mean, 4 var. As ATen computes it: on CUDA the mean is subtracted first, so that a mean far from zero
/// cancels exactly; on the CPU scale and shift of a channel are made first.
struct BatchNormArgs {
  ValueId input;
  Arg weight;
  Arg bias;
  ValueId mean;
  ValueId var;
  double eps = 0;
};

class BatchNorm {
 public:
  BatchNorm(Graph& graph, const CallSite& site, const BatchNormArgs& args) : graph_(graph), site_(site), args_(args) {
    compute_ = computation_dtype(site.type.dtype);
  }

  std::optional<ValueId> build() {
    if (!is_float(site_.type.dtype) || site_.type.rank() < 2 || !is_kernel_result(graph_, site_.type))
      return std::nullopt;
    for (const Arg& arg : {Arg{args_.input}, Arg{args_.mean}, Arg{args_.var}, args_.weight, args_.bias}) {
      if (!arg.is_none() && !is_kernel_operand(graph_, arg)) return std::nullopt;
    }
    const Arg spread = op("sqrt", {op("add", {per_channel(args_.var), {args_.eps}})});
    const Arg inverse = op("div", {{1.0}, spread});
    const Arg scale = args_.weight.is_none() ? inverse : op("mul", {inverse, per_channel(*args_.weight.value())});
    const Arg result = site_.type.device.kind == Device::Kind::cuda ? centred(scale) : folded(scale);
    if (graph_.type(*result.value()) == site_.type) return *result.value();
    return graph_.add1(Primitive{op_named("cast")}, {result}, site_.type, site_.scope);
  }

 private:
  Arg cast(ValueId value) {
    Type type = graph_.type(value);
    if (type.dtype == compute_) return {value};
    type.dtype = compute_;
    if (!type.is_dense()) type.strides = contiguous_strides(type.sizes);
    return {graph_.add1(Primitive{op_named("cast")}, {{value}}, type, site_.scope)};
  }

  /// (x - mean) * scale + bias, the last two rounded once as by ATen's kernel.
  Arg centred(const Arg& scale) {
    const Arg difference = op("sub", {cast(args_.input), per_channel(args_.mean)});
    if (args_.bias.is_none()) return op("mul", {difference, scale});
    return op("fma", {difference, scale, per_channel(*args_.bias.value())});
  }

  /// x * scale + (bias - mean * scale), each sum rounded once.
  Arg folded(const Arg& scale) {
    const Arg centre = op("neg", {per_channel(args_.mean)});
    const Arg shift = args_.bias.is_none() ? op("mul", {centre, scale})
                                           : op("fma", {centre, scale, per_channel(*args_.bias.value())});
    return op("fma", {cast(args_.input), scale, shift});
  }

  /// A vector over the channels, in the computation dtype, that broadcasts along dim 1 of the input.
  Arg per_channel(ValueId vector) {
    Type type = graph_.type(vector);
    for (size_t i = 2; i < site_.type.rank(); ++i) {
      type.sizes.emplace_back(1);
      type.strides.emplace_back(1);
    }
    if (type.rank() == graph_.type(vector).rank()) return cast(vector);
    return cast(graph_.add1(View{0}, {{vector}}, type, site_.scope));
  }

  Arg op(std::string_view name, std::vector<Arg> operands) {
    std::vector<Dim> sizes;
    for (const Arg& operand : operands) {
      if (operand.value() != nullptr) sizes = broadcast(sizes, graph_.type(*operand.value()).sizes).value();
    }
    Type type = contiguous(compute_, sizes, site_.type.device);
    if (sizes == site_.type.sizes) type.strides = site_.type.strides;
    return {graph_.add1(Primitive{op_named(name)}, std::move(operands), std::move(type), site_.scope)};
  }

  Graph& graph_;
  const CallSite& site_;
  const BatchNormArgs& args_;
  DType compute_;
};

std::optional<ValueId> batch_norm(Graph& graph, const CallSite& site, const Arg& eps) {
  const ValueId* input = site.args[0].value();
  const ValueId* mean = site.args[3].value();
  const ValueId* var = site.args[4].value();
  const auto* number = std::get_if<double>(&eps.data);
  if (input == nullptr || mean == nullptr || var == nullptr || number == nullptr) return std::nullopt;
  if (graph.type(*mean).rank() != 1 || graph.type(*var).rank() != 1) return std::nullopt;
  return BatchNorm(graph, site, {*input, site.args[1], site.args[2], *mean, *var, *number}).build();
}

/// native_batch_norm and cudnn_batch_norm(..., training, momentum, eps)
std::optional<ValueId> batch_norm_unless_training(Graph& graph, const CallSite& site) {
  if (site.args.size() < 8) return std::nullopt;
  const auto* training = std::get_if<bool>(&site.args[5].data);
  if (training == nullptr || *training) return std::nullopt;
  return batch_norm(graph, site, site.args[7]);
}

/// _native_batch_norm_legit_no_training(..., momentum, eps)
std::optional<ValueId> batch_norm_without_training(Graph& graph, const CallSite& site) {
  return site.args.size() < 7 ? std::nullopt : batch_norm(graph, site, site.args[6]);
}

struct Row {
  std::string_view aten;
  StructuralRule rule;
};

constexpr std::array rules = {
    Row{"aten::_to_copy", to_copy},
    Row{"aten::clone", copy_arg<0>},
    Row{"aten::contiguous", copy_arg<0>},
    Row{"aten::lift_fresh_copy", copy_arg<0>},
    Row{"aten::copy", copy_arg<1>},
    Row{"aten::fill", copy_arg<1>},
    Row{"aten::full", copy_arg<1>},
    Row{"aten::full_like", copy_arg<1>},
    Row{"aten::new_full", copy_arg<2>},
    Row{"aten::scalar_tensor", copy_arg<0>},
    Row{"aten::zeros", constant<0>},
    Row{"aten::zeros_like", constant<0>},
    Row{"aten::new_zeros", constant<0>},
    Row{"aten::zero", constant<0>},
    Row{"aten::ones", constant<1>},
    Row{"aten::ones_like", constant<1>},
    Row{"aten::new_ones", constant<1>},
    Row{"aten::native_batch_norm", batch_norm_unless_training},
    Row{"aten::cudnn_batch_norm", batch_norm_unless_training},
    Row{"aten::_native_batch_norm_legit_no_training", batch_norm_without_training},
};

}  // namespace

StructuralRule structural_rule(std::string_view op) {
  const std::string_view base = base_name(op);
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const Row& row) { return row.aten == base; });
  return found == rules.end() ? nullptr : found->rule;
}

}  // namespace sinter::passes
