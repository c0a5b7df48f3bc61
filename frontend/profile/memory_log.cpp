#include "frontend/profile/memory_log.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "frontend/profile/operator_log.h"

namespace sinter::frontend {
namespace {

/// Blocks that live, and their bytes together.
class Living {
 public:
  explicit Living(std::span<const KnownBlock> before) {
    for (const KnownBlock& block : before) {
      if (blocks_.emplace(block.address, block).second) bytes_ += block.bytes;
    }
  }

  /// What was taken back before it was known is there no more when its address is given out again.
  void apply(const MemoryEvent& event, const KnownBlock& block) {
    if (const auto found = blocks_.find(event.address); found != blocks_.end()) {
      bytes_ -= found->second.bytes;
      blocks_.erase(found);
    }
    if (event.bytes < 0) return;
    blocks_.emplace(event.address, block);
    bytes_ += event.bytes;
  }

  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] const std::unordered_map<const void*, KnownBlock>& blocks() const { return blocks_; }

 private:
  std::unordered_map<const void*, KnownBlock> blocks_;
  int64_t bytes_ = 0;
};

/// Kinds of memory of a forward pass: of a step that trains, and of one that does not.
constexpr const char* saved_activations = "saved activations";
constexpr const char* activations = "activations";

/// Says what new blocks are for.
class BlockKinds {
 public:
  BlockKinds(std::span<const KnownBlock> after, std::span<const ProfiledOperator> operators) : operators_(operators) {
    for (const KnownBlock& block : after) after_.emplace(block.address, &block);
    trains_ = std::ranges::any_of(operators, [](const auto& op) { return op.phase == Phase::backward; });
  }

  [[nodiscard]] KnownBlock block_of(const MemoryEvent& event) const {
    KnownBlock block{.address = event.address, .bytes = event.bytes};
    if (event.position < 0 || event.position >= std::ssize(operators_)) return block;
    const ProfiledOperator& op = operators_[static_cast<size_t>(event.position)];
    block.module = op.module;
    block.position = event.position;
    const bool early = op.phase == Phase::forward || op.phase == Phase::loss;
    const auto kept = after_.find(event.address);
    if (early) {
      block.kind = trains_ ? saved_activations : activations;
    } else if (kept != after_.end()) {
      block.kind = kept->second->kind;
      block.module = kept->second->module;
    } else {
      block.kind = passing_kind(op);
    }
    return block;
  }

  static const char* passing_kind(const ProfiledOperator& op) {
    if (op.op.starts_with(segment_prefix)) return "arenas and results of segments";
    return op.phase == Phase::backward ? "passing gradients" : "other";
  }

 private:
  std::unordered_map<const void*, const KnownBlock*> after_;
  std::span<const ProfiledOperator> operators_;
  bool trains_ = false;
};

/// What the allocator had given out before the step besides these bytes; 0 where it does not say. Its blocks may be
/// larger than what was asked for.
int64_t held_besides(std::span<const MemoryEvent> events, int64_t known) {
  if (events.empty() || events.front().reserved == 0) return 0;
  return std::max<int64_t>(0, events.front().allocated - events.front().bytes - known);
}

int64_t most_reserved(std::span<const MemoryEvent> events) {
  int64_t most = -1;
  for (const MemoryEvent& event : events) {
    if (event.reserved > 0) most = std::max(most, event.reserved);
  }
  return most;
}

bool is_of_forward_pass(const MemoryOwner& owner) {
  return owner.kind == saved_activations || owner.kind == activations;
}

/// How many events come before the backward pass; nothing without one.
std::optional<size_t> backward_begins(std::span<const MemoryEvent> events, const ModeProfile& profile) {
  const auto is_backward = [&](const MemoryEvent& event) {
    const bool known = event.position >= 0 && event.position < std::ssize(profile.operators);
    return known && profile.operators[static_cast<size_t>(event.position)].phase == Phase::backward;
  };
  const auto first = std::ranges::find_if(events, is_backward);
  return first == events.end() ? std::nullopt : std::optional(static_cast<size_t>(first - events.begin()));
}

std::vector<MemoryOwner> owners_of(const Living& living) {
  std::map<std::pair<std::string, ModuleIndex>, int64_t> sums;
  for (const auto& [address, block] : living.blocks()) sums[{block.kind, block.module}] += block.bytes;
  std::vector<MemoryOwner> owners;
  for (const auto& [key, bytes] : sums) owners.push_back({key.first, key.second, bytes});
  return owners;
}

/// Does no arithmetic that counts beside the bytes it moves.
bool streams(const ProfiledOperator& op) { return op.bytes > 0 && op.flops == 0; }

std::vector<RecomputedActivations> recomputed_of(const Living& living, const ModeProfile& profile) {
  std::map<int64_t, int64_t> bytes;  // by operator
  for (const auto& [address, block] : living.blocks()) {
    if (block.kind == saved_activations && block.position >= 0) bytes[block.position] += block.bytes;
  }
  std::map<std::string, RecomputedActivations> sums;
  for (const auto& [position, given] : bytes) {
    const ProfiledOperator& op = profile.operators[static_cast<size_t>(position)];
    if (!streams(op)) continue;
    RecomputedActivations& sum = sums[op.op];
    ++sum.operators;
    sum.bytes += given;
    sum.milliseconds += profile.time_of(op) / 1e3;
  }
  std::vector<RecomputedActivations> recomputed;
  for (auto& [name, sum] : sums) {
    sum.op = name;
    recomputed.push_back(std::move(sum));
  }
  std::ranges::stable_sort(recomputed, std::greater(), &RecomputedActivations::bytes);
  return recomputed;
}

}  // namespace

