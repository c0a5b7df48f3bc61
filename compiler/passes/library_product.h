#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"

/// A product of matrices that Sinter hands to the library itself, not through LibTorch: as many forms as the library
/// has, and its own choice between the ways to compute them.
namespace sinter::passes {

/// `sinter::product(left, right, bias, summand, activation, seconds)`: activation(left times right + bias + summand), a
/// row-major matrix, or a batch of them. Left is [m, k] or [b, m, k], right [k, n] or [b, k, n], bias [n], summand
/// [m, n] row-major; the last two may be missing, and are where there is a batch. One dtype. Up to `seconds` may be
/// spent on measuring the ways to compute it, in the call that first meets operands of these types.
inline constexpr std::string_view library_product = "sinter::product";

/// What it may apply to each element.
inline constexpr std::array<std::string_view, 3> library_activations = {"none", "relu", "gelu_tanh"};

struct LibraryProduct {
  ir::ValueId left;
  ir::ValueId right;
  std::optional<ir::ValueId> bias;
  std::optional<ir::ValueId> summand;
  std::string_view activation = library_activations[0];
  double seconds = 0;
};

/// The call and its arguments.
[[nodiscard]] std::pair<ir::Call, std::vector<ir::Arg>> call_of(const LibraryProduct& product);
/// What such a call computes; nothing for calls of other operators, or with other arguments.
[[nodiscard]] std::optional<LibraryProduct> library_product_of(std::string_view op, std::span<const ir::Arg> args);

/// True for a product that the library computes otherwise than LibTorch has it do: halves of one dtype on CUDA.
[[nodiscard]] bool has_library_product(const ir::Type& left, const ir::Type& right, const ir::Type& result);

}  // namespace sinter::passes
