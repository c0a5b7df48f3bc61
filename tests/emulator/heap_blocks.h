#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tests/emulator/emulator.h"

namespace sinter::test {

/// The blocks of the heap that a launch's pointers point into, as the address sanitizer knows them.
class HeapBlocks {
 public:
  /// Throws std::runtime_error where a pointer, other than null, points elsewhere.
  explicit HeapBlocks(std::span<const EmulatedArg> args);

  using Contents = std::vector<std::vector<std::byte>>;
  [[nodiscard]] Contents contents() const;
  void set(const Contents& contents) const;

  /// The first byte that is not as in `contents`: "argument 2, byte 16"; empty when all are.
  [[nodiscard]] std::string difference(const Contents& contents) const;

 private:
  struct Block {
    size_t arg;  ///< the first that points into it
    const std::byte* pointer;
    std::span<std::byte> bytes;
  };
  std::vector<Block> blocks_;
};

}  // namespace sinter::test