void MemoryLog::reportMemoryUsage(void* address, int64_t bytes, size_t allocated, size_t reserved, c10::Device device) {
  if (device.type() != device_) return;
  const int64_t position = OperatorLog::running();
  const std::lock_guard lock(mutex_);
  events_.push_back({address, bytes, position, static_cast<int64_t>(allocated), static_cast<int64_t>(reserved)});
}

std::vector<MemoryEvent> MemoryLog::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

std::vector<KnownBlock> known_blocks(const ModuleTable& modules, at::DeviceType device) {
  std::vector<KnownBlock> blocks;
  const auto add = [&](const c10::StorageImpl& storage, const char* kind, ModuleIndex module) {
    if (storage.device().type() != device || storage.nbytes() == 0) return;
    blocks.push_back({storage.data(), static_cast<int64_t>(storage.nbytes()), kind, module});
  };
  for (const NamedTensor& named : modules.tensors()) {
    const at::Tensor tensor = lock(named.tensor);
    if (!tensor.defined() || !tensor.has_storage()) continue;
    const ModuleIndex module = modules.owner_of(tensor).module;
    add(*tensor.storage().unsafeGetStorageImpl(), "parameters", module);
    if (!tensor.is_leaf() || !tensor.grad().defined() || !tensor.grad().has_storage()) continue;
    add(*tensor.grad().storage().unsafeGetStorageImpl(), "gradients", module);
  }
  modules.visit_given_memory([&](const c10::StorageImpl& storage, const TensorOwner& owner) {
    if (owner.role == TensorOwner::Role::state) add(storage, "optimizer state", owner.module);
  });
  return blocks;
}

ProfiledMemory memory_of_step(std::span<const MemoryEvent> events, std::span<const KnownBlock> before,
                              std::span<const KnownBlock> after, const ModeProfile& profile) {
  const BlockKinds kinds(after, profile.operators);
  Living living(before);
  ProfiledMemory memory{.before = living.bytes(), .peak = living.bytes()};
  size_t at_peak = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    living.apply(events[i], {.address = events[i].address, .bytes = events[i].bytes});
    if (living.bytes() <= memory.peak) continue;
    memory.peak = living.bytes();
    at_peak = i + 1;
  }
  const auto living_after = [&](size_t count) {
    Living blocks(before);
    for (size_t i = 0; i < count; ++i) blocks.apply(events[i], kinds.block_of(events[i]));
    return blocks;
  };
  const Living peak = living_after(at_peak);
  memory.owners = owners_of(peak);
  memory.saved = owners_of(living_after(backward_begins(events, profile).value_or(at_peak)));
  std::erase_if(memory.saved, [](const MemoryOwner& owner) { return !is_of_forward_pass(owner); });
  memory.recomputed = recomputed_of(peak, profile);
  memory.held = held_besides(events, memory.before);
  memory.peak += memory.held;
  if (memory.held > 0) memory.owners.push_back({"held between steps", no_module, memory.held});
  std::ranges::stable_sort(memory.owners, std::greater(), &MemoryOwner::bytes);
  memory.reserved = most_reserved(events);
  return memory;
}

}  // namespace sinter::frontend
