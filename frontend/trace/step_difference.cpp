#include "frontend/trace/step_difference.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/print.h"

namespace sinter::frontend {
namespace {

std::string text_of(const TraceValue& value) {
  // The device is told apart by the memory: what a step takes lies on one that the operator takes.
  const ir::Type type = value.elements.type(c10::Device(c10::kCPU));
  std::string text = ir::to_string(type, type.device);
  if (value.from == TraceValue::From::look) text += fmt::format(", a part from element {}", value.elements.offset);
  if (value.alignment < ir::full_alignment) text += fmt::format(", aligned to {} bytes", value.alignment);
  return text;
}

/// Two different arguments at one place.
GuardMiss difference(std::string place, const ir::Arg& recorded, const ir::Arg& now) {
  if (const auto *before = recorded.list(), *after = now.list(); before != nullptr && after != nullptr) {
    if (before->size() != after->size()) {
      return {std::move(place), fmt::format("{} items", before->size()), fmt::format("{} items", after->size())};
    }
    const auto [a, b] = std::ranges::mismatch(*before, *after);
    return difference(fmt::format("{}, item {}", place, a - before->begin()), *a, *b);
  }
  const bool before = ir::holds_value(recorded), after = ir::holds_value(now);
  if (before && after) return {std::move(place), "one tensor of the call", "another one that is like it"};
  return {std::move(place), before ? "a tensor" : ir::to_string(recorded), after ? "a tensor" : ir::to_string(now)};
}

}  // namespace

GuardMiss difference(const Step& recorded, const Step& now, uint32_t position) {
  const std::string& was = recorded.facts->name;
  const std::string& is = now.facts->name;
  if (was != is) return {fmt::format("operator {}", position), was, is};
  const std::string place = fmt::format("operator {}, {}", position, is);
  for (size_t i = 0; i < std::min(recorded.taken.size(), now.taken.size()); ++i) {
    std::string a = text_of(recorded.taken[i]), b = text_of(now.taken[i]);
    if (a != b) return {place, std::move(a), std::move(b)};
  }
  for (size_t i = 0; i < std::min(recorded.args.size(), now.args.size()); ++i) {
    if (recorded.args[i] == now.args[i]) continue;
    return difference(fmt::format("{}: argument {}", place, i), recorded.args[i], now.args[i]);
  }
  return {place, "tensors that share memory in one way", "tensors that share it in another"};
}

}  // namespace sinter::frontend
