#include "frontend/trace/path_tree.h"

#include <algorithm>
#include <bit>

namespace sinter::frontend {
namespace {

/// A call fits values that are aligned at least as recorded.
bool fits(const TraceValue& now, const TraceValue& recorded) {
  return now.from == recorded.from && now.memory == recorded.memory && now.alignment >= recorded.alignment &&
         now.elements == recorded.elements;
}

/// The numbers of a step that differ in a call, as bits; nothing where something else differs.
std::optional<uint64_t> differing_numbers(const Step& step, const CallKey& key) {
  if (step.key.size() != key.size()) return std::nullopt;
  uint64_t differing = 0;
  size_t number = 0;
  for (size_t i = 0; i < key.size(); ++i) {
    if (step.key[i] == key[i]) continue;
    while (number < step.numbers.size() && step.numbers[number].word < i) ++number;
    if (number == step.numbers.size() || step.numbers[number].word != i) return std::nullopt;
    differing |= uint64_t{1} << number;
  }
  return differing;
}

/// The numbers that are to be live for a step to be this call; nothing where it is another one.
std::optional<uint64_t> is_call_of(const Step& step, const c10::OperatorHandle& op, const CallKey& key,
                                   std::span<const TraceValue> taken, std::span<const TraceMemory> memories) {
  const bool alike = step.op == op && step.taken.size() == taken.size() &&
                     std::equal(taken.begin(), taken.end(), step.taken.begin(), fits) &&
                     memories.size() <= step.memories.size() &&
                     std::equal(memories.begin(), memories.end(), step.memories.begin());
  return alike ? differing_numbers(step, key) : std::nullopt;
}

}  // namespace

ir::Scalar StepNumber::value(const CallKey& key) const {
  if (integer) return std::bit_cast<int64_t>(key[word]);
  return std::bit_cast<double>(key[word]);
}

PathTree::PathTree() { nodes_.emplace_back(); }

bool PathTree::follows(const PathNode& at, const c10::OperatorHandle& op) {
  for (const PathNode* node = at.first.load(std::memory_order_acquire); node != nullptr; node = node->sibling) {
    if (node->step.op == op) return true;
  }
  return false;
}

PathNode* PathTree::find(const PathNode& at, const c10::OperatorHandle& op, const CallKey& key,
                         std::span<const TraceValue> taken, std::span<const TraceMemory> memories) {
  PathNode* near = nullptr;
  uint64_t differing = 0;
  for (PathNode* node = at.first.load(std::memory_order_acquire); node != nullptr; node = node->sibling) {
    const auto numbers = is_call_of(node->step, op, key, taken, memories);
    if (!numbers) continue;
    if ((*numbers & ~node->live.load(std::memory_order_relaxed)) == 0) return node;
    if (near == nullptr) near = node, differing = *numbers;
  }
  if (near != nullptr) near->live.fetch_or(differing, std::memory_order_relaxed);
  return near;
}

PathNode& PathTree::add(PathNode& behind, Step step) {
  const std::lock_guard lock(mutex_);
  const std::span<const TraceMemory> taken_memories(step.memories.data(), step.memories.size());
  if (PathNode* equal = find(behind, *step.op, step.key, step.taken, taken_memories)) return *equal;
  PathNode& node = nodes_.emplace_back();
  node.parent = &behind;
  node.depth = behind.depth + 1;
  node.values = behind.values + static_cast<uint32_t>(step.taken.size() + step.made.size());
  node.memories = behind.memories + static_cast<uint32_t>(step.memories.size());
  node.step = std::move(step);
  node.sibling = behind.first.load(std::memory_order_relaxed);
  behind.first.store(&node, std::memory_order_release);
  size_.fetch_add(1, std::memory_order_relaxed);
  return node;
}

std::vector<const PathNode*> steps_to(const PathNode& node) {
  std::vector<const PathNode*> steps;
  for (const PathNode* at = &node; at->parent != nullptr; at = at->parent) steps.push_back(at);
  std::ranges::reverse(steps);
  return steps;
}

}  // namespace sinter::frontend
