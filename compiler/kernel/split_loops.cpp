#include "compiler/kernel/split_loops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/kernel/collapse.h"
#include "compiler/kernel/indices.h"

namespace sinter::kernel {
namespace {

/// Other loops, and each of a kernel's own over them.
struct Loops {
  std::vector<int64_t> extents;
  std::vector<ir::Index> own;
};

ir::Index zero(const Loops& loops) { return {{0, std::vector<int64_t>(loops.extents.size())}, {}}; }

/// One loop through all rows, and the reduced ones as they are.
Loops merged(const Kernel& kernel) {
  Loops loops;
  const auto outer = static_cast<ptrdiff_t>(kernel.extents.size() - kernel.reduced);
  loops.extents = {kernel.rows()};
  loops.extents.insert(loops.extents.end(), kernel.extents.begin() + outer, kernel.extents.end());
  loops.own.resize(kernel.extents.size(), zero(loops));
  ir::Affine rows = zero(loops).affine;
  rows.strides[0] = 1;
  int64_t inside = kernel.rows();
  for (ptrdiff_t loop = 0; loop < outer; ++loop) {
    const int64_t extent = kernel.extents[loop];
    inside /= extent;
    loops.own[loop].terms = {{.scale = 1, .inner = rows, .divisor = inside, .modulus = loop == 0 ? 0 : extent}};
  }
  for (size_t loop = 1; loop < loops.extents.size(); ++loop) loops.own[outer + loop - 1].affine.strides[loop] = 1;
  return loops;
}

/// The number of a row in digits that end at `cuts`, each a divisor of the next.
Loops digits(const Kernel& kernel, std::vector<int64_t> cuts) {
  Loops loops;
  cuts.insert(cuts.begin(), 1);
  cuts.push_back(kernel.extents[0]);
  for (size_t cut = cuts.size(); cut-- > 1;) loops.extents.push_back(cuts[cut] / cuts[cut - 1]);
  const size_t count = loops.extents.size();
  loops.extents.insert(loops.extents.end(), kernel.extents.begin() + 1, kernel.extents.end());
  loops.own.resize(kernel.extents.size(), zero(loops));
  for (size_t digit = 0; digit < count; ++digit) loops.own[0].affine.strides[digit] = cuts[count - 1 - digit];
  for (size_t loop = 1; loop < kernel.extents.size(); ++loop) loops.own[loop].affine.strides[count + loop - 1] = 1;
  return loops;
}

/// Puts other loops in the place of a kernel's own.
class Substitute {
 public:
  explicit Substitute(const Loops& loops) : loops_(loops) {}
  void operator()(ir::Index& index) {
    const auto composed = ir::compose(index, loops_.own, loops_.extents);
    all_ = all_ && composed;
    if (composed) index = *composed;
  }
  void operator()(Inside& inside) { (*this)(inside.index); }
  [[nodiscard]] bool all() const { return all_; }

 private:
  const Loops& loops_;
  bool all_ = true;
};

bool substitute(Kernel& kernel, const Loops& loops) {
  Substitute each(loops);
  for_each_index(kernel, each);
  kernel.extents = loops.extents;
  return each.all();
}

/// Where digits of the first loop end.
class FindCuts {
 public:
  explicit FindCuts(int64_t extent) : extent_(extent) {}

  void operator()(const ir::Index& index) {
    for (const ir::QuasiTerm& term : index.terms) {
      const int64_t stride = term.inner.strides[0];
      note(stride, term.divisor);
      if (term.modulus != 0) note(stride, term.divisor * term.modulus);
    }
  }
  void operator()(const Inside& inside) { (*this)(inside.index); }

  std::vector<int64_t> run() && {
    std::ranges::sort(cuts_);
    const auto repeated = std::ranges::unique(cuts_);
    cuts_.erase(repeated.begin(), repeated.end());
    return std::move(cuts_);
  }

 private:
  void note(int64_t stride, int64_t unit) {
    if (stride <= 0 || unit % stride != 0) return;
    const int64_t cut = unit / stride;
    if (cut > 1 && cut < extent_) cuts_.push_back(cut);
  }

  int64_t extent_;
  std::vector<int64_t> cuts_;
};

bool each_divides_the_next(const std::vector<int64_t>& cuts, int64_t extent) {
  for (size_t cut = 0; cut < cuts.size(); ++cut) {
    if ((cut + 1 < cuts.size() ? cuts[cut + 1] : extent) % cuts[cut] != 0) return false;
  }
  return true;
}

bool divides(Kernel& kernel) {
  bool some = false;
  for_each_index(kernel, [&](const auto& at) {
    if constexpr (requires { at.index; }) {
      some = some || !at.index.is_affine();
    } else {
      some = some || !at.is_affine();
    }
  });
  return some;
}

}  // namespace

std::optional<Kernel> split_loops(Kernel kernel) {
  if (kernel.rows() < 2 || !divides(kernel) || !substitute(kernel, merged(kernel))) return std::nullopt;
  FindCuts find(kernel.extents[0]);
  for_each_index(kernel, find);
  const std::vector<int64_t> cuts = std::move(find).run();
  if (!each_divides_the_next(cuts, kernel.extents[0]) || !substitute(kernel, digits(kernel, cuts)) || divides(kernel)) {
    return std::nullopt;
  }
  collapse(kernel);
  return kernel;
}

}  // namespace sinter::kernel
