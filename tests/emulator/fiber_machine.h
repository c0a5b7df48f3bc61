#pragma once

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/fiber.h"
#include "tests/emulator/machine.h"
#include "tests/emulator/shared_memory.h"
#include "tests/emulator/warp.h"

namespace sinter::test {

/// How blocks of a launch, and threads of a block from one wait to the next, take turns.
enum class Order { forward, backward, random };

/// Runs the blocks of a launch one after the other, and the threads of a block as fibers that take turns where they
/// wait. Throws std::runtime_error where threads wait for each other for ever, take part in one operation in different
/// ways, or use shared memory as SharedMemory forbids; what the kernel did until then stays.
class FiberMachine final : public Machine {
 public:
  FiberMachine(const Geometry& geometry, size_t dynamic_shared_bytes, Order order);

  void run(const KernelCall& call) override;
  void sync_threads(int line) override;
  uint64_t warp(const WarpCall& call) override;
  void touch(const void* address, size_t bytes, Access access) override;
  [[nodiscard]] void* dynamic_shared() override { return dynamic_shared_.get(); }

 private:
  enum class State { runs, waits_for_block, waits_for_warp, exited };
  struct Thread {
    Fiber fiber;
    State state = State::exited;
    int line = 0;   ///< of the barrier where it waits, or last waited
    WarpCall call;  ///< where it waits for its warp
    uint64_t result = 0;
  };
  struct Free {
    void operator()(void* memory) const;
  };

  void run_block(const KernelCall& call);
  void run_threads(const KernelCall& call);
  void wait(State state);
  void fail(std::string what);

  [[nodiscard]] bool release_block();
  [[nodiscard]] bool release_warps();
  void release_warp(unsigned first, unsigned mask);
  [[nodiscard]] bool complete(unsigned thread) const;
  [[nodiscard]] std::string deadlock() const;
  [[nodiscard]] std::string what_it_does(unsigned thread) const;

  /// Numbers below `count` in the order of the launch.
  [[nodiscard]] std::vector<unsigned> turns(unsigned count);

  Geometry geometry_;
  Order order_;
  std::mt19937 random_;
  std::vector<Thread> threads_;
  unsigned running_ = 0;
  std::string failure_;
  std::unique_ptr<void, Free> dynamic_shared_;
  size_t dynamic_shared_bytes_;
  SharedMemory shared_;
};

}  // namespace sinter::test
