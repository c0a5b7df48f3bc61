#include "compiler/passes/arena.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace sinter::passes {
namespace {

int64_t round_up(int64_t bytes) { return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment; }

/// Start of the smallest gap between `taken` (sorted by offset) that holds `bytes`; the end if there is none.
int64_t best_fit(const std::vector<const Chunk*>& taken, int64_t bytes) {
  int64_t best = -1;
  int64_t best_size = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  for (const Chunk* chunk : taken) {
    const int64_t gap = chunk->offset - end;
    if (gap >= bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, chunk->offset + round_up(chunk->bytes));
  }
  return best < 0 ? end : best;
}

}  // namespace

int64_t place(std::vector<Chunk>& chunks) {
  std::vector<size_t> order(chunks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return chunks[a].bytes > chunks[b].bytes; });

  int64_t total = 0;
  std::vector<const Chunk*> placed;  // sorted by offset
  for (size_t i : order) {
    Chunk& chunk = chunks[i];
    std::vector<const Chunk*> taken;
    std::copy_if(placed.begin(), placed.end(), std::back_inserter(taken),
                 [&](const Chunk* other) { return other->first <= chunk.last && chunk.first <= other->last; });
    chunk.offset = best_fit(taken, round_up(chunk.bytes));
    total = std::max(total, chunk.offset + round_up(chunk.bytes));
    const auto by_offset = [](const Chunk* a, const Chunk* b) { return a->offset < b->offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &chunk, by_offset), &chunk);
  }
  return total;
}

}  // namespace sinter::passes
