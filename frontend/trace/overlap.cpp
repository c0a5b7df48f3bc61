#include "frontend/trace/overlap.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "frontend/torch/tensor_memory.h"

namespace sinter::frontend {
namespace {

/// A multiple of a stride, within bounds.
struct Term {
  int64_t stride = 0;
  int64_t least = 0, most = 0;            ///< factor
  int64_t least_rest = 0, most_rest = 0;  ///< of the sum of the terms behind it
};

int64_t quotient_rounded_up(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }
int64_t quotient_rounded_down(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// Whether some factors give this sum. Of nested strides, the largest first, no more than two factors are in question.
bool can_give(std::span<const Term> terms, int64_t sum) {
  if (terms.empty()) return sum == 0;
  const Term& term = terms.front();
  const int64_t from = std::max(term.least, quotient_rounded_up(sum - term.most_rest, term.stride));
  const int64_t to = std::min(term.most, quotient_rounded_down(sum - term.least_rest, term.stride));
  for (int64_t factor = from; factor <= to; ++factor) {
    if (can_give(terms.subspan(1), sum - factor * term.stride)) return true;
  }
  return false;
}

/// Distances from an element of `b` to one of `a`, but for that of the first ones, as sums.
std::vector<Term> distances(const Elements& a, const Elements& b) {
  std::map<int64_t, Term, std::greater<>> by_stride;
  for (size_t i = 0; i < a.sizes.size(); ++i) by_stride[a.strides[i]].most += a.sizes[i] - 1;
  for (size_t i = 0; i < b.sizes.size(); ++i) by_stride[b.strides[i]].least -= b.sizes[i] - 1;
  by_stride.erase(0);
  std::vector<Term> terms;
  for (auto& [stride, term] : by_stride) {
    term.stride = stride;
    terms.push_back(term);
  }
  for (size_t i = terms.size(); i-- > 1;) {
    terms[i - 1].least_rest = terms[i].least_rest + terms[i].least * terms[i].stride;
    terms[i - 1].most_rest = terms[i].most_rest + terms[i].most * terms[i].stride;
  }
  return terms;
}

}  // namespace

bool overlap(const Elements& a, const Elements& b) {
  if (a.end_byte() <= b.begin_byte() || b.end_byte() <= a.begin_byte()) return false;
  if (c10::elementSize(a.dtype) != c10::elementSize(b.dtype)) return true;
  return can_give(distances(a, b), b.offset - a.offset);
}

bool overlaps_in_part(const at::Tensor& written, const at::Tensor& read) {
  if (storage_of(*written.unsafeGetTensorImpl()) != storage_of(*read.unsafeGetTensorImpl())) return false;
  const Elements a = Elements::of(written);
  const Elements b = Elements::of(read);
  return a != b && overlap(a, b);
}

}  // namespace sinter::frontend
