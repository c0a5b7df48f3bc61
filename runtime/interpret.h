#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>
#include <type_traits>
#include <vector>

#include "compiler/support/errors.h"
#include "runtime/host.h"
#include "runtime/program.h"

namespace sinter::runtime {

/// True when an address has bits that its kernel needs to be 0. In that case the kernel must not be launched with it.
[[nodiscard]] inline bool is_misaligned(std::span<const Program::Param> params, std::span<const uint64_t> values) {
  uint64_t stray = 0;
  for (size_t i = 0; i < params.size(); ++i) stray |= values[i] & params[i].clear;
  return stray != 0;
}

/// Launches a kernel some of whose addresses are less aligned than it needs: another run of an extern call may give
/// less than the captured one gave. The kernel gets copies, and what it writes is copied back.
template <class Executor>
void launch_on_copies(const Program::Launch& launch, std::span<const Program::Param> params, std::span<uint64_t> values,
                      Frame& frame, Executor& executor) {
  struct Copy {
    std::shared_ptr<void> memory;
    uint64_t original = 0;
    const Program::Param* param = nullptr;
  };
  std::vector<Copy> copies;
  for (size_t i = 0; i < params.size(); ++i) {
    if ((values[i] & params[i].clear) == 0) continue;
    copies.push_back({frame.scratch(params[i].bytes), values[i], &params[i]});
    values[i] = reinterpret_cast<uint64_t>(copies.back().memory.get());
    executor.copy(values[i], copies.back().original, params[i].bytes);
  }
  if (is_misaligned(params, values)) throw InternalError("runtime", "fresh memory is less aligned than a kernel needs");
  executor.launch(launch, params, values);
  for (const Copy& copy : copies) {
    if (!copy.param->written) continue;
    executor.copy(copy.original, reinterpret_cast<uint64_t>(copy.memory.get()), copy.param->bytes);
  }
}

/// A run of a program over a frame, stretch by stretch. `executor` has `launch(const Program::Launch&,
/// std::span<const Program::Param>, std::span<uint64_t> values)`, values being addresses and scalars as the kernel
/// takes them, `call(Frame&, uint32_t)`, and `copy(uint64_t to, uint64_t from, int64_t bytes)` in order with the
/// launches. No kernel is launched on an address that is less aligned than it needs. Lets exceptions through; what was
/// bound by then stays in the frame.
template <class Executor>
class Interpretation {
 public:
  Interpretation(const Program& program, Frame& frame, Executor& executor)
      : program_(program),
        frame_(frame),
        executor_(executor),
        addresses_(program.slots.size(), &scratch_),
        values_(program.most_params, &scratch_) {
    if (!program.uses_arena) return;
    frame.allocate_arena();
    addresses_[Program::arena_slot] = reinterpret_cast<uint64_t>(frame.arena());
  }

  /// Runs the instructions up to this one, from where the last stretch ended.
  void run_to(size_t end) {
    for (; next_ < end; ++next_) run(program_.instructions[next_]);
    if (end == program_.instructions.size() && program_.uses_arena) frame_.release_arena();
  }

 private:
  [[nodiscard]] uint64_t value_of(const Program::Param& param) const {
    switch (param.pass) {
      case KernelArg::Pass::pointer:
        return addresses_[param.slot] + static_cast<uint64_t>(param.offset);
      case KernelArg::Pass::scalar_f64:
        return std::bit_cast<uint64_t>(frame_.scalar_f64(param.buffer));
      case KernelArg::Pass::scalar_i64:
        return static_cast<uint64_t>(frame_.scalar_i64(param.buffer));
      case KernelArg::Pass::size:
        return static_cast<uint64_t>(param.offset);
    }
    return 0;
  }

  void launch(const Program::Launch& launch) {
    const std::span params(program_.params.data() + launch.first_param, launch.param_count);
    const std::span own(values_.data(), launch.param_count);
    std::transform(params.begin(), params.end(), own.begin(), [this](const auto& param) { return value_of(param); });
    if (is_misaligned(params, own)) return launch_on_copies(launch, params, own, frame_, executor_);
    executor_.launch(launch, params, own);
  }

  void run(const Program::Instruction& instruction) {
    using Kind = Program::Instruction::Kind;
    const BufferId buffer{instruction.index};
    switch (instruction.kind) {
      case Kind::launch:
        return launch(program_.launches[instruction.index]);
      case Kind::call:
        return executor_.call(frame_, instruction.index);
      case Kind::allocate:
        return frame_.allocate(buffer);
      case Kind::bind:
        return frame_.bind(buffer);
      case Kind::release:
        return frame_.release(buffer);
      case Kind::begin_writes:
        return frame_.begin_writes();
      case Kind::fetch:
        addresses_[instruction.slot] = reinterpret_cast<uint64_t>(frame_.data(buffer));
    }
  }

  const Program& program_;
  Frame& frame_;
  Executor& executor_;
  std::array<std::byte, 2048> stack_;
  std::pmr::monotonic_buffer_resource scratch_{stack_.data(), stack_.size()};
  std::pmr::vector<uint64_t> addresses_;
  std::pmr::vector<uint64_t> values_;
  size_t next_ = 0;
};

/// Runs a whole program over a frame (see Interpretation).
template <class Executor>
void interpret(const Program& program, Frame& frame, Executor&& executor) {
  Interpretation<std::remove_reference_t<Executor>>(program, frame, executor).run_to(program.instructions.size());
}

}  // namespace sinter::runtime
