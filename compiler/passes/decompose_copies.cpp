#include <array>

#include "compiler/ir/view_source.h"
#include "compiler/passes/decompose_rules.h"
#include "compiler/passes/pointwise.h"

namespace sinter::passes {
namespace {

using namespace ir;

std::optional<Results> cast_of(Graph& graph, const CallSite& site, const Arg& source) {
  if (!only_first_used(site) || !is_kernel_operand(graph, source) || !is_kernel_result(graph, site.type()))
    return std::nullopt;
  return only_first(site, graph.add1(Primitive{op_named("cast")}, {source}, site.type(), site.scope));
}

template <size_t position>
std::optional<Results> copy_arg(Graph& graph, const CallSite& site) {
  return site.args.size() > position ? cast_of(graph, site, site.args[position]) : std::nullopt;
}

/// What is copied into the same order in memory from a view of a whole tensor: a view of the converted tensor. Another
/// reader of the tensor, an update by the gradient that is kept transposed, can then have it converted as well.
std::optional<Results> converted_as_it_lies(Graph& graph, const CallSite& site) {
  const ValueId* source = site.args[0].value();
  if (source == nullptr || !only_first_used(site)) return std::nullopt;
  const ViewSource seen = view_source(graph, *source);
  const Type& view = graph.type(*source);
  Type whole = graph.type(seen.base);
  const bool covers = seen.is_view && seen.offset == 0 && view.is_static() && whole.is_static() && view.is_dense() &&
                      whole.is_dense() && view.numel() == whole.numel();
  const bool alike = site.type().sizes == view.sizes && site.type().strides == view.strides &&
                     site.type().device == view.device && whole.dtype != site.type().dtype;
  if (!covers || !alike || !is_kernel_operand(graph, Arg{seen.base})) return std::nullopt;
  whole.dtype = site.type().dtype;
  if (!is_kernel_result(graph, whole)) return std::nullopt;
  const ValueId converted = graph.add1(Primitive{op_named("cast")}, {Arg{seen.base}}, whole, site.scope);
  return only_first(site, graph.add1(View{0}, {Arg{converted}}, site.type(), site.scope));
}

/// _to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format)
std::optional<Results> to_copy(Graph& graph, const CallSite& site) {
  const auto* pinned = site.args.size() > 4 ? std::get_if<bool>(&site.args[4].data) : nullptr;
  if (pinned != nullptr && *pinned) return std::nullopt;
  if (auto results = converted_as_it_lies(graph, site)) return results;
  return copy_arg<0>(graph, site);
}

template <int64_t number>
std::optional<Results> constant(Graph& graph, const CallSite& site) {
  return cast_of(graph, site, Arg{number});
}

constexpr std::array copy_rows = {
    RuleRow{"aten::_to_copy", to_copy, true},       RuleRow{"aten::clone", copy_arg<0>, true},
    RuleRow{"aten::contiguous", copy_arg<0>, true}, RuleRow{"aten::lift_fresh_copy", copy_arg<0>, true},
    RuleRow{"aten::copy", copy_arg<1>, true},       RuleRow{"aten::fill", copy_arg<1>, true},
    RuleRow{"aten::full", copy_arg<1>, true},       RuleRow{"aten::full_like", copy_arg<1>, true},
    RuleRow{"aten::new_full", copy_arg<2>, true},   RuleRow{"aten::scalar_tensor", copy_arg<0>, true},
    RuleRow{"aten::zeros", constant<0>, true},      RuleRow{"aten::zeros_like", constant<0>, true},
    RuleRow{"aten::new_zeros", constant<0>, true},  RuleRow{"aten::zero", constant<0>, true},
    RuleRow{"aten::ones", constant<1>, true},       RuleRow{"aten::ones_like", constant<1>, true},
    RuleRow{"aten::new_ones", constant<1>, true},
};

}  // namespace

std::span<const RuleRow> copy_rules() { return copy_rows; }

}  // namespace sinter::passes
