#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "runtime/host.h"
#include "runtime/program.h"

namespace sinter::runtime {

/// Runs a program over a frame. `executor` has `launch(const Program::Launch&,
/// std::span<const Program::Param>, std::span<uint64_t> values)`, values being addresses and scalars as the kernel
/// takes them, and `call(Frame&, uint32_t)`. Lets exceptions through; what
/// was bound by then stays in the frame.
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
        std::transform(params.begin(), params.end(), values.begin(), value_of);
        executor.launch(launch, params, std::span(values.data(), launch.param_count));
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
