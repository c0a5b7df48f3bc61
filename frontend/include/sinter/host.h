#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace sinter {

namespace detail {

/// A function of the host, for the library: what it captures as bytes, and how to call it.
struct HostFunction {
  const std::type_info* type = nullptr;
  const void* closure = nullptr;
  size_t size = 0;
  bool plain = false;    ///< bytes say all that it captures, and copies of them are copies of it
  bool decides = false;  ///< the program may go another way by what it gives
  /// Calls a copy of the closure; nothing when it returns void.
  std::optional<at::Scalar> (*run)(const void* closure, std::span<const at::Tensor> tensors) = nullptr;
};

/// True where a call on this thread is recorded, or answered from what it did before.
[[nodiscard]] bool watches_host();

/// Runs the function, or answers from the log of this call; records it where a recording goes on.
std::optional<at::Scalar> run_host(const HostFunction& function, std::span<const at::Tensor> tensors);

template <class T>
concept HostValue = std::is_void_v<T> || std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, at::Scalar>;

template <class Value>
at::Scalar to_scalar(const Value& value) {
  if constexpr (std::same_as<Value, at::Scalar> || std::same_as<Value, bool>) {
    return value;
  } else if constexpr (std::floating_point<Value>) {
    return static_cast<double>(value);
  } else {
    return static_cast<int64_t>(value);
  }
}

template <class Value>
Value from_scalar(const at::Scalar& scalar) {
  if constexpr (std::same_as<Value, at::Scalar>) {
    return scalar;
  } else if constexpr (std::floating_point<Value>) {
    return static_cast<Value>(scalar.toDouble());
  } else {
    return static_cast<Value>(scalar.toLong());
  }
}

template <class Function, size_t... Index>
std::optional<at::Scalar> run_copy(const void* closure, std::span<const at::Tensor> tensors) {
  Function copy(*static_cast<const Function*>(closure));
  if constexpr (std::is_void_v<decltype(std::invoke(copy, tensors[Index]...))>) {
    std::invoke(copy, tensors[Index]...);
    return std::nullopt;
  } else {
    return to_scalar<std::decay_t<decltype(std::invoke(copy, tensors[Index]...))>>(
        std::invoke(copy, tensors[Index]...));
  }
}

/// Two closures that capture the same have the same bytes then, where the compiler knows how; elsewhere they may be
/// taken for different ones.
template <class Function>
void clear_padding([[maybe_unused]] Function& function) {
#if __has_builtin(__builtin_clear_padding)
  if constexpr (std::is_trivially_copyable_v<Function>) __builtin_clear_padding(&function);
#endif
}

template <class Function, size_t... Index>
HostFunction host_function(const Function& function, bool decides, std::index_sequence<Index...> /*tensors*/) {
  return {.type = &typeid(Function),
          .closure = &function,
          .size = sizeof(Function),
          .plain = std::is_trivially_copyable_v<Function> && alignof(Function) <= alignof(std::max_align_t),
          .decides = decides,
          .run = &run_copy<Function, Index...>};
}

}  // namespace detail

/// Runs `function(tensors...)` on the host, in its place among the other host functions and reads, once on every call:
/// in a callable compiled with Replay::trusted too, whose replays would not run it otherwise. With Replay::checked it
/// is a plain call, and what follows does not concern it.
///
///     sinter::host([&] { ++steps; });                                                     // an effect
///     sinter::host([&](const at::Tensor& loss) { total += loss.item<double>(); }, loss);  // with a tensor of the call
///     if (sinter::host([&] { return ++steps % 100 == 0; })) x = x + noise;                // a value
///     const at::Scalar rate = sinter::host([&] { return at::Scalar(schedule(steps)); });  // a number for operators
///     x = x * rate;
///
/// `function` returns nothing, a bool, an integer, an enumerator, a float or an at::Scalar. What it returns chooses how
/// the program goes on, as item() does: every value gets a path of its own, floats between two that were met before
/// excepted (Options::max_paths). An at::Scalar does not choose: a float in it is handed to the operators that take it,
/// whatever it is, so that no call needs a recording; what the program does must not depend on it otherwise.
///
/// The compiled object keeps a copy of `function` and calls copies of that: what it captures by reference must outlive
/// the compiled object, and not be a local variable of the callable. What it captures by value is part of the program.
/// Tensors of the call are seen through `tensors` alone, and neither written nor kept; clones may be kept. Exceptions
/// reach the caller as they do without compiling, after the same writes.
///
/// A program that does not keep to this is a break, where that can be seen: captures that are no plain bytes, or a
/// local variable; operators in `function` that write a tensor of the call or draw random numbers.
///
/// Thread-safe as far as `function` is: calls of several threads call it at the same time.
template <class Function, class... Tensors>
  requires(std::same_as<Tensors, at::Tensor> && ...) && std::invocable<Function&, const Tensors&...> &&
          detail::HostValue<std::decay_t<std::invoke_result_t<Function&, const Tensors&...>>>
std::decay_t<std::invoke_result_t<Function&, const Tensors&...>> host(Function function, const Tensors&... tensors) {
  using Value = std::decay_t<std::invoke_result_t<Function&, const Tensors&...>>;
  if (!detail::watches_host()) return std::invoke(function, tensors...);
  detail::clear_padding(function);
  const std::array<at::Tensor, sizeof...(Tensors)> given{tensors...};
  constexpr bool decides = !std::is_void_v<Value> && !std::same_as<Value, at::Scalar>;
  const auto value =
      detail::run_host(detail::host_function(function, decides, std::index_sequence_for<Tensors...>{}), given);
  if constexpr (!std::is_void_v<Value>) return detail::from_scalar<Value>(*value);
}

}  // namespace sinter
