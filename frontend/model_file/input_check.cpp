#include "frontend/model_file/input_check.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/support/errors.h"

namespace sinter::frontend {
namespace {

std::string shape_of(at::ScalarType dtype, c10::IntArrayRef sizes) {
  return fmt::format("{}[{}]", c10::toString(dtype), fmt::join(sizes, ","));
}

std::string text_of(const AffineSize& size) {
  if (size.symbol.empty()) return fmt::format("{}", size.offset);
  const std::string product = size.factor == 1 ? size.symbol : fmt::format("{}*{}", size.factor, size.symbol);
  return size.offset == 0 ? product : fmt::format("{}+{}", product, size.offset);
}

std::string text_of(at::ScalarType dtype, const std::vector<std::optional<AffineSize>>& sizes) {
  std::vector<std::string> parts;
  for (const auto& size : sizes) parts.push_back(size ? text_of(*size) : "?");
  return fmt::format("{}[{}]", c10::toString(dtype), fmt::join(parts, ","));
}

/// True when `is` can be `size`: a symbol takes the first size that it stands for.
bool fits(const AffineSize& size, int64_t is, const std::map<std::string, SymbolRange>& ranges,
          std::map<std::string, int64_t>& symbols) {
  if (size.symbol.empty() || size.factor == 0) return is == size.offset;
  const int64_t scaled = is - size.offset;
  if (scaled % size.factor != 0) return false;
  const int64_t value = scaled / size.factor;
  if (const auto known = symbols.try_emplace(size.symbol, value); known.first->second != value) return false;
  const auto range = ranges.find(size.symbol);
  if (range == ranges.end()) return value >= 0;
  return value >= range->second.least.value_or(0) && value <= range->second.most.value_or(INT64_MAX);
}

bool same(const c10::IValue& a, const c10::IValue& b) {
  if (a.isNone() || b.isNone()) return a.isNone() && b.isNone();
  if (a.isString() || b.isString()) return a.isString() && b.isString() && a.toStringRef() == b.toStringRef();
  const bool numbers = (a.isInt() || a.isDouble() || a.isBool()) && (b.isInt() || b.isDouble() || b.isBool());
  return numbers && a.toScalar().toDouble() == b.toScalar().toDouble();
}

}  // namespace

InputCheck::InputCheck(const ExportedFile& file) : root_(file.root), ranges_(file.ranges.begin(), file.ranges.end()) {
  for (size_t i = 0; i < file.inputs.size(); ++i) {
    const InputSpec& spec = file.inputs[i];
    const ExportedArgument& input = file.graph.inputs[i];
    if (spec.kind != InputKind::user && spec.kind != InputKind::constant) continue;
    Expected expected{.meta = {}, .constant = {}, .name = spec.name};
    if (const Slot* slot = input.slot()) {
      expected.meta = file.graph.metas[slot->index];
      expected.name = file.graph.names[slot->index];
    } else if (const c10::IValue* constant = input.constant()) {
      expected.constant = *constant;
    }
    expected_.push_back(std::move(expected));
  }
}

std::optional<std::vector<c10::IValue>> InputCheck::constants(size_t first, size_t count) const {
  std::vector<c10::IValue> values;
  for (size_t i = first; i < first + count; ++i) {
    if (i >= expected_.size() || !expected_[i].constant) return std::nullopt;
    values.push_back(*expected_[i].constant);
  }
  return values;
}

void InputCheck::check(const std::vector<c10::IValue>& values, std::optional<at::ScalarType> dtype) const {
  if (values.size() != expected_.size()) {
    throw UserError(fmt::format("{}: it takes {} value(s), {} given", root_, expected_.size(), values.size()));
  }
  std::map<std::string, int64_t> symbols;
  for (size_t i = 0; i < values.size(); ++i) {
    const Expected& expected = expected_[i];
    if (expected.constant && !same(*expected.constant, values[i])) {
      throw UserError(
          fmt::format("{}: '{}' was exported as a constant and cannot have another value", root_, expected.name));
    }
    if (!expected.meta) continue;
    if (!values[i].isTensor()) throw UserError(fmt::format("{}: '{}' must be a tensor", root_, expected.name));
    const at::Tensor& tensor = values[i].toTensor();
    const auto& sizes = expected.meta->sizes;
    const at::ScalarType wanted = dtype && at::isFloatingType(expected.meta->dtype) ? *dtype : expected.meta->dtype;
    bool ok = tensor.scalar_type() == wanted && tensor.dim() == static_cast<int64_t>(sizes.size());
    for (size_t d = 0; ok && d < sizes.size(); ++d) {
      if (sizes[d]) ok = fits(*sizes[d], tensor.size(static_cast<int64_t>(d)), ranges_, symbols);
    }
    if (ok) continue;
    throw UserError(
        fmt::format("{}: '{}' is {}, the file was exported for {}; export it with dynamic_shapes for others", root_,
                    expected.name, shape_of(tensor.scalar_type(), tensor.sizes()), text_of(wanted, sizes)));
  }
}

c10::IValue map_tensors(const c10::IValue& value, std::optional<at::Device> device,
                        std::optional<at::ScalarType> dtype) {
  if (value.isTensor()) {
    at::Tensor tensor = value.toTensor();
    if (!tensor.defined()) return tensor;
    if (device) tensor = tensor.to(*device);
    return dtype && tensor.is_floating_point() ? tensor.to(*dtype) : tensor;
  }
  if (value.isTuple()) {
    std::vector<c10::IValue> items;
    for (const c10::IValue& item : value.toTupleRef().elements()) items.push_back(map_tensors(item, device, dtype));
    return c10::ivalue::Tuple::create(std::move(items));
  }
  if (value.isList()) {
    c10::impl::GenericList items(value.toList().elementType());
    for (const c10::IValue& item : value.toListRef()) items.push_back(map_tensors(item, device, dtype));
    return items;
  }
  if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    c10::impl::GenericDict items(dict.keyType(), dict.valueType());
    for (const auto& item : dict) items.insert(item.key(), map_tensors(item.value(), device, dtype));
    return items;
  }
  return value;
}

}  // namespace sinter::frontend
