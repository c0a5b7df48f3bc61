#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/ir/graph.h"

/// LibTorch's calls of oneDNN, which take an activation that is computed as results are stored. The same names and
/// numbers as in `torch.ops.mkldnn`.
namespace sinter::passes {

inline constexpr std::string_view onednn_linear = "mkldnn::_linear_pointwise";
inline constexpr std::string_view onednn_convolution = "mkldnn::_convolution_pointwise";
/// The same, with a value of the result's sizes added in place of an activation.
inline constexpr std::string_view onednn_summed_convolution = "mkldnn::_convolution_pointwise.binary";
/// The same, into the memory of that value, which comes first.
inline constexpr std::string_view onednn_convolution_into_sum = "mkldnn::_convolution_pointwise_.binary";
/// Weights in the library's own layout: values that its calls alone can read (DType::other).
inline constexpr std::string_view onednn_packed_linear = "mkldnn::_reorder_linear_weight";
inline constexpr std::string_view onednn_packed_convolution = "mkldnn::_reorder_convolution_weight";

/// What a weight is in that layout.
[[nodiscard]] ir::Type packed_weight(const ir::Type& weight);

/// An activation, as the calls name it.
struct Activation {
  std::string name;
  std::string algorithm;  ///< of "gelu": "none" or "tanh"
};

/// The node as an activation of its first argument that oneDNN computes as eager does; nothing where it is none. ReLU
/// is not among them.
[[nodiscard]] std::optional<Activation> onednn_activation(const ir::Node& node);

/// A call of that name.
[[nodiscard]] ir::Call onednn_call(std::string_view op);

}  // namespace sinter::passes
