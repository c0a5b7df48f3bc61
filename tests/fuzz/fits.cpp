#include "fits.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>

namespace sinter::test::fuzz {
namespace {

using at::Tensor;

constexpr double kTooLarge = 1e3;

/// True where several threads of eager's own would write one place, in no order.
bool is_written_by_several_threads(const Tensor& tensor) {
  if (tensor.numel() <= at::internal::GRAIN_SIZE) return false;
  int64_t places = 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) places += (tensor.size(dim) - 1) * tensor.stride(dim);
  return places < tensor.numel();
}

bool overlaps_itself(const Tensor& tensor) {
  if (is_written_by_several_threads(tensor)) return true;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.size(dim) > 1 && tensor.stride(dim) == 0) return true;
  }
  return false;
}

bool broadcasts(const Tensor& tensor, const Tensor& to) {
  if (tensor.dim() > to.dim()) return false;
  for (int64_t i = 1; i <= tensor.dim(); ++i) {
    if (tensor.size(-i) != to.size(-i) && tensor.size(-i) != 1) return false;
  }
  return true;
}

bool multiplies(const Tensor& a, const Tensor& b) {
  return a.dim() > 0 && b.dim() > 0 && a.scalar_type() == b.scalar_type() &&
         a.size(-1) == b.size(b.dim() > 1 ? -2 : -1);
}

}  // namespace

bool is_bounded_index(const Row& row) {
  return row.on == On::cuda && std::string_view(row.pattern).find('k') != std::string_view::npos;
}

bool fits(char letter, const Tensor& tensor, const std::vector<Tensor>& before) {
  const bool floating = tensor.is_floating_point();
  switch (letter) {
    case 'a':
      return !tensor.is_complex();
    case 'f':
      return floating;
    case 'g':
      return floating && tensor.dim() >= 3;
    case 'q':  // LibTorch's attention on the CPU divides by how many there are
      return floating && tensor.numel() > 0;
    case 'j':
      return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
    case 'c':
      return tensor.is_complex();
    case 'J':
      return fits('j', tensor, before) && broadcasts(tensor, before.front());
    case 'C':
      return tensor.is_complex() && broadcasts(tensor, before.front());
    case 'y':
      return fits('j', tensor, before) && !overlaps_itself(tensor);
    case 'z':
      return tensor.is_complex() && !overlaps_itself(tensor);
    case 'b':
      return tensor.scalar_type() == at::kBool;
    case 'k':
      return tensor.scalar_type() == at::kLong;
    case 'w':
      return floating && !overlaps_itself(tensor);
    case 'B':
      return floating && broadcasts(tensor, before.front());
    case 'S':
    case 'H':
      return tensor.scalar_type() == before.front().scalar_type() && tensor.sizes() == before.front().sizes();
    case 'T':
      return fits('S', tensor, before) && !overlaps_itself(tensor);
    case 'M':
      return floating && multiplies(before.back(), tensor);
    default:
      return true;
  }
}

bool has_moderate_numbers(const Tensor& tensor) {
  if (tensor.numel() == 0 || tensor.scalar_type() == at::kBool) return true;
  const Tensor sizes = tensor.detach().abs();
  if (!(sizes < kTooLarge).all().item<bool>()) return false;
  const bool has_few_exponents = sizes.scalar_type() == at::kHalf;  // small ones are met often, and judged by their own
  if (has_few_exponents || !sizes.is_floating_point()) return true;
  return (sizes.eq(0) | sizes.ge(std::numeric_limits<float>::min())).all().item<bool>();
}

}  // namespace sinter::test::fuzz
