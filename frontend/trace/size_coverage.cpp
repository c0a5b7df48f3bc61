#include "frontend/trace/size_coverage.h"

#include <bit>

namespace sinter::frontend {
namespace {

/// The number of bits, and the bit after the first.
size_t magnitude(int64_t size) {
  const auto bits = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(size)));
  return 2 * bits + static_cast<size_t>(size >> (bits - 2) & 1);
}

}  // namespace

void SizeCoverage::add(int64_t size) {
  magnitudes_.set(magnitude(size));
  remainders_.set(static_cast<size_t>(size % 8));
}

bool SizeCoverage::contains(int64_t size) const {
  return magnitudes_.test(magnitude(size)) && remainders_.test(static_cast<size_t>(size % 8));
}

}  // namespace sinter::frontend
