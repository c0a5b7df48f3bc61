#pragma once

#include <cstdint>
#include <string_view>

#ifdef SINTER_PLANTED_BUGS
#include <cstdlib>
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
  version_not_raised,      ///< of what a replay writes
  memory_freed_early,      ///< a temporary's memory is given to others before its last use
  kernels_mixed_up,        ///< kernels are shared by name
  random_calls_merged,     ///< like calls that are pure
  generators_not_rewound,  ///< before a call runs that a replay began
  sizes_from_one_call,     ///< a size of another shape follows from one recording, not from all
  alignment_not_guarded,   ///< of arguments
  cuda_operands_swapped,   ///< of a division, in CUDA text
  cuda_tail_lost,          ///< of a kernel whose points are no multiple of its vectors
  cuda_alignment_ignored,  ///< vector accesses are as wide as they can be, wherever the tensor lies
  graph_not_repointed,     ///< a recorded graph keeps the addresses of its recording
  graph_input_not_copied,  ///< to where a recorded graph reads it
  graph_draws_repeated,    ///< by every replay of a recorded graph
  graph_address_ignored,   ///< of an input that a recorded graph takes where it lies
};

/// Where a bug can be seen.
enum class Seen : uint8_t {
  anywhere,
  cuda_text,  ///< on a GPU, and where CUDA text runs on the CPU (tests/emulator)
  graphs,     ///< on a GPU, and where graphs are recorded on a simulated one (tests/runtime)
  gpu,
  cpu,  ///< in programs that run there
};

struct PlantedBug {
  std::string_view name;
  Seen seen = Seen::anywhere;
};

/// In the order of `Bug`.
inline constexpr PlantedBug kPlantedBugs[] = {
    {"strides_not_guarded"},
    {"gradients_not_guarded"},
    {"scalars_not_guarded"},
    {"train_flags_not_guarded"},
    {"stale_weight"},
    {"verification_sees_nothing"},
    {"operands_swapped"},
    {"alias_missed"},
    {"write_back_lost"},
    {"version_not_raised"},
    {"memory_freed_early"},
    {"kernels_mixed_up", Seen::cpu},
    {"random_calls_merged"},
    {"generators_not_rewound"},
    {"sizes_from_one_call"},
    {"alignment_not_guarded", Seen::gpu},
    {"cuda_operands_swapped", Seen::cuda_text},
    {"cuda_tail_lost", Seen::cuda_text},
    {"cuda_alignment_ignored", Seen::cuda_text},
    {"graph_not_repointed", Seen::graphs},
    {"graph_input_not_copied", Seen::graphs},
    {"graph_draws_repeated", Seen::gpu},
    {"graph_address_ignored", Seen::graphs},
};

#ifdef SINTER_PLANTED_BUGS

[[nodiscard]] inline bool planted(Bug bug) {
  static const char* const name = std::getenv("SINTER_PLANTED");
  return name != nullptr && kPlantedBugs[static_cast<uint8_t>(bug)].name == name;
}

#else

[[nodiscard]] constexpr bool planted(Bug) { return false; }

#endif

}  // namespace sinter
