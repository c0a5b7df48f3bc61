#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <tuple>
#include <utility>

#include "sinter/detail/flatten.h"

/// Control flow that depends on data, said as such. Both functions do what they say, compiled or not; in a compiled
/// callable every condition is a read of one bool, and every sequence of conditions a path of its own.
namespace sinter {

/// then_fn(operands...) where `condition`, a tensor with one element, is not zero, else else_fn(operands...). Both
/// return the same type.
template <class Then, class Else, class... Operands>
auto cond(const at::Tensor& condition, Then&& then_fn, Else&& else_fn, const Operands&... operands) {
  if (condition.is_nonzero()) return std::invoke(std::forward<Then>(then_fn), operands...);
  return std::invoke(std::forward<Else>(else_fn), operands...);
}

/// While condition(carried) is not zero, carried = body(carried); gives what is carried in the end. Several carried
/// values are a tuple, whose items are handed on one by one; `condition` returns a tensor with one element, `body` what
/// is carried on.
template <class Condition, class Body, class Carried>
Carried while_loop(Condition&& condition, Body&& body, Carried carried) {
  if constexpr (detail::is_tuple<Carried>) {
    while (std::apply(condition, carried).is_nonzero()) carried = std::apply(body, std::move(carried));
  } else {
    while (std::invoke(condition, carried).is_nonzero()) carried = std::invoke(body, std::move(carried));
  }
  return carried;
}

}  // namespace sinter
