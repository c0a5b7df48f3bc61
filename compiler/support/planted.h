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
  strides_not_compared,   ///< of what an operator is given, with what was recorded
  numbers_not_compared,   ///< that an operator is given: one that differs does not become live
  shortcut_not_compared,  ///< numbers of a composite operator that is answered as a whole
  writes_not_awaited,     ///< an operator that runs at once may write what a step still has to read
  scalars_not_guarded,    ///< arguments of a trusted call that are no tensors
  stale_weight,           ///< a trusted call does not look at the state that it reads
  alias_missed,           ///< a trusted call returns a view of an argument as the argument
  operands_swapped,       ///< of a subtraction
  write_back_lost,
  version_not_raised,        ///< of what a known step writes
  memory_freed_early,        ///< a temporary's memory is given to others before its last use
  kernels_mixed_up,          ///< kernels are shared by name
  random_calls_merged,       ///< like calls that are pure
  generators_not_rewound,    ///< while a segment draws what its steps have drawn
  shared_memory_written,     ///< by a step that was recorded where no other tensor saw what it writes
  alignment_not_guarded,     ///< of memory that recorded steps and kernels take
  cuda_operands_swapped,     ///< of a division, in CUDA text
  cuda_tail_lost,            ///< of a kernel whose points are no multiple of its vectors
  cuda_alignment_ignored,    ///< vector accesses are as wide as they can be, wherever the tensor lies
  graph_not_repointed,       ///< a recorded graph keeps the addresses of its recording
  graph_input_not_copied,    ///< to where a recorded graph reads it
  graph_draws_repeated,      ///< by every replay of a recorded graph
  graph_address_ignored,     ///< of an input that a recorded graph takes where it lies
  graph_memory_not_checked,  ///< whose values a graph finds in memory that it shares with others
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
    {"strides_not_compared"},
    {"numbers_not_compared"},
    {"shortcut_not_compared"},
    {"writes_not_awaited"},
    {"scalars_not_guarded"},
    {"stale_weight"},
    {"alias_missed"},
    {"operands_swapped"},
    {"write_back_lost"},
    {"version_not_raised"},
    {"memory_freed_early"},
    {"kernels_mixed_up", Seen::cpu},
    {"random_calls_merged", Seen::gpu},
    {"generators_not_rewound", Seen::gpu},
    {"shared_memory_written"},
    {"alignment_not_guarded", Seen::gpu},
    {"cuda_operands_swapped", Seen::cuda_text},
    {"cuda_tail_lost", Seen::cuda_text},
    {"cuda_alignment_ignored", Seen::cuda_text},
    {"graph_not_repointed", Seen::graphs},
    {"graph_input_not_copied", Seen::graphs},
    {"graph_draws_repeated", Seen::gpu},
    {"graph_address_ignored", Seen::graphs},
    {"graph_memory_not_checked", Seen::graphs},
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
