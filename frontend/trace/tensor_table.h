#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/flat_hash_map.h>

#include <list>
#include <span>
#include <vector>

#include "frontend/trace/lent_memory.h"
#include "frontend/trace/step.h"

namespace sinter::frontend {

/// The tensors of one run of a segment: which value each of them is. Values and memories are numbered in the order in
/// which they are met, so that two runs of the same steps number them alike. Where a storage's first tensor begins in
/// it does not matter, nor how a tensor lies to it that reaches beyond its elements: that is a memory of its own over
/// the same storage. No step writes what two memories hold, so that whether they share a storage does not matter
/// either. Not thread-safe.
class TensorTable {
 public:
  /// A storage that the run has met, or a part of one.
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  ///< its address is not used again while this lives
    c10::Storage held{};    ///< of one that was there before: what steps read must outlive the tensor they were given
    bool written = false;   ///< by a step
    TraceMemoryId again{};  ///< another memory over the same storage; invalid where there is none
    int64_t shift = 0;      ///< bytes that tensors lie further behind in it than their values say
    c10::SmallVector<TraceValueId, 3> values{};
  };
  /// What a call has added so far.
  struct Added {
    std::span<const TraceValue* const> values;
    std::span<const TraceMemory* const> memories;
  };

  /// Where a table keeps what it knows. One table after the other may have it: a call allocates nothing then.
  struct Room {
    std::vector<const TraceValue*> values{};
    std::vector<Memory> memories{};
    std::vector<const TraceMemory*> known{};  ///< by memory
    /// The first memory over each, but for missing memory, which is tagged.
    ska::flat_hash_map<const c10::StorageImpl*, uint32_t> by_storage{};
  };

  /// `lent` outlives the table; `room` is empty.
  TensorTable(const LentInCall& lent, Room room) : lent_(lent), room_(std::move(room)) {}
  /// What it has kept all in, empty.
  [[nodiscard]] Room take_room() && {
    clear();
    return std::move(room_);
  }

  /// False for a tensor whose memory may be gone, or be filled anew, before the call ends.
  [[nodiscard]] bool lasts(const at::Tensor& tensor) const;
  /// The value that a tensor is; an invalid id where it was not met.
  [[nodiscard]] TraceValueId find(const at::Tensor& tensor) const;
  /// The same, and invalid where there are several memories over its storage: it may be a value of each.
  [[nodiscard]] TraceValueId find_alone(const at::Tensor& tensor) const;
  /// The memory that a tensor lies in: of several over its storage the one whose first value holds it, or the first;
  /// null where its storage was not met.
  [[nodiscard]] const Memory* memory_of(const at::Tensor& tensor) const;
  /// True where a tensor may be met as a memory of its own: no step gives or writes what it sees. One that a step
  /// writes sees nothing that another memory holds, either.
  [[nodiscard]] bool can_be_apart(const at::Tensor& tensor, bool is_written = false) const;
  /// True for a tensor that would be a memory of its own, and sees what this one holds.
  [[nodiscard]] bool reaches_into(TraceMemoryId memory, const at::Tensor& tensor) const;
  /// True where a step may write a memory: no other one holds what it does.
  [[nodiscard]] bool can_write(TraceMemoryId memory) const;
  /// True where no other memory lies over the same storage.
  [[nodiscard]] bool is_alone(TraceMemoryId memory) const;
  [[nodiscard]] TraceMemoryId id_of(const Memory& memory) const {
    return {static_cast<uint32_t>(&memory - room_.memories.data())};
  }
  [[nodiscard]] Memory& memory(TraceMemoryId id) { return room_.memories[id.index]; }
  [[nodiscard]] const std::vector<Memory>& memories() const { return room_.memories; }
  [[nodiscard]] const TraceMemory& known(TraceMemoryId id) const { return *room_.known[id.index]; }
  [[nodiscard]] const TraceValue& value(TraceValueId id) const { return *room_.values[id.index]; }
  /// True where elements are among those of the first value of a memory.
  [[nodiscard]] bool lies_in_first(const Elements& elements, TraceMemoryId memory) const;
  [[nodiscard]] size_t size() const { return room_.values.size(); }
  [[nodiscard]] bool empty() const { return room_.values.empty(); }
  /// A tensor over a value that was there before.
  [[nodiscard]] at::Tensor given(TraceValueId id) const;
  /// A tensor that is this value over a storage that holds its memory.
  [[nodiscard]] at::Tensor over(c10::Storage storage, TraceValueId id) const;
  /// Where this value begins in its storage, in elements.
  [[nodiscard]] int64_t offset_of(TraceValueId id) const {
    const TraceValue& known = value(id);
    return known.elements.offset_behind(room_.memories[known.memory.index].shift);
  }
  /// What a tensor is as a value. Only where it can be one.
  [[nodiscard]] Elements elements_of(const at::Tensor& tensor) const;
  /// False for a tensor of a larger dtype than its memory's first one, where the one lies no whole number of its
  /// elements further behind than the value of the other says.
  [[nodiscard]] bool can_be_value(const at::Tensor& tensor) const;
  /// The same of what a step makes.
  [[nodiscard]] bool can_be_value(const TraceValue& made) const;
  /// How many elements the memory of a tensor that can be a value lies further behind than values say.
  [[nodiscard]] int64_t shift_of(const at::Tensor& tensor) const;
  /// True for a tensor whose storage a step gives or writes to: its data is not to be looked at before that is done,
  /// wherever in the storage the tensor lies.
  [[nodiscard]] bool is_deferred(const at::Tensor& tensor) const;
  /// True for a tensor in memory that a step gives or writes: that of its storage which is memory_of it.
  [[nodiscard]] bool lies_in_deferred(const at::Tensor& tensor) const;
  /// True for a tensor over memory that a step makes: nobody has had it before the run.
  [[nodiscard]] bool is_made(const at::Tensor& tensor) const;
  /// True where a tensor is this value.
  [[nodiscard]] bool is(TraceValueId id, const at::Tensor& tensor) const;

