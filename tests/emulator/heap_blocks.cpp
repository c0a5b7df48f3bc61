#include "tests/emulator/heap_blocks.h"

#include <fmt/format.h>
#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace sinter::test {
namespace {

std::span<std::byte> heap_block(void* pointer, size_t arg) {
  void* begin = nullptr;
  size_t bytes = 0;
  const std::string_view kind = __asan_locate_address(pointer, nullptr, 0, &begin, &bytes);
  if (kind != "heap") throw std::runtime_error(fmt::format("argument {} does not point into the heap", arg));
  return {static_cast<std::byte*>(begin), bytes};
}

}  // namespace

HeapBlocks::HeapBlocks(std::span<const EmulatedArg> args) {
  for (size_t arg = 0; arg < args.size(); ++arg) {
    void* const* pointer = std::get_if<void*>(&args[arg]);
    if (pointer == nullptr || *pointer == nullptr) continue;
    const auto bytes = heap_block(*pointer, arg);
    const bool known =
        std::ranges::any_of(blocks_, [&](const Block& block) { return block.bytes.data() == bytes.data(); });
    if (!known) blocks_.push_back({arg, static_cast<const std::byte*>(*pointer), bytes});
  }
}

HeapBlocks::Contents HeapBlocks::contents() const {
  Contents contents;
  for (const Block& block : blocks_) contents.emplace_back(block.bytes.begin(), block.bytes.end());
  return contents;
}

void HeapBlocks::set(const Contents& contents) const {
  for (size_t i = 0; i < blocks_.size(); ++i) std::ranges::copy(contents[i], blocks_[i].bytes.begin());
}

std::string HeapBlocks::difference(const Contents& contents) const {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const auto& [arg, pointer, bytes] = blocks_[i];
    const auto differs = std::ranges::mismatch(bytes, contents[i]).in1;
    if (differs != bytes.end()) return fmt::format("argument {}, byte {}", arg, &*differs - pointer);
  }
  return {};
}

}  // namespace sinter::test
