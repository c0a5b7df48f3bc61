#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

/// Kernels of several contenders beside each other: what kind of work each spends its time on.
namespace sinter::bench {

enum class KernelClass : uint8_t {
  matrix,     ///< matrix products and convolutions
  attention,  ///< fused attention
  norm,       ///< norms, softmax, sums and other reductions
  pool,
  layout,  ///< the same values in another order or dtype: transpositions, casts, concatenations
  copy,    ///< copies and fills of memory
  pointwise,
  other,
};

/// "matrix", "attention", ...
[[nodiscard]] std::string_view to_string(KernelClass kernel_class);

/// What a kernel does, by its name: one of Sinter's, Triton's (as torch.compile names them) or a library's.
[[nodiscard]] KernelClass class_of_kernel(std::string_view name);

/// The kernels of one call of one contender: an array of objects with "name", "count" and "us"
/// (docs/benchmarking.md, `kernel_table`).
struct KernelList {
  std::string contender;
  nlohmann::json kernels;
};

/// A table of classes with count and microseconds of every contender, then the longest `most` kernels of each.
[[nodiscard]] std::string kernels_side_by_side(const std::vector<KernelList>& lists, size_t most = 25);

}  // namespace sinter::bench
