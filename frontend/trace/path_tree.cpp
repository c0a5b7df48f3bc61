#include "frontend/trace/path_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "frontend/trace/call_words.h"
#include "frontend/trace/path_families.h"
#include "frontend/trace/step_numbers.h"

namespace sinter::frontend {
namespace {

/// The numbers that differ, as bits; nothing where something else differs, or a number is none that a kernel takes.
std::optional<uint64_t> differing_numbers(const Step& a, const Step& b) {
  if (a.key.size() != b.key.size()) return std::nullopt;
  uint64_t differing = 0;
  size_t number = 0;
  for (size_t i = 0; i < a.key.size(); ++i) {
    if (a.key[i] == b.key[i]) continue;
    while (number < a.numbers.size() && a.numbers[number].word < i) ++number;
    if (number == a.numbers.size() || a.numbers[number].word != i) return std::nullopt;
    if (!a.numbers[number].takes(b.key[i])) return std::nullopt;
    differing |= uint64_t{1} << number;
  }
  return differing;
}

/// What a step takes fits values that are aligned at least as recorded.
bool fits(const TraceValue& now, const TraceValue& recorded) {
  return now.from == recorded.from && now.memory == recorded.memory && now.alignment >= recorded.alignment &&
         now.elements == recorded.elements;
}

/// True where a step is a call of the recorded one, whatever its numbers are.
bool is_call_of(const Step& now, const Step& recorded) {
  return now.op == recorded.op && now.memories == recorded.memories &&
         std::ranges::equal(now.taken, recorded.taken, fits) && differing_numbers(recorded, now).has_value();
}

/// The node among these siblings whose step this one is a call of.
PathNode* find_same(PathNode* node, const Step& step) {
  for (; node != nullptr; node = node->sibling) {
    if (!is_call_of(step, node->step)) continue;
    node->live.fetch_or(*differing_numbers(node->step, step), std::memory_order_relaxed);
    return node;
  }
  return nullptr;
}

/// Memory that steps make begins where its first value does; of other memory only the call tells.
bool counts_from_what_came(const Step& step, const TensorTable& table) {
  if (!step.facts->storage_offset) return false;
  const TraceValueId counted{static_cast<uint32_t>(step.key[0] >> 8)};  // the first argument
  return step.key[0] != tensor_word(counted) || !table.known(table.value(counted).memory).fresh;
}

bool is_same_call(const Shortcut& a, const Shortcut& b) {
  return a.op == b.op && a.key == b.key && a.inference == b.inference && a.tracked == b.tracked;
}

/// Puts an item in front of a list whose readers take no lock.
template <class T>
const T* put_in_front(std::atomic<const T*>& list, std::deque<T>& items, T item) {
  item.next = list.load(std::memory_order_relaxed);
  const T* added = &items.emplace_back(std::move(item));
  list.store(added, std::memory_order_release);
  return added;
}

}  // namespace

void Ending::add(std::span<const TraceMemoryId> memories, std::string_view reason) {
  const auto add_new = [](auto& known, const auto& item) {
    if (std::ranges::find(known, item) == known.end()) known.emplace_back(item);
  };
  for (const TraceMemoryId memory : memories) add_new(escaped, memory);
  add_new(reasons, reason);
}

ir::Scalar StepNumber::value(uint64_t bits) const {
  if (integer) return std::bit_cast<int64_t>(bits);
  return std::bit_cast<double>(bits);
}

bool StepNumber::takes(uint64_t bits) const {
  const double number = integer ? static_cast<double>(std::bit_cast<int64_t>(bits)) : std::bit_cast<double>(bits);
  return !std::isfinite(number) || std::abs(number) <= most;
}

PathTree::PathTree() : families_(std::make_unique<PathFamilies>()) { nodes_.emplace_back(); }

PathTree::~PathTree() = default;

const PathNode* PathTree::first_call_of(const PathNode& at, const c10::OperatorHandle& op) {
  for (const PathNode* node = at.first.load(std::memory_order_acquire); node != nullptr; node = node->sibling) {
    if (node->step.op == op) return node;
  }
  return nullptr;
}

PathNode* PathTree::find(const PathNode& at, const c10::OperatorHandle& op, CallArguments arguments, TensorTable& table,
                         CallNumbers& numbers) {
  PathNode* near = nullptr;
  const auto matches = [&](const PathNode& node) {
    numbers.bits.clear();
    numbers.differing = 0;
    table.begin_call();
    return is_call_of(node.step, arguments, table, numbers);
  };
  for (PathNode* node = at.first.load(std::memory_order_acquire); node != nullptr; node = node->sibling) {
    if (node->step.op != op) continue;
    if (matches(*node)) {
      if ((numbers.differing & ~node->live.load(std::memory_order_relaxed)) == 0) return node;
      if (near == nullptr) near = node;
    }
    table.forget_added();
  }
  if (near == nullptr || !matches(*near)) return nullptr;
  near->live.fetch_or(numbers.differing, std::memory_order_relaxed);
  return near;
}

PathTree::Added PathTree::add(PathNode& behind, Step step) {
  const std::lock_guard lock(mutex_);
  if (PathNode* same = find_same(behind.first.load(std::memory_order_relaxed), step)) return {*same};
  PathNode& node = nodes_.emplace_back();
  node.parent = &behind;
  node.depth = behind.depth + 1;
  node.values = behind.values + static_cast<uint32_t>(step.taken.size() + step.made.size());
  node.memories = behind.memories + static_cast<uint32_t>(step.memories.size());
  node.step = std::move(step);
  node.sibling = behind.first.load(std::memory_order_relaxed);
  behind.first.store(&node, std::memory_order_release);
  size_.fetch_add(1, std::memory_order_relaxed);
  return {node, true};
}

void PathTree::add(PathNode& at, Shortcut shortcut) {
  constexpr size_t most = 4;  // with other numbers
  const std::lock_guard lock(mutex_);
  size_t known = 0;
  for (const auto* other = at.shortcuts.load(std::memory_order_relaxed); other != nullptr; other = other->next) {
    if (++known == most || is_same_call(*other, shortcut)) return;
  }
  put_in_front(at.shortcuts, shortcuts_, std::move(shortcut));
}

const KnownBackward* PathTree::add(PathNode& at, KnownBackward pass) {
  constexpr size_t most = 4;  // over other graphs, or into other gradients
  const std::lock_guard lock(mutex_);
  size_t known = 0;
  for (const auto* other = at.backward.load(std::memory_order_relaxed); other != nullptr; other = other->next) {
    if (++known == most) return nullptr;
  }
  return put_in_front(at.backward, backward_, std::move(pass));
}

void PathTree::note(Calls& calls, const PathNode& at, const c10::OperatorHandle& op) {
  const std::lock_guard lock(mutex_);
  calls.all.emplace_back(&at, op);
  calls.any.store(true, std::memory_order_relaxed);
}

bool PathTree::holds(const Calls& calls, const PathNode& at, const c10::OperatorHandle& op) {
  if (!calls.any.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(mutex_);
  return std::ranges::find(calls.all, std::pair(&at, op)) != calls.all.end();
}

void PathTree::note_throw(const PathNode& at, const c10::OperatorHandle& op, bool threw) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(threw_.all, std::pair(&at, op));
    threw_.any.store(!threw_.all.empty(), std::memory_order_relaxed);
  }
  if (threw) note(threw_, at, op);
}

