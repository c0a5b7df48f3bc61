#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "compiler/ir/type.h"
#include "compiler/plan.h"

/// What the runtime needs from LibTorch, asked through these two interfaces. The frontend implements them over
/// at::Tensor, the tests of the runtime over plain memory.
namespace sinter::runtime {

/// The tensors of one call, by buffer id. Used by one thread at a time.
class Frame {
 public:
  virtual ~Frame() = default;

  /// Address of the first element; nullptr for an empty tensor. The buffer must be bound.
  [[nodiscard]] virtual void* data(BufferId buffer) const = 0;
  /// The element of a 0-dim CPU buffer, as double and as integer.
  [[nodiscard]] virtual double scalar_f64(BufferId buffer) const = 0;
  [[nodiscard]] virtual int64_t scalar_i64(BufferId buffer) const = 0;

  /// Binds an uninitialised tensor of the buffer's type, from LibTorch's allocator, on the current stream.
  virtual void allocate(BufferId buffer) = 0;
  /// Binds the call's arena (Plan::arena_bytes), from the same allocator. Done once before the steps when not 0.
  virtual void allocate_arena() = 0;
  [[nodiscard]] virtual void* arena() const = 0;
  virtual void release_arena() = 0;
  /// Memory of the plan's device from the same allocator, on the current stream, for as long as the pointer is held.
  [[nodiscard]] virtual std::shared_ptr<void> scratch(int64_t bytes) = 0;
  /// Binds a `view`, `in_place` or `arena` buffer to the memory its plan entry names.
  virtual void bind(BufferId buffer) = 0;
  /// Binds the buffer to memory at `address`, which somebody else keeps for as long as it is bound.
  virtual void lend(BufferId buffer, void* address) = 0;
  /// Drops the tensor.
  virtual void release(BufferId buffer) = 0;
  /// Binds the buffer to the tensor that `other` holds for `other_buffer`.
  virtual void share(BufferId buffer, const Frame& other, BufferId other_buffer) = 0;

  /// Told before the first step that writes memory which was there before the call.
  virtual void begin_writes() {}

  /// Runs Plan::calls[call] through the dispatcher and binds its results. Throws InternalError when a result has not
  /// the type the plan was made for; lets LibTorch's own exceptions through.
  virtual void call(uint32_t call) = 0;
};

class Host {
 public:
  virtual ~Host() = default;

  [[nodiscard]] virtual std::unique_ptr<Frame> make_frame(const Plan& plan) = 0;
  /// The calling thread's current stream on a CUDA device, a CUstream.
  [[nodiscard]] virtual void* current_stream(ir::Device device) = 0;
  /// Runs body(begin, end) over [0, count) on LibTorch's thread pool, in ranges of at least `grain`.
  virtual void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) = 0;

  /// Memory for recording a CUDA Graph: while the returned object lives, allocations of this thread on this device
  /// come from a private pool and the current stream is one that nobody else is given; `stream()` is that stream. The
  /// pool's memory stays reserved until `release_pool`, one for each recording into it.
  class Recording {
   public:
    virtual ~Recording() = default;
    [[nodiscard]] virtual void* stream() const = 0;
    [[nodiscard]] virtual uint64_t pool() const = 0;
  };
  struct PoolRequest {
    std::optional<uint64_t> id = std::nullopt;  ///< a pool with a recording that is not released; none: a new one
    /// What a new pool will hold at one time, as far as it is known: it begins with one block as large, which splits
    /// and joins again, where segments of many sizes would leave gaps.
    int64_t bytes = 0;
  };
  /// Without a request only the stream is switched (the warm-up run before a recording).
  [[nodiscard]] virtual std::unique_ptr<Recording> record(ir::Device device,
                                                          const std::optional<PoolRequest>& request) = 0;
  virtual void release_pool(ir::Device device, uint64_t pool) = 0;

  /// The generators that the random calls of a recorded plan draw from. Lives as long as the graph.
  class Draws {
   public:
    virtual ~Draws() = default;
    /// Puts the generators back to where they stood when this object was made.
    virtual void rewind() = 0;
    /// Around a recording: its calls are made to read seed and offset anew in every replay. As with every recording
    /// of LibTorch's, work outside it cannot draw from these generators meanwhile: it throws.
    virtual void begin_recording() = 0;
    virtual void end_recording() = 0;
    /// Gives seed and offset to one replay, on the current stream, and moves the generators on by what it draws.
    virtual void prepare_replay() = 0;
  };
  /// Not to be called while a stream is recorded.
  [[nodiscard]] virtual std::unique_ptr<Draws> draws(ir::Device device) = 0;
};

}  // namespace sinter::runtime
