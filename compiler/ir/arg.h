#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/type.h"

namespace sinter::ir {

struct ValueTag;
struct NodeTag;
struct ScopeTag;
using ValueId = StrongId<ValueTag>;
using NodeId = StrongId<NodeTag>;
using ScopeId = StrongId<ScopeTag>;

/// A number known when the graph is built.
using Scalar = std::variant<bool, int64_t, double>;

struct None {
  bool operator==(const None&) const = default;
};
/// An enumerator of LibTorch the compiler does not interpret: layout, memory format.
struct Enum {
  std::string kind;  ///< "layout", "memory_format"
  int64_t value = 0;
  bool operator==(const Enum&) const = default;
};
/// An argument only the frontend understands (a generator, a stream, a custom class): an index into its table.
struct Opaque {
  uint32_t index = 0;
  bool operator==(const Opaque&) const = default;
};

struct Arg;
using ArgList = std::vector<Arg>;

/// One argument of a node: a value, a scalar, or an attribute of an ATen call.
struct Arg {
  std::variant<None, ValueId, bool, int64_t, double, std::string, DType, Device, Enum, Opaque, ArgList> data;

  bool operator==(const Arg&) const = default;
  [[nodiscard]] bool is_none() const { return std::holds_alternative<None>(data); }
  [[nodiscard]] const ValueId* value() const { return std::get_if<ValueId>(&data); }
  [[nodiscard]] const ArgList* list() const { return std::get_if<ArgList>(&data); }
  [[nodiscard]] bool is_scalar() const {
    return std::holds_alternative<bool>(data) || std::holds_alternative<int64_t>(data) ||
           std::holds_alternative<double>(data);
  }
};

/// The integer that an argument is; nothing for others.
[[nodiscard]] inline std::optional<int64_t> integer_in(const Arg& arg) {
  const auto* number = std::get_if<int64_t>(&arg.data);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

/// The integers of a list; nothing where it holds others, or the argument is no list.
[[nodiscard]] inline std::optional<std::vector<int64_t>> integers_in(const Arg& arg) {
  if (arg.list() == nullptr) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Arg& element : *arg.list()) {
    const auto number = integer_in(element);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

/// A number for each of `axes`: a list of as many, or of one that stands for all. Nothing for others.
[[nodiscard]] inline std::optional<std::vector<int64_t>> integers_per_axis(const Arg& arg, size_t axes) {
  auto numbers = integers_in(arg);
  if (!numbers) return std::nullopt;
  if (numbers->size() == 1) numbers->resize(axes, numbers->front());
  return numbers->size() == axes ? numbers : std::nullopt;
}

/// Calls `visit(ValueId&)` (or `const ValueId&`) for every value in an argument, lists included, left to right.
template <class A, class Visit>
void for_each_value(A& arg, Visit&& visit) {
  if (auto* value = std::get_if<ValueId>(&arg.data)) {
    visit(*value);
  } else if (auto* list = std::get_if<ArgList>(&arg.data)) {
    for (auto& element : *list) for_each_value(element, visit);
  }
}

/// True where an argument is a value, or a list with one in it.
[[nodiscard]] inline bool holds_value(const Arg& arg) {
  bool found = false;
  for_each_value(arg, [&found](const ValueId&) { found = true; });
  return found;
}

}  // namespace sinter::ir
