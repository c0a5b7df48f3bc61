#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <string>

namespace sinter::frontend {

/// Says where compiled results are not eager's: another shape or dtype, integers that differ, or floats whose
/// difference is larger than reordered arithmetic explains, measured against the norm of eager's result.
[[nodiscard]] std::optional<std::string> result_difference(std::span<const at::Tensor> eager,
                                                           std::span<const at::Tensor> compiled);

}  // namespace sinter::frontend