  /// The value of a tensor that a call is given; one that was not met is added.
  TraceValueId take(const at::Tensor& tensor);
  /// Adds a tensor as a memory of its own. Only where it can be apart.
  TraceValueId take_apart(const at::Tensor& tensor);
  /// The value of a tensor that a call has given; what was not met is a result. It lies in this memory, where it sees
  /// that of an argument; else `memory` is invalid.
  TraceValueId give(const at::Tensor& tensor, TraceMemoryId memory);
  /// Adds a tensor as the value that a recorded step took; `memory` is what it lies in where the step met that first.
  /// Both outlive the run. False for a tensor that would be another value.
  [[nodiscard]] bool take_as(const TraceValue& value, const TraceMemory* memory, const at::Tensor& tensor);
  /// Adds missing memory that a recorded step makes, numbered as the next one, and results in order. What is given
  /// outlives the run.
  void add(const TraceMemory& memory, const c10::Storage& storage);
  void add(const TraceValue& value);
  /// Puts a storage under memory that was added without one.
  void set_storage(TraceMemoryId memory, const c10::Storage& storage) {
    room_.memories[memory.index].storage = storage.getWeakStorageImpl();
  }
  /// Missing memory has come, so that it is known by its storage alone from here on.
  void note_arrivals();
  void note_write(TraceMemoryId memory) { room_.memories[memory.index].written = wrote_ = true; }

  /// From here on `added` tells what came since, and `forget_added` takes it back.
  void begin_call();
  [[nodiscard]] Added added() const;
  void forget_added();
  void clear();

 private:
  [[nodiscard]] std::optional<uint32_t> number_of(const c10::StorageImpl* storage) const;
  [[nodiscard]] const Memory* first_over(const at::Tensor& tensor) const;
  [[nodiscard]] const Memory& first_beside(const Memory& memory) const;  ///< over the same storage; or itself
  [[nodiscard]] bool is_deferred(const Memory& memory) const;            ///< a step gives or writes it
  void forget_storage(const Memory& memory);
  TraceMemoryId add_memory(const at::Tensor& tensor, bool fresh);
  void add_memory(const TraceMemory& memory, const c10::Storage& storage);  ///< that is there
  TraceValueId add_value(const at::Tensor& tensor, TraceMemoryId memory, TraceValue::From from);
  [[nodiscard]] TraceValueId find_in(const Memory& memory, const at::Tensor& tensor) const;
  [[nodiscard]] Elements elements_in(const Memory& memory, const at::Tensor& tensor) const;
  /// What the first value of a memory holds, counted from the beginning of the storage.
  [[nodiscard]] Elements held_by(const Memory& memory) const;
  [[nodiscard]] const Memory* next(const Memory& memory) const;  ///< over the same storage; or null

  const LentInCall& lent_;
  Room room_;
  std::list<TraceValue> own_values_;  ///< of calls that are no recorded steps
  std::list<TraceMemory> own_memories_;
  size_t values_before_ = 0, memories_before_ = 0;
  bool wrote_ = false;  ///< a step has written a memory
};

/// True where every element of `inner` is one of `outer`, and both see the same dtype of one memory.
[[nodiscard]] bool lies_inside(const Elements& inner, const Elements& outer);

}  // namespace sinter::frontend