bool PathTree::throws(const PathNode& at, const c10::OperatorHandle& op) { return holds(threw_, at, op); }

bool PathTree::has_other_integers(const PathNode& at, const c10::OperatorHandle& op) {
  return holds(other_integers_, at, op);
}

bool PathTree::has_other_places(const PathNode& at, const c10::OperatorHandle& op) {
  return holds(other_places_, at, op);
}

const PathNode* PathTree::find_other_integers(const PathNode& at, const c10::OperatorHandle& op, const CallKey& key,
                                              std::span<const TraceValue* const> taken, const PathNode* beside) {
  const auto lies_alike = [](const TraceValue* now, const TraceValue& then) { return now->elements == then.elements; };
  const PathNode* node = at.first.load(std::memory_order_acquire);
  while (node != nullptr && !(node->step.op == op && std::ranges::equal(taken, node->step.taken, lies_alike) &&
                              differ_in_integers_only(key, node->step.key))) {
    node = node->sibling;
  }
  if (node == nullptr && beside != nullptr) {
    node = first_call_of(*beside, op);
    if (node != nullptr && !differ_in_integers(key, node->step.key)) node = nullptr;
  }
  if (node != nullptr) note(other_integers_, at, op);
  return node;
}

bool PathTree::finds_other_places(const PathNode& at, const c10::OperatorHandle& op, const CallKey& key,
                                  std::span<const TraceValue* const> taken, bool placed) {
  constexpr int few = 2;  // are branches
  const auto was_met = [&](const TraceValue* now) { return now->memory.index < at.memories; };
  if (placed && std::ranges::any_of(taken, was_met)) {
    note(other_places_, at, op);
    return true;
  }
  const auto looks_alike = [&](const TraceValue* now, const TraceValue& then) {
    Elements moved = now->elements;
    if (now->memory.index < at.memories) moved.offset = then.elements.offset;
    return now->from == then.from && now->memory == then.memory && moved == then.elements;
  };
  int found = 0;
  for (const PathNode* node = at.first.load(std::memory_order_acquire); node != nullptr; node = node->sibling) {
    found += static_cast<int>(node->step.op == op && node->step.key == key &&
                              std::ranges::equal(taken, node->step.taken, looks_alike));
  }
  if (found >= few) note(other_places_, at, op);
  return found >= few;
}

std::vector<const PathNode*> steps_to(const PathNode& node) {
  std::vector<const PathNode*> steps;
  for (const PathNode* at = &node; at->parent != nullptr; at = at->parent) steps.push_back(at);
  std::ranges::reverse(steps);
  return steps;
}

std::optional<std::vector<const PathNode*>> plain_steps_between(const PathNode& begin, const PathNode& end,
                                                                const TensorTable& table) {
  std::vector<const PathNode*> steps;
  for (const PathNode* node = &end; node != &begin; node = node->parent) {
    if (node == nullptr || node->step.draw || node->live.load(std::memory_order_relaxed) != 0) return std::nullopt;
    if (node->step.data_rule != nullptr || counts_from_what_came(node->step, table)) return std::nullopt;
    if (!node->step.raised.empty()) return std::nullopt;
    steps.push_back(node);
  }
  std::ranges::reverse(steps);
  return steps;
}

}  // namespace sinter::frontend
