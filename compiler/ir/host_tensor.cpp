#include "compiler/ir/host_tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/reference.h"
#include "compiler/support/errors.h"

namespace sinter::ir {
namespace {

size_t position(const HostTensor& tensor, std::span<const int64_t> point) {
  int64_t address = tensor.offset;
  for (size_t d = 0; d < point.size(); ++d) address += tensor.type.strides[d].value() * point[d];
  if (address < 0 || static_cast<size_t>(address) >= tensor.storage->size()) {
    throw InternalError("interpret",
                        fmt::format("element {} lies outside a storage of {}", address, tensor.storage->size()));
  }
  return static_cast<size_t>(address);
}

}  // namespace

RefValue HostTensor::at(std::span<const int64_t> point) const { return (*storage)[position(*this, point)]; }

void HostTensor::set(std::span<const int64_t> point, RefValue value) { (*storage)[position(*this, point)] = value; }

RefValue stored(const RefValue& value, DType dtype) {
  const RefValue converted = ref::convert(value, dtype);
  return is_float(dtype) ? RefValue(ref::round_to(std::get<double>(converted), dtype)) : converted;
}

HostTensor zeros(const Type& type) {
  const RefValue zero = is_float(type.dtype) ? RefValue(0.0) : RefValue(int64_t{0});
  const auto size = static_cast<size_t>(type.span());
  return {type, std::make_shared<std::vector<RefValue>>(size, zero), 0};
}

HostTensor tensor_of(const Type& type, std::span<const RefValue> elements) {
  if (static_cast<int64_t>(elements.size()) != type.numel()) {
    throw InternalError("interpret", fmt::format("{} elements for {}", elements.size(), to_string(type, type.device)));
  }
  HostTensor tensor = zeros(type);
  auto next = elements.begin();
  for_each_point(type.static_sizes(),
                 [&](std::span<const int64_t> point) { tensor.set(point, stored(*next++, type.dtype)); });
  return tensor;
}

std::vector<RefValue> elements_of(const HostTensor& tensor) {
  std::vector<RefValue> elements;
  elements.reserve(static_cast<size_t>(tensor.type.numel()));
  for_each_point(tensor.type.static_sizes(),
                 [&](std::span<const int64_t> point) { elements.push_back(tensor.at(point)); });
  return elements;
}

void for_each_point(std::span<const int64_t> extents, const std::function<void(std::span<const int64_t>)>& visit) {
  if (std::any_of(extents.begin(), extents.end(), [](int64_t extent) { return extent <= 0; })) return;
  std::vector<int64_t> point(extents.size(), 0);
  while (true) {
    visit(point);
    size_t d = extents.size();
    while (d > 0 && ++point[d - 1] == extents[d - 1]) point[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace sinter::ir
