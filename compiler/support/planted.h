#pragma once

#include <cstdint>

#ifdef SINTER_PLANTED_BUGS
#include <cstdlib>
#include <string_view>
#endif

/// Bugs that the tests must find: each stands for one class of mistake, and is switched on alone, by its name in the
/// environment variable SINTER_PLANTED, in a build with the CMake option SINTER_PLANTED_BUGS. In every other build
/// `planted` is the constant false. `./dev planted` runs them all.
namespace sinter {

enum class Bug : uint8_t {
  strides_not_guarded,
  gradients_not_guarded,  ///< requires_grad of arguments
  scalars_not_guarded,    ///< arguments that are no tensors
  train_flags_not_guarded,
  stale_weight,               ///< where state lies, and how many hold it, is not guarded
  verification_sees_nothing,  ///< two captures are always equal
  operands_swapped,           ///< of a subtraction
  alias_missed,               ///< a view of an argument is returned as a copy
  write_back_lost,
  version_not_raised,   ///< of what a replay writes
  memory_freed_early,   ///< a temporary's memory is given to others before its last use
  kernels_mixed_up,     ///< kernels are shared by name
  random_calls_merged,  ///< like calls that are pure
};

#ifdef SINTER_PLANTED_BUGS

inline constexpr std::string_view kBugNames[] = {
    "strides_not_guarded", "gradients_not_guarded",     "scalars_not_guarded", "train_flags_not_guarded",
    "stale_weight",        "verification_sees_nothing", "operands_swapped",    "alias_missed",
    "write_back_lost",     "version_not_raised",        "memory_freed_early",  "kernels_mixed_up",
    "random_calls_merged"};

[[nodiscard]] inline bool planted(Bug bug) {
  static const char* const name = std::getenv("SINTER_PLANTED");
  return name != nullptr && kBugNames[static_cast<uint8_t>(bug)] == name;
}

#else

[[nodiscard]] constexpr bool planted(Bug) { return false; }

#endif

}  // namespace sinter
