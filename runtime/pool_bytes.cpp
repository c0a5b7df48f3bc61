#include "runtime/pool_bytes.h"

#include <algorithm>
#include <vector>

namespace sinter::runtime {
namespace {

int64_t counted_bytes(const Plan& plan, BufferId buffer) {
  const int64_t bytes = span_bytes(plan.buffers[buffer.index].type);
  return bytes < least_counted_bytes ? 0 : bytes;
}

/// Memory of a run: a root's is held as long as any buffer in it is bound.
class HeldMemory {
 public:
  HeldMemory(const Plan& plan, std::span<const BufferId> given, int64_t from_the_start)
      : plan_(plan), bound_(plan.buffers.size(), 0), counts_(plan.buffers.size(), false), held_(from_the_start) {
    for (uint32_t i = 0; i < plan.buffers.size(); ++i) counts_[i] = is_made_by_the_run(plan.buffers[i]);
    for (const BufferId buffer : given) counts_[buffer.index] = false;
    most_ = held_;
  }

  void bind(BufferId buffer) {
    if (!buffer.valid()) return;
    const BufferId root = root_of(plan_, buffer).buffer;
    if (!counts_[root.index] || bound_[root.index]++ > 0) return;
    held_ += counted_bytes(plan_, root);
    most_ = std::max(most_, held_);
  }

  void release(BufferId buffer) {
    const BufferId root = root_of(plan_, buffer).buffer;
    if (bound_[root.index] > 0 && --bound_[root.index] == 0) held_ -= counted_bytes(plan_, root);
  }

  [[nodiscard]] int64_t most() const { return most_; }

 private:
  [[nodiscard]] bool is_made_by_the_run(const Buffer& buffer) const {
    const bool made = buffer.kind == BufferKind::output || buffer.kind == BufferKind::result;
    return made && buffer.type.device == plan_.device;
  }

  const Plan& plan_;
  std::vector<uint32_t> bound_;  ///< of each root: how many buffers in it are bound
  std::vector<bool> counts_;     ///< roots
  int64_t held_ = 0;
  int64_t most_ = 0;
};

}  // namespace

int64_t pool_bytes(const Plan& plan, const Program& program, std::span<const BufferId> given,
                   std::span<const BufferId> copied) {
  using Kind = Program::Instruction::Kind;
  int64_t from_the_start = program.uses_arena ? plan.arena_bytes : 0;
  for (const BufferId buffer : copied) from_the_start += counted_bytes(plan, buffer);
  HeldMemory memory(plan, given, from_the_start);
  for (const Program::Instruction& instruction : program.instructions) {
    switch (instruction.kind) {
      case Kind::call:
        for (const BufferId result : plan.calls[instruction.index].results) memory.bind(result);
        break;
      case Kind::allocate:
      case Kind::bind:
        memory.bind(BufferId{instruction.index});
        break;
      case Kind::release:
        memory.release(BufferId{instruction.index});
        break;
      case Kind::launch:
      case Kind::fetch:
      case Kind::begin_writes:
        break;
    }
  }
  return memory.most();
}

}  // namespace sinter::runtime
