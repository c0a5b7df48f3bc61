#include "frontend/trace/layout_rules.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

namespace sinter::frontend {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;
using Results = std::vector<at::Tensor>;
using Sizes = std::vector<int64_t>;

at::Tensor made(const Sizes& sizes, at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  return at::empty(sizes, at::TensorOptions().device(c10::kMeta).memory_format(format));
}

Results like_first(Arguments arguments) { return {at::empty_like(arguments[0].toTensor())}; }

/// roll(self, shifts, dims). Of other layouts it makes one on the CPU and another on CUDA.
Results roll(Arguments arguments) {
  TORCH_CHECK(arguments[0].toTensor().is_contiguous(), "not contiguous");
  return like_first(arguments);
}

Results two_like_first(Arguments arguments) {
  return {at::empty_like(arguments[0].toTensor()), at::empty_like(arguments[0].toTensor())};
}

/// relu(self)
Results relu(Arguments arguments) { return {at::clamp_min(arguments[0].toTensor(), 0)}; }

/// where(condition, self, other): an iterator over three operands, as that of addcmul.
Results where(Arguments arguments) {
  return {at::addcmul(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toTensor())};
}

/// logical_and(self, other)
Results two_operands(Arguments arguments) { return {at::add(arguments[0].toTensor(), arguments[1].toTensor())}; }

/// max(self)
Results number(Arguments /*arguments*/) { return {made({})}; }

/// cummax(self, dim)
Results two_contiguous(Arguments arguments) {
  const Sizes sizes = arguments[0].toTensor().sizes().vec();
  return {made(sizes), made(sizes)};
}

/// masked_fill(self, mask, value)
Results masked_fill(Arguments arguments) {
  return {made(at::infer_size(arguments[0].toTensor().sizes(), arguments[1].toTensor().sizes()))};
}

/// index_select(self, dim, index)
Results index_select(Arguments arguments) {
  Sizes sizes = arguments[0].toTensor().sizes().vec();
  const int64_t dim = c10::maybe_wrap_dim(arguments[1].toInt(), static_cast<int64_t>(sizes.size()));
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = arguments[2].toTensor().numel();
  return {made(sizes)};
}

/// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
Results embedding(Arguments arguments) {
  Sizes sizes = arguments[1].toTensor().sizes().vec();
  sizes.push_back(arguments[0].toTensor().size(1));
  return {made(sizes)};
}

/// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Results embedding_backward(Arguments arguments) {
  return {made({arguments[2].toInt(), arguments[0].toTensor().size(-1)})};
}

/// searchsorted(sorted_sequence, self)
Results like_second(Arguments arguments) { return {made(arguments[1].toTensor().sizes().vec())}; }

/// bucketize(self, boundaries)
Results contiguous_like_first(Arguments arguments) { return {made(arguments[0].toTensor().sizes().vec())}; }

/// var(self, dim, correction, keepdim)
Results variance(Arguments arguments) {
  const auto dims = arguments[1].isNone() ? Sizes() : arguments[1].toIntVector();
  return {at::sum(arguments[0].toTensor(), dims, arguments[3].toBool())};
}

/// The format of a convolution's result: channels come last where they do in one of its operands.
at::MemoryFormat format_of(const at::Tensor& input, const at::Tensor& weight) {
  const auto format = input.suggest_memory_format();
  return format != at::MemoryFormat::Contiguous ? format : weight.suggest_memory_format();
}

/// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Results convolution(Arguments arguments) {
  const at::Tensor& input = arguments[0].toTensor();
  const at::Tensor& weight = arguments[1].toTensor();
  TORCH_CHECK(!arguments[6].toBool(), "transposed");
  const auto stride = arguments[3].toIntVector(), padding = arguments[4].toIntVector();
  const auto dilation = arguments[5].toIntVector();
  Sizes sizes{input.size(0), weight.size(0)};
  for (int64_t dim = 2; dim < input.dim(); ++dim) {
    const auto at = static_cast<size_t>(dim - 2);
    const int64_t reach = dilation.at(at) * (weight.size(dim) - 1) + 1;
    sizes.push_back((input.size(dim) + 2 * padding.at(at) - reach) / stride.at(at) + 1);
  }
  return {made(sizes, format_of(input, weight))};
}

