#include "frontend/trace/step_numbers.h"

#include <algorithm>

#include "compiler/ir/graph_numbers.h"
#include "frontend/trace/call_words.h"

namespace sinter::frontend {
namespace {

using Kind = StepNumberPlace::Kind;

WordKind kind_of(uint64_t word) { return static_cast<WordKind>(word & 0xFF); }

/// How many words follow the one that tells what an argument is.
size_t words_behind(uint64_t word) {
  switch (kind_of(word)) {
    case WordKind::boolean:
    case WordKind::integer:
    case WordKind::real:
      return 1;
    case WordKind::complex:
      return 2;
    case WordKind::text:
      return ((word >> 8) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    default:
      return 0;
  }
}

/// Calls `visit(word)` for every word of a key that holds an integer.
template <class Key, class Visit>
void visit_integers(Key& key, Visit&& visit) {
  for (size_t i = 0; i < key.size(); i += 1 + words_behind(key[i])) {
    if (kind_of(key[i]) == WordKind::integer) visit(i + 1);
  }
}

template <class A, class Visit>
void visit_elements(A& elements, uint32_t value, Kind sizes, Kind strides, Kind offset, Visit&& visit) {
  for (uint32_t d = 0; d < elements.sizes.size(); ++d) visit(StepNumberPlace{sizes, value, d}, elements.sizes[d]);
  for (uint32_t d = 0; d < elements.strides.size(); ++d) visit(StepNumberPlace{strides, value, d}, elements.strides[d]);
  visit(StepNumberPlace{offset, value, 0}, elements.offset);
}

/// Calls `visit(place, number)` for every whole number; `number` can be assigned to where the step can.
template <class S, class Visit>
void visit_numbers(S& step, Visit&& visit) {
  const StepNumberPlace argument{Kind::argument, 0, 0};
  visit_integers(step.key, [&](size_t word) { visit(argument, step.key[word]); });
  for (auto& arg : step.args) {
    ir::NumberPlace unused;
    auto visit_arg = [&](const ir::NumberPlace&, auto& number) { visit(argument, number); };
    ir::visit_argument_numbers(arg, unused, visit_arg);
  }
  for (uint32_t i = 0; i < step.taken.size(); ++i) {
    const bool input = step.taken[i].from == TraceValue::From::input;
    visit_elements(step.taken[i].elements, i, input ? Kind::input : Kind::given, Kind::given, Kind::given, visit);
  }
  for (uint32_t i = 0; i < step.made.size(); ++i)
    visit_elements(step.made[i].elements, i, Kind::layout, Kind::layout, Kind::place, visit);
  for (auto& memory : step.memories) visit(StepNumberPlace{Kind::bytes, 0, 0}, memory.bytes);
}

bool same_form(const TraceValue& a, const TraceValue& b) {
  return a.from == b.from && a.memory == b.memory && a.elements.dtype == b.elements.dtype &&
         a.elements.reading == b.elements.reading && a.elements.sizes.size() == b.elements.sizes.size();
}

bool same_form(const TraceMemory& a, const TraceMemory& b) {
  return a.device == b.device && a.fresh == b.fresh && a.root == b.root;
}

bool same_form(const Returned& a, const Returned& b) {
  if (a.how != b.how || a.argument != b.argument || a.value != b.value || a.base != b.base) return false;
  if (a.how == Returned::How::constant && !(a.constant.isNone() && b.constant.isNone())) {
    const bool undefined = a.constant.isTensor() && b.constant.isTensor() && !a.constant.toTensor().defined();
    if (!undefined && !(a.constant.isInt() && b.constant.isInt() && a.constant.toInt() == b.constant.toInt())) {
      return false;
    }
  }
  return std::ranges::equal(a.items, b.items, [](const auto& x, const auto& y) { return same_form(x, y); });
}

/// The same arguments but for whole numbers.
bool same_form(const ir::Arg& a, const ir::Arg& b) {
  if (a.data.index() != b.data.index()) return false;
  if (std::holds_alternative<int64_t>(a.data)) return true;
  const auto* list = a.list();
  if (list == nullptr) return a == b || std::holds_alternative<double>(a.data);
  return std::ranges::equal(*list, *b.list(), [](const auto& x, const auto& y) { return same_form(x, y); });
}

bool same_keys(const Step& a, const Step& b, uint64_t& live) {
  if (a.key.size() != b.key.size()) return false;
  CallKey first = a.key, second = b.key;
  visit_integers(first, [&](size_t word) { first[word] = 0; });
  visit_integers(second, [&](size_t word) { second[word] = 0; });
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    const uint32_t word = a.numbers[i].word;
    if (word != b.numbers[i].word || a.numbers[i].integer != b.numbers[i].integer) return false;
    if (a.key[word] != b.key[word]) live |= uint64_t{1} << i;
    first[word] = second[word] = 0;
  }
  return first == second;
}

}  // namespace

StepNumbers whole_numbers_of(const Step& step) {
  StepNumbers numbers;
  visit_numbers(step,
                [&](const StepNumberPlace&, const auto& number) { numbers.push_back(static_cast<int64_t>(number)); });
  return numbers;
}

std::vector<StepNumberPlace> number_places(const Step& step) {
  std::vector<StepNumberPlace> places;
  visit_numbers(step, [&](const StepNumberPlace& place, const auto&) { places.push_back(place); });
  return places;
}

Step with_numbers(const Step& step, std::span<const int64_t> numbers) {
  Step other = step;
  size_t next = 0;
  visit_numbers(other, [&](const StepNumberPlace&, auto& number) {
    number = static_cast<std::decay_t<decltype(number)>>(numbers[next++]);
  });
  return other;
}

bool differ_in_integers_only(const CallKey& a, const CallKey& b) {
  if (a.size() != b.size() || a == b) return false;
  CallKey first = a, second = b;
  visit_integers(first, [&](size_t word) { first[word] = 0; });
  visit_integers(second, [&](size_t word) { second[word] = 0; });
  return first == second;
}

bool differ_in_integers(const CallKey& a, const CallKey& b) {
  const auto integers_of = [](CallKey key) {
    CallKey integers;
    visit_integers(key, [&](size_t word) { integers.push_back(key[word]); });
    return integers;
  };
  const CallKey first = integers_of(a), second = integers_of(b);
  return first.size() == second.size() && first != second;
}

bool differ_in_numbers_only(const Step& a, const Step& b, uint64_t& live) {
  if (a.op != b.op || a.module != b.module || !a.opaques.empty() || !b.opaques.empty()) return false;
  if (a.results != b.results || a.written != b.written || a.mutates != b.mutates) return false;
  if (a.numbers.size() != b.numbers.size() || !same_keys(a, b, live)) return false;
  const auto same = [](const auto& x, const auto& y) { return same_form(x, y); };
  return std::ranges::equal(a.args, b.args, same) && std::ranges::equal(a.taken, b.taken, same) &&
         std::ranges::equal(a.made, b.made, same) && std::ranges::equal(a.memories, b.memories, same) &&
         std::ranges::equal(a.returns, b.returns, same);
}

}  // namespace sinter::frontend
