#include "frontend/trace/elements.h"

#include "compiler/support/planted.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/tensor_memory.h"

namespace sinter::frontend {

Elements Elements::of(const at::Tensor& tensor) {
  Elements elements{
      .dtype = tensor.scalar_type(), .offset = tensor.storage_offset(), .reading = {tensor.is_conj(), tensor.is_neg()}};
  elements.sizes.append(tensor.sizes().begin(), tensor.sizes().end());
  elements.strides.append(tensor.strides().begin(), tensor.strides().end());
  return elements;
}

bool Elements::are_those_of(const at::Tensor& tensor, int64_t shift) const {
  return dtype == tensor.scalar_type() &&
         (tensor.storage_offset() - offset) * static_cast<int64_t>(c10::elementSize(dtype)) == shift &&
         c10::IntArrayRef(sizes) == tensor.sizes() &&
         (c10::IntArrayRef(strides) == tensor.strides() || planted(Bug::strides_not_compared)) &&
         reading == ir::Reading{tensor.is_conj(), tensor.is_neg()};
}

ir::Type Elements::type(c10::Device device) const {
  return {dtype_of(dtype), {sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}, device_of(device)};
}

int64_t Elements::begin_byte() const { return offset * static_cast<int64_t>(c10::elementSize(dtype)); }

int64_t Elements::end_byte() const {
  return end_of_elements(offset, sizes, strides) * static_cast<int64_t>(c10::elementSize(dtype));
}

at::Tensor tensor_over(c10::Storage storage, const Elements& elements, c10::Device device, int64_t shift) {
  c10::DispatchKeySet keys(device.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU);
  if (elements.reading.conjugated) keys = keys.add(c10::DispatchKey::Conjugate);
  if (elements.reading.negated) keys = keys.add(c10::DispatchKey::Negative);
  auto tensor =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, c10::scalarTypeToTypeMeta(elements.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(elements.sizes, elements.strides, elements.offset_behind(shift));
  return tensor;
}

}  // namespace sinter::frontend
