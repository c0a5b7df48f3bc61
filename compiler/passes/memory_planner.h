#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/passes/arena.h"
#include "compiler/passes/live_bytes.h"
#include "compiler/passes/plan_memory.h"

namespace sinter::passes {

/// How results of kernels that are no outputs get their memory.
enum class Temporaries : uint8_t {
  arena,   ///< one allocation a call, shared by liveness
  single,  ///< allocated before, released after use
};

/// Works out one plan. Values that share memory (views, results of calls that alias an argument, results that take over
/// an argument's memory) form one `Memory`, which lives until the last use of any of them.
class MemoryPlanner {
 public:
  MemoryPlanner(const ir::Graph& graph, const PassContext& context, Temporaries temporaries);

  [[nodiscard]] PlannedMemory run();
  /// Most bytes the steps hold at once, inputs and state not counted. After `run`.
  [[nodiscard]] int64_t peak_bytes() const { return peak_bytes_; }
  /// PlannedMemory::owners. After `run`.
  [[nodiscard]] std::vector<SegmentOwner> owners() const;

 private:
  static constexpr size_t forever = static_cast<size_t>(-1);
  static constexpr uint32_t none = static_cast<uint32_t>(-1);

  struct Memory {
    BufferId buffer;              ///< the root
    std::vector<BufferId> bound;  ///< tensors the frame holds in it: released with it
    bool owned = false;           ///< may be taken over once dead
    uint32_t chunk = none;        ///< arena memory
    int64_t bytes = 0;            ///< what it costs while alive; 0 for what the caller or the arena holds
    size_t last = 0;              ///< position of the last use
    std::vector<LiveValue> held;  ///< values that lie in it, one after the other
  };
  /// What is known of a value in the phase being planned.
  struct Place {
    uint32_t memory = none;
    BufferId buffer;
    bool bound = false;  ///< the frame holds a tensor for it
  };

  void collect_roots();
  void plan_phase(const std::vector<ir::NodeId>& nodes, std::vector<Step>& steps, bool once);
  void collect_last_uses(const std::vector<ir::NodeId>& nodes, bool once);
  void start_given(bool once);
  void visit_call(ir::NodeId id);
  void visit_fused(ir::NodeId id);
  void add_result(ir::ValueId value);
  void add_kernel_result(ir::ValueId value, const ir::Node& node, size_t output, std::vector<bool>& in_place);
  bool take_over(ir::ValueId value, const ir::Node& node, size_t output, std::vector<bool>& in_place);
  void release_dead();
  void add_outputs();
  void place_chunks();

  // write_planner.cpp: memory that outlives the call
  void collect_homes();
  /// True when a value may be put into the memory it is written back to, at the node being planned.
  [[nodiscard]] bool can_settle(ir::ValueId value) const;
  [[nodiscard]] bool may_throw_after(ir::ValueId value) const;
  void settle(ir::ValueId value);
  bool store_at_home(ir::ValueId value, const ir::Node& node, size_t output, std::vector<bool>& in_place);
  bool copy_at_home(const ir::Node& node);
  void visit_scatter(const ir::Node& node);
  bool scatter_at_home(ir::ValueId base, ir::ValueId source, ir::ValueId result);
  bool scatter_over(ir::ValueId base, ir::ValueId source, ir::ValueId result);
  void add_copy(BufferId to, BufferId from);
  void add_clone(BufferId from, BufferId to);
  void add_writes();
  void begin_writes();

  BufferId add_buffer(Buffer buffer);
  /// A buffer of the type `offset` elements into memory that has a place.
  BufferId add_part(const Place& whole, ir::Type type, int64_t offset);
  void add_call(ExternCall call);
  /// Lets memory live until the last use of another value too that lies in it.
  void keep_until(Memory& memory, size_t last);
  uint32_t add_memory(Memory memory);
  /// Notes that a value takes its place at the node being planned, from the value that had it. Outputs are no other
  /// kind.
  void note_live(ir::ValueId value, SegmentOwner::Kind kind);
  /// The buffer of a value, made for views on first use.
  BufferId buffer_of(ir::ValueId value);
  /// The same, held by the frame as a tensor.
  BufferId bound_buffer_of(ir::ValueId value);
  [[nodiscard]] KernelArg kernel_arg(ir::ValueId value);
  [[nodiscard]] bool may_sum_in_place(const ir::Node& node) const;
  [[nodiscard]] bool kept_after_once(ir::ValueId root) const;

  struct WriteBack {
    ir::ValueId leaf, value;
  };

  const ir::Graph& graph_;
  Temporaries temporaries_;
  PlannedMemory result_;
  std::vector<bool> frozen_;       ///< by node
  std::vector<ir::ValueId> root_;  ///< by value: the value whose memory it lies in
  std::vector<bool> is_output_;    ///< by root value
  std::vector<bool> crosses_;      ///< by root value: made in the once phase, used in the other
  std::vector<uint32_t> uses_;     ///< by value
  ir::NodeId last_throw_;          ///< the last call of the phase that may refuse its data
  size_t last_throw_at_ = 0;       ///< its position; meaningless without it
  std::vector<size_t> last_use_;   ///< by root value, in the phase being planned
  std::vector<Place> places_;      ///< by value, in the phase being planned
  std::vector<BufferId> given_;    ///< by value: buffers of inputs, state and frozen values
  std::vector<Memory> memories_;   ///< of the phase being planned
  std::vector<Chunk> chunks_;      ///< of the phase being planned
  std::vector<std::pair<uint32_t, uint32_t>>
      chunk_buffers_;  ///< chunk, buffer (its offset is counted from the chunk's)
  std::vector<WriteBack> writes_;
  std::vector<ir::ValueId> home_;  ///< by root value: the input or state it is a version of; else invalid
  std::vector<ir::ValueId> held_;  ///< by input or state that is written: the version its memory holds
  bool writing_ = false;
  std::vector<Step>* steps_ = nullptr;
  size_t position_ = 0;
  bool once_ = false;
  int64_t live_bytes_ = 0;
  int64_t peak_bytes_ = 0;
};

}  // namespace sinter::passes
