#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/plan.h"
#include "tests/emulator/machine.h"

namespace sinter::test {

/// Arguments of a launch, in the order of the kernel's parameters: pointers, and host scalars by value.
using EmulatedArg = std::variant<void*, double, int64_t>;

/// Generated CUDA text compiled as plain C++ with the address sanitizer, and run on the CPU. An access outside of
/// memory, or at an address that is no multiple of its size, aborts. The program that loads it must be built with
/// -fsanitize=address.
///
/// Threads run one after the other, unless the text mentions barriers, shuffles, votes or shared memory. Then they are
/// fibers that take turns where they wait, and the kernel runs three times on equal memory: with blocks and threads in
/// order, in reverse and at random. The second and third time it is compiled so that every access to shared memory is
/// watched (SharedMemory). Results must be equal bit for bit, so a float sum by atomics is an error unless it is exact.
///
/// Not seen: races in global memory that leave equal results, a __threadfence that is missing, and divergent calls of a
/// helper that holds the barrier, which are one line. A thread that spins until another one writes spins for ever.
class Emulator {
 public:
  /// Compiles all kernels; names need not differ. Throws std::runtime_error with the compiler's output and the path
  /// of the kept source when one does not compile.
  explicit Emulator(std::span<const KernelSource> kernels);
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;
  /// Removes the sources, which a run that the sanitizer ends leaves behind.
  ~Emulator();

  /// Runs kernels[index] over its whole grid. Where its threads work together, pointers point into the heap, and
  /// std::runtime_error says what they do wrong, one line: "block_sum: block 0: byte 4 of static shared memory: race:
  /// thread 1 writes it and thread 0 reads it, with no barrier in between".
  void run(size_t index, std::span<const EmulatedArg> args, size_t dynamic_shared_bytes = 0) const;

 private:
  struct Entry {
    std::string name;
    Geometry geometry;
    KernelLaunch checked = nullptr;
    KernelLaunch traced = nullptr;  ///< null where threads run one after the other
  };

  static void run_together(const Entry& entry, std::span<const EmulatedArg> args, void** pointers,
                           size_t dynamic_shared_bytes);

  std::vector<Entry> entries_;
  std::filesystem::path directory_;
};

}  // namespace sinter::test
