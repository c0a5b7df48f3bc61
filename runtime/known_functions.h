#pragma once

#include <string>

/// Which functions earlier processes compiled for a GPU, kept in the cache on disk beside their kernels. An answer is a
/// guess at whether the compiler will be needed, never more: wrong ones cost a little time.
namespace sinter::runtime {

/// True when `function` (its name and the types it is called with) was remembered for sm_`sm` and the present compiler.
/// Its kernels are then most likely found in the cache. False, too, when there is no compiler.
[[nodiscard]] bool is_known_function(const std::string& function, int sm);

void remember_function(const std::string& function, int sm);

}  // namespace sinter::runtime
