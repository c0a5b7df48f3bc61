#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>
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

/// Runs a program over a frame. `executor` has `launch(const Program::Launch&,
/// std::span<const Program::Param>, std::span<uint64_t> values)`, values being addresses and scalars as the kernel
/// takes them, `call(Frame&, uint32_t)`, and `copy(uint64_t to, uint64_t from, int64_t bytes)` in order with the
/// launches. No kernel is launched on an address that is less aligned than it needs. Lets exceptions through; what was
/// bound by then stays in the frame.
template <class Executor>
void interpret(const Program& program, Frame& frame, Executor&& executor) {
  std::array<std::byte, 2048> stack;
  std::pmr::monotonic_buffer_resource scratch(stack.data(), stack.size());
  std::pmr::vector<uint64_t> addresses(program.slots.size(), &scratch);
  std::pmr::vector<uint64_t> values(program.most_params, &scratch);
  if (program.uses_arena) {
    frame.allocate_arena();
    addresses[Program::arena_slot] = reinterpret_cast<uint64_t>(frame.arena());
  }
  const auto value_of = [&](const Program::Param& param) -> uint64_t {
    switch (param.pass) {
      case KernelArg::Pass::pointer:
        return addresses[param.slot] + static_cast<uint64_t>(param.offset);
      case KernelArg::Pass::scalar_f64:
        return std::bit_cast<uint64_t>(frame.scalar_f64(param.buffer));
      case KernelArg::Pass::scalar_i64:
        return static_cast<uint64_t>(frame.scalar_i64(param.buffer));
      case KernelArg::Pass::size:
        return static_cast<uint64_t>(param.offset);
    }
    return 0;
  };
  using Kind = Program::Instruction::Kind;
  for (const Program::Instruction& instruction : program.instructions) {
    const BufferId buffer{instruction.index};
    switch (instruction.kind) {
      case Kind::launch: {
        const Program::Launch& launch = program.launches[instruction.index];
        const std::span params(program.params.data() + launch.first_param, launch.param_count);
        const std::span own(values.data(), launch.param_count);
        std::transform(params.begin(), params.end(), own.begin(), value_of);
        if (is_misaligned(params, own)) {
          launch_on_copies(launch, params, own, frame, executor);
        } else {
          executor.launch(launch, params, own);
        }
        break;
      }
      case Kind::call:
        executor.call(frame, instruction.index);
        break;
      case Kind::allocate:
        frame.allocate(buffer);
        break;
      case Kind::bind:
        frame.bind(buffer);
        break;
      case Kind::release:
        frame.release(buffer);
        break;
      case Kind::begin_writes:
        frame.begin_writes();
        break;
      case Kind::fetch:
        addresses[instruction.slot] = reinterpret_cast<uint64_t>(frame.data(buffer));
        break;
    }
  }
  if (program.uses_arena) frame.release_arena();
}

}  // namespace sinter::runtime