/// native_layer_norm(input, normalized_shape, weight, bias, eps)
Results layer_norm(Arguments arguments) {
  const at::Tensor& input = arguments[0].toTensor();
  Sizes sizes = input.sizes().vec();
  std::fill(sizes.end() - static_cast<std::ptrdiff_t>(arguments[1].toIntVector().size()), sizes.end(), 1);
  return {made(input.sizes().vec()), made(sizes), made(sizes)};
}

/// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
Results layer_norm_backward(Arguments arguments) {
  const auto wanted = arguments[7].toBoolList();
  const Sizes shape = arguments[2].toIntVector();
  Results results;
  if (wanted[0]) results.push_back(made(arguments[1].toTensor().sizes().vec()));
  for (size_t i = 1; i < wanted.size(); ++i) {
    if (wanted[i]) results.push_back(made(shape));
  }
  return results;
}

/// native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
Results batch_norm(Arguments arguments) {
  const at::Tensor& input = arguments[0].toTensor();
  const Sizes sizes{arguments[5].toBool() ? input.size(1) : 0};
  return {at::empty_like(input), made(sizes), made(sizes)};
}

/// native_group_norm(input, weight, bias, N, C, HxW, group, eps)
Results group_norm(Arguments arguments) {
  const at::Tensor& input = arguments[0].toTensor();
  const Sizes sizes{input.size(0), arguments[6].toInt()};
  return {made(input.sizes().vec(), input.suggest_memory_format()), made(sizes), made(sizes)};
}

/// _adaptive_avg_pool2d(self, output_size)
Results adaptive_pool(Arguments arguments) {
  const at::Tensor& input = arguments[0].toTensor();
  Sizes sizes = input.sizes().vec();
  std::ranges::copy(arguments[1].toIntVector(), sizes.end() - 2);
  return {made(sizes, input.suggest_memory_format())};
}

struct RuleOf {
  std::string_view op;
  LayoutRule rule;
};

constexpr std::array rules = {
    RuleOf{"aten::relu", relu},
    RuleOf{"aten::abs", like_first},
    RuleOf{"aten::nan_to_num", like_first},
    RuleOf{"aten::logical_not", like_first},
    RuleOf{"aten::logical_and", two_operands},
    RuleOf{"aten::logical_or", two_operands},
    RuleOf{"aten::logical_xor", two_operands},
    RuleOf{"aten::max", number},
    RuleOf{"aten::min", number},
    RuleOf{"aten::cummax", two_contiguous},
    RuleOf{"aten::cummin", two_contiguous},
    RuleOf{"aten::masked_fill.Scalar", masked_fill},
    RuleOf{"aten::masked_fill.Tensor", masked_fill},
    RuleOf{"aten::index_select", index_select},
    RuleOf{"aten::embedding", embedding},
    RuleOf{"aten::embedding_dense_backward", embedding_backward},
    RuleOf{"aten::searchsorted.Tensor", like_second},
    RuleOf{"aten::bucketize.Tensor", contiguous_like_first},
    RuleOf{"aten::where.self", where},
    RuleOf{"aten::roll", roll},
    RuleOf{"aten::flip", like_first},
    RuleOf{"aten::native_dropout", two_like_first},
    RuleOf{"aten::var.correction", variance},
    RuleOf{"aten::std.correction", variance},
    RuleOf{"aten::convolution", convolution},
    RuleOf{"aten::native_layer_norm", layer_norm},
    RuleOf{"aten::native_layer_norm_backward", layer_norm_backward},
    RuleOf{"aten::native_batch_norm", batch_norm},
    RuleOf{"aten::native_group_norm", group_norm},
    RuleOf{"aten::_adaptive_avg_pool2d", adaptive_pool},
};

}  // namespace

LayoutRule layout_rule(std::string_view op) {
  const auto* known = std::ranges::find(rules, op, &RuleOf::op);
  return known == rules.end() ? nullptr : known->rule;
}

}  // namespace sinter::frontend
