#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/type.h"

namespace sinter::bench {

/// One input as the command line names it: dtype, sizes, and for integers the exclusive upper bound of drawn values.
struct InputSpec {
  ir::DType dtype = ir::DType::f32;
  std::vector<int64_t> sizes;
  int64_t below = 2;  ///< integers are drawn from [0, below); ignored for floats
};

/// Parses "f16[1,3,224,224]" or "i64[1,128]<30000". `position` numbers the input in the error. Throws UserError that
/// names the column and shows an example.
[[nodiscard]] InputSpec parse_input(std::string_view text, size_t position);

[[nodiscard]] std::string to_string(const InputSpec& spec);

/// A fresh tensor: floats are standard normal, integers uniform below `below`, bools fair coins. Drawn on the CPU, so
/// that every device sees the same values, then moved.
[[nodiscard]] at::Tensor draw(const InputSpec& spec, at::Device device);

/// Copies of a set of inputs whose bytes together exceed twice `cache_bytes`, so that calls in turn never read a warm
/// cache. One set where it alone does.
[[nodiscard]] std::vector<std::vector<at::Tensor>> rotated_inputs(const std::vector<at::Tensor>& first,
                                                                  int64_t cache_bytes);

}  // namespace sinter::bench
