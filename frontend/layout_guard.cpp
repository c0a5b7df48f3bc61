#include "frontend/layout_guard.h"

#include "compiler/support/planted.h"
#include "frontend/convert.h"

namespace sinter::frontend {
namespace {

uint64_t keys_of(const c10::TensorImpl& tensor) { return tensor.key_set().raw_repr(); }

std::string list(c10::IntArrayRef numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
  return text + "]";
}

void compare(const std::string& subject, const char* what, c10::IntArrayRef was, c10::IntArrayRef is,
             std::vector<GuardMiss>& out) {
  if (was.size() != is.size()) return out.push_back({subject + ": " + what + "s", list(was), list(is)});
  for (size_t i = 0; i < was.size(); ++i) {
    if (was[i] == is[i]) continue;
    out.push_back(
        {subject + ": " + what + "[" + std::to_string(i) + "]", std::to_string(was[i]), std::to_string(is[i])});
  }
}

}  // namespace

const char* yes_no(bool value) { return value ? "yes" : "no"; }

LayoutGuard::LayoutGuard(const c10::TensorImpl& tensor)
    : dtype(c10::typeMetaToScalarType(tensor.dtype())),
      device(tensor.device()),
      keys(keys_of(tensor)),
      sizes(tensor.sizes().begin(), tensor.sizes().end()),
      strides(tensor.strides().begin(), tensor.strides().end()) {}

bool LayoutGuard::same_sizes(const c10::TensorImpl& tensor) const {
  return keys == keys_of(tensor) && tensor.sizes() == c10::IntArrayRef(sizes);
}

bool LayoutGuard::holds(const c10::TensorImpl& tensor) const {
  return keys == keys_of(tensor) && tensor.dtype() == c10::scalarTypeToTypeMeta(dtype) && device == tensor.device() &&
         tensor.sizes() == c10::IntArrayRef(sizes) &&
         (tensor.strides() == c10::IntArrayRef(strides) || planted(Bug::strides_not_guarded));
}

bool LayoutGuard::holds_but_for_sizes(const c10::TensorImpl& tensor) const {
  return keys == keys_of(tensor) && tensor.dtype() == c10::scalarTypeToTypeMeta(dtype) && device == tensor.device() &&
         tensor.sizes().size() == sizes.size();
}

void LayoutGuard::misses(const std::string& subject, const c10::TensorImpl& tensor, std::vector<GuardMiss>& out) const {
  if (tensor.is_nested()) return out.push_back({subject + ": layout", "dense", "nested"});
  const auto now_dtype = c10::typeMetaToScalarType(tensor.dtype());
  if (now_dtype != dtype) {
    out.push_back(
        {subject + ": dtype", std::string(ir::name(dtype_of(dtype))), std::string(ir::name(dtype_of(now_dtype)))});
  }
  if (device != tensor.device()) out.push_back({subject + ": device", device.str(), tensor.device().str()});
  compare(subject, "size", sizes, tensor.sizes(), out);
  if (sizes.size() == tensor.sizes().size() && tensor.sizes() == c10::IntArrayRef(sizes)) {
    compare(subject, "stride", strides, tensor.strides(), out);
  }
  if (keys != keys_of(tensor) && device == tensor.device()) {
    out.push_back({subject + ": dispatch keys", c10::toString(c10::DispatchKeySet(c10::DispatchKeySet::RAW, keys)),
                   c10::toString(tensor.key_set())});
  }
}

std::string LayoutGuard::text() const {
  ir::Type type{.dtype = dtype_of(dtype),
                .sizes = {sizes.begin(), sizes.end()},
                .strides = {strides.begin(), strides.end()},
                .device = device_of(device)};
  return ir::to_string(type, type.device);
}

}  // namespace sinter::frontend
