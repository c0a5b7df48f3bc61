#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sinter/detail/flatten.h"

namespace sinter::frontend {

/// What sinter::mark_dynamic promised of one argument.
struct SizePromise {
  uint32_t input = 0;
  uint32_t dim = 0;
  int64_t rank = 0;  ///< of the tensor that was marked
  int64_t min = 2;
  int64_t max = 0;
};

/// True where an argument carries a promise.
[[nodiscard]] bool has_promises(const detail::Flat& arguments);

/// Adds the promises that the arguments of a call carry to those known.
void collect_promises(const detail::Flat& arguments, std::vector<SizePromise>& promises);

/// The sizes of these arguments that promises speak of.
[[nodiscard]] std::vector<int64_t> promised_sizes(const std::vector<SizePromise>& promises,
                                                  const detail::Flat& arguments);

/// Throws UserError when an argument breaks a promise: a tensor of the rank that was marked, with a size outside.
void check_promises(const std::vector<SizePromise>& promises, const detail::Flat& arguments,
                    const std::string& function);

}  // namespace sinter::frontend
