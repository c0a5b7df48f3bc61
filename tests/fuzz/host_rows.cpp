#include <ATen/ATen.h>

#include "rows.h"

namespace sinter::test::fuzz {
namespace {

using at::Tensor;
using Tensors = std::span<Tensor>;
using Numbers = std::span<const double>;

/// As in rows.cpp, with the statement that the expression stands in.
#define STATEMENT(before, after, ...) \
  before #__VA_ARGS__ after, [](Tensors t, [[maybe_unused]] Numbers n) -> Tensor { return __VA_ARGS__; }
#define EXPRESSION(...) STATEMENT("", "", __VA_ARGS__)
#define HOLDS(...) STATEMENT("t[0] = ", "", __VA_ARGS__), On::any, Control::none, Effect::hold
#define EXCHANGES(...) \
  STATEMENT("t[1] = std::exchange(t[0], ", ")", __VA_ARGS__), On::any, Control::none, Effect::exchange
#define HAPPENS(effect, text) text, no_tensor, On::any, Control::none, effect

Tensor no_tensor(Tensors, Numbers) { return {}; }

const Row all_rows[] = {
    {Kind::host, "hT", EXPRESSION(t[0].copy_(t[1]))},
    {Kind::host, "hT", EXPRESSION(t[0].copy_(t[1].detach()))},
    {Kind::host, "hT", EXPRESSION(t[0].mul_(0.5).add_(t[1], 0.5))},
    {Kind::host, "hTr", EXPRESSION(t[0].mul_(0.5).add_(t[1].detach(), n[0]))},
    // Never all of the way: at a weight of 1 eager gives a zero one sign in vectors and another alone.
    {Kind::host, "hTr", EXPRESSION(t[0].lerp_(t[1].detach(), 0.3 * n[0]))},

    {Kind::host, "hT", HOLDS(t[1])},
    {Kind::host, "hT", HOLDS(t[1].detach())},
    {Kind::host, "hT", HOLDS(t[1].detach())},
    {Kind::host, "hT", HOLDS(t[1].clone())},
    {Kind::host, "hT", HOLDS(t[1].detach().clone())},
    {Kind::host, "hT", HOLDS(at::zeros_like(t[1]))},
    {Kind::host, "hHT", EXCHANGES(t[2].detach())},
    {Kind::host, "hHT", EXCHANGES(t[2].detach().clone())},
    {Kind::host, "hH", HAPPENS(Effect::swap, "std::swap(t[0], t[1])")},
    {Kind::host, "hH", HAPPENS(Effect::swap, "std::swap(t[0], t[1])")},

    {Kind::host, "v", HAPPENS(Effect::drop, "t[0] = Tensor()")},
    {Kind::host, "", HAPPENS(Effect::flag, "flag = !flag")},
    {Kind::host, "me", HAPPENS(Effect::flag, "flag = step % n[0] == n[1]")},
    {Kind::host, "", HAPPENS(Effect::train, "train(flag)")},
    {Kind::host, "",
     HAPPENS(Effect::rate, "for (auto& group : optimizer.param_groups()) group.options().set_lr(rate)")},
    {Kind::host, "me", HAPPENS(Effect::fail, "if (step % n[0] == n[1]) throw std::runtime_error(\"half way\")")},
};

}  // namespace

std::span<const Row> host_rows() { return all_rows; }

}  // namespace sinter::test::fuzz
