#pragma once

#include <span>

#include "harness.h"

/// The groups of the suite, one to a file.
namespace sinter::test::hostile {

[[nodiscard]] std::span<const Program> input_programs();
[[nodiscard]] std::span<const Program> alias_programs();
[[nodiscard]] std::span<const Program> state_programs();
[[nodiscard]] std::span<const Program> input_write_programs();
[[nodiscard]] std::span<const Program> state_write_programs();
[[nodiscard]] std::span<const Program> host_read_programs();
[[nodiscard]] std::span<const Program> host_state_programs();
[[nodiscard]] std::span<const Program> random_programs();
[[nodiscard]] std::span<const Program> mode_programs();
[[nodiscard]] std::span<const Program> control_programs();
[[nodiscard]] std::span<const Program> argument_programs();
[[nodiscard]] std::span<const Program> number_programs();
[[nodiscard]] std::span<const Program> index_programs();
[[nodiscard]] std::span<const Program> offset_programs();
[[nodiscard]] std::span<const Program> training_programs();
[[nodiscard]] std::span<const Program> kind_programs();
[[nodiscard]] std::span<const Program> conjugate_programs();
[[nodiscard]] std::span<const Program> module_programs();
[[nodiscard]] std::span<const Program> live_module_programs();
[[nodiscard]] std::span<const Program> step_programs();
[[nodiscard]] std::span<const Program> misuse_programs();
[[nodiscard]] std::span<const Program> estimation_programs();
[[nodiscard]] std::span<const Program> finance_programs();
[[nodiscard]] std::span<const Program> simulation_programs();
[[nodiscard]] std::span<const Program> vision_programs();
[[nodiscard]] std::span<const Program> language_programs();
[[nodiscard]] std::span<const Program> reinforcement_programs();
[[nodiscard]] std::span<const Program> signal_programs();
[[nodiscard]] std::span<const Program> network_programs();
[[nodiscard]] std::span<const Program> inference_programs();
[[nodiscard]] std::span<const Program> recipe_programs();
[[nodiscard]] std::span<const Program> everyday_programs();
[[nodiscard]] std::span<const Program> workshop_programs();
[[nodiscard]] std::span<const Program> workbench_programs();
[[nodiscard]] std::span<const Program> layer_programs();
[[nodiscard]] std::span<const Program> classic_programs();
[[nodiscard]] std::span<const Program> fuzzed_programs();

/// Programs for a GPU alone, and for two; no part of `groups`.
[[nodiscard]] std::span<const Program> stream_programs();
[[nodiscard]] std::span<const Program> gpus_programs();

}  // namespace sinter::test::hostile
