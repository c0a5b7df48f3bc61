#pragma once

#include "execute.h"

/// What the host code of a program does besides computing.
namespace sinter::test::fuzz {

/// Whether the first block of a branch runs, for conditions that the host code decides by itself.
[[nodiscard]] bool decides(const Instruction& made, Host& host);

/// How often a loop turns whose count the host code knows.
[[nodiscard]] int turns(const Instruction& made, const Host& host);

/// Runs an instruction with an effect. In a wide run the variables of closed-over tensors change when the call ends.
void take_effect(const Instruction& made, double scale, World& world, Values& values);

}  // namespace sinter::test::fuzz
