#include "effects.h"

#include <stdexcept>
#include <utility>

namespace sinter::test::fuzz {
namespace {

using at::Tensor;

void hold(Name variable, const Tensor& tensor, World& world, Values& values) {
  values.at(variable) = tensor;
  if (!world.wide) world.state.at(variable) = tensor;
}

/// Whether this is one of the calls that the first two numbers of an instruction name.
bool is_named(const Instruction& made, const Host& host) {
  return host.step() % static_cast<int64_t>(made.numbers[0]) == static_cast<int64_t>(made.numbers[1]);
}

void set_rate(World& world) {
  if (world.optimizer == nullptr) return;
  for (auto& group : world.optimizer->param_groups()) group.options().set_lr(world.host.rate());
}

}  // namespace

bool decides(const Instruction& made, Host& host) {
  if (made.row->control == Control::coin) return host.coin();
  return made.row->control == Control::flagged ? host.flag() : is_named(made, host);
}

int turns(const Instruction& made, const Host& host) {
  const auto count = static_cast<int64_t>(made.numbers[0]);
  return static_cast<int>(made.row->control == Control::turns ? host.step() % count : count);
}

void take_effect(const Instruction& made, double scale, World& world, Values& values) {
  Host& host = world.host;
  switch (made.row->effect) {
    case Effect::hold:
      return hold(made.operands[0], value_of(made, world, scale, values), world, values);
    case Effect::exchange: {
      const Tensor next = value_of(made, world, scale, values);
      hold(made.operands[1], values.at(made.operands[0]), world, values);
      return hold(made.operands[0], next, world, values);
    }
    case Effect::swap: {
      const Tensor first = values.at(made.operands[0]);
      hold(made.operands[0], values.at(made.operands[1]), world, values);
      return hold(made.operands[1], first, world, values);
    }
    case Effect::drop:
      values.at(made.operands[0]) = Tensor();
      return;
    case Effect::flag:
      return host.set_flag(made.numbers.empty() ? !host.flag() : is_named(made, host));
    case Effect::train:
      return world.modules.at(made.module).ptr()->train(host.flag());
    case Effect::rate:
      return set_rate(world);
    case Effect::fail:
      if (is_named(made, host)) throw std::runtime_error("half way");
      return;
    case Effect::none:
      return;
  }
}

}  // namespace sinter::test::fuzz
