#include "observe.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sinter::test::hostile {
namespace {

using at::Tensor;

std::string list(c10::IntArrayRef numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
  return text + "]";
}

/// A dense copy on the CPU, with conjugates and negatives carried out.
Tensor copy_of(const Tensor& tensor) {
  Tensor plain = tensor.detach();
  if (plain.is_meta()) return at::empty({0});
  if (plain.is_nested()) plain = at::nested_to_padded_tensor(plain, 0);
  if (plain.is_quantized()) plain = plain.int_repr();
  if (plain.layout() != at::kStrided) plain = plain.to_dense();
  return plain.resolve_conj().resolve_neg().cpu().clone();
}

std::string metadata(const Tensor& tensor) {
  std::string text = fmt::format("{}{}", c10::toString(tensor.scalar_type()), tensor.is_nested() ? " nested" : "");
  if (!tensor.is_nested()) text += list(tensor.sizes());
  if (tensor.layout() == at::kStrided && !tensor.is_nested()) text += " strides " + list(tensor.strides());
  if (tensor.layout() != at::kStrided) text += " sparse";
  text += " on " + tensor.device().str();
  if (tensor.requires_grad()) text += tensor.is_leaf() ? " leaf that requires grad" : " with a gradient function";
  if (tensor.is_inference()) text += " inference";
  if (tensor.is_conj()) text += " conjugate";
  if (tensor.is_neg()) text += " negative";
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) text += " number";
  return text;
}

bool has_memory(const Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_nested() && tensor.has_storage();
}

int64_t byte_offset(const Tensor& tensor) {
  return tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
}

/// How a tensor relates to the first of the earlier ones whose memory it shares.
std::string sharing(const std::vector<Held>& tensors, size_t index) {
  const Tensor& tensor = tensors[index].tensor;
  for (size_t i = 0; i < index; ++i) {
    if (tensors[i].tensor.is_same(tensor)) return " is " + tensors[i].label;
  }
  for (size_t i = 0; i < index && has_memory(tensor); ++i) {
    const Tensor& other = tensors[i].tensor;
    if (!has_memory(other) || !other.storage().is_alias_of(tensor.storage())) continue;
    return fmt::format(" in the memory of {} at {:+} bytes", tensors[i].label,
                       byte_offset(tensor) - byte_offset(other));
  }
  return {};
}

double tolerance(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
    case at::kComplexDouble:
      return 1e-12;
    case at::kHalf:
      return 2e-3;
    case at::kBFloat16:
      return 1.6e-2;
    default:
      return 1e-5;
  }
}

Tensor real_numbers(const Tensor& tensor) { return tensor.is_complex() ? at::view_as_real(tensor) : tensor; }

bool equal_bits(const Tensor& a, const Tensor& b) {
  if (!a.is_floating_point()) return at::equal(a, b);
  const Tensor nan = a.isnan();
  if (!at::equal(nan, b.isnan())) return false;
  const Tensor zero = at::zeros({}, a.options());
  const Tensor x = at::where(nan, zero, a);
  const Tensor y = at::where(nan, zero, b);
  return at::equal(x, y) && at::equal(at::signbit(x), at::signbit(y));
}

bool equal_numbers(const Tensor& a, const Tensor& b, Numbers numbers) {
  if (numbers == Numbers::exact || !a.is_floating_point()) return equal_bits(a, b);
  const double allowed = tolerance(a.scalar_type());
  return at::allclose(b.to(at::kDouble), a.to(at::kDouble), allowed, allowed, /*equal_nan=*/true);
}

std::optional<std::string> difference(const Held& eager, const Held& compiled, Numbers numbers) {
  if (eager.tensor.sizes() != compiled.tensor.sizes()) return eager.label + " has other sizes";
  const Tensor a = real_numbers(eager.tensor);
  const Tensor b = real_numbers(compiled.tensor);
  if (equal_numbers(a, b, numbers)) return std::nullopt;
  const Tensor x = a.reshape({-1}).to(at::kDouble);
  const Tensor y = b.reshape({-1}).to(at::kDouble);
  const Tensor apart = at::logical_not((x == y).logical_or(x.isnan().logical_and(y.isnan())));
  const auto worst = at::where(apart, (x - y).abs().nan_to_num(1e300, 1e300), at::zeros({}, x.options())).argmax();
  const auto index = worst.item<int64_t>();
  return fmt::format("{} differs in {} of {} numbers; at {} eager has {}, compiled {}", eager.label,
                     apart.sum().item<int64_t>(), x.numel(), index, x[index].item<double>(), y[index].item<double>());
}

std::optional<std::string> difference(const Observation& eager, const Observation& compiled, Numbers numbers) {
  if (eager.label != compiled.label) return fmt::format("{}: compiled goes on with {}", eager.label, compiled.label);
  if (eager.facts != compiled.facts) {
    return fmt::format("{}:\n--- eager\n{}--- compiled\n{}", eager.label, eager.facts, compiled.facts);
  }
  for (size_t i = 0; i < eager.values.size(); ++i) {
    if (auto text = difference(eager.values[i], compiled.values[i], numbers)) return eager.label + ": " + *text;
  }
  return std::nullopt;
}

}  // namespace

void observe(Observation& into, const std::vector<Held>& tensors) {
  const c10::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  std::vector<Held> all;
  for (const Held& held : tensors) {
    all.push_back(held);
    if (held.tensor.defined() && held.tensor.is_leaf() && held.tensor.grad().defined()) {
      all.push_back({held.label + ".grad", held.tensor.grad()});
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [label, tensor] = all[i];
    if (!tensor.defined()) {
      into.facts += label + ": undefined\n";
      continue;
    }
    into.facts += fmt::format("{}: {}{}\n", label, metadata(tensor), sharing(all, i));
    into.values.push_back({label, copy_of(tensor)});
  }
}

at::Tensor as_read(double number) {
  const bool is_float = std::isnan(number) || static_cast<double>(static_cast<float>(number)) == number;
  return at::scalar_tensor(number, is_float ? at::kFloat : at::kDouble);
}

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += byte >= ' ' && byte <= '~' ? std::string(1, byte) : fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
  }
  return text;
}

std::optional<std::string> difference(const std::vector<Observation>& eager, const std::vector<Observation>& compiled,
                                      Numbers numbers) {
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < std::min(eager.size(), compiled.size()); ++i) {
    if (auto text = difference(eager[i], compiled[i], numbers)) return text;
  }
  if (eager.size() == compiled.size()) return std::nullopt;
  return fmt::format("eager was observed {} times, compiled {} times", eager.size(), compiled.size());
}

}  // namespace sinter::test::hostile
