#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>

#include "frontend/model_file/pytree.h"
#include "sinter/detail/flatten.h"

namespace sinter::detail {
namespace {

void flatten_items(Flat& flat, Tag tag, c10::ArrayRef<c10::IValue> items) {
  flat.count(tag, items.size());
  for (const c10::IValue& item : items) flatten_dynamic(flat, item);
}

/// Dicts keep the order in which they were filled, and programs see it.
void flatten_dict(Flat& flat, const c10::IValue& value) {
  const auto dict = value.toGenericDict();
  flat.count(Tag::map, dict.size());
  for (const auto& item : dict) {
    if (!item.key().isString()) {
      flat.unknown = &typeid(c10::impl::GenericDict);
      return;
    }
    flat.text(item.key().toStringRef());
    flatten_dynamic(flat, item.value());
  }
}

}  // namespace

void flatten_dynamic(Flat& flat, const c10::IValue& value) {
  if (value.isTensor()) return flatten(flat, value.toTensor());
  if (value.isNone()) return flat.tag(Tag::empty);
  if (value.isBool()) return flatten(flat, value.toBool());
  if (value.isInt()) return flatten(flat, value.toInt());
  if (value.isDouble()) return flatten(flat, value.toDouble());
  if (value.isString()) return flat.text(value.toStringRef());
  if (value.isTuple()) return flatten_items(flat, Tag::tuple, value.toTupleRef().elements());
  if (value.isList()) return flatten_items(flat, Tag::sequence, value.toListRef());
  if (value.isGenericDict()) return flatten_dict(flat, value);
  flat.unknown = &typeid(c10::IValue);
}

c10::IValue read_dynamic(Reader& reader) {
  const auto items = [&reader] {
    std::vector<c10::IValue> read;
    for (auto left = reader.number<int64_t>(); left > 0; --left) read.push_back(read_dynamic(reader));
    return read;
  };
  switch (reader.peek()) {
    case Tag::tensor:
    case Tag::undefined:
      return reader.tensor();
    case Tag::empty:
      reader.skip_tag();
      return {};
    case Tag::boolean:
      return reader.number<int64_t>() != 0;
    case Tag::integer:
      return reader.number<int64_t>();
    case Tag::real:
      return reader.number<double>();
    case Tag::text:
      return reader.text();
    case Tag::tuple:
      return c10::ivalue::Tuple::create(items());
    case Tag::sequence:
      return frontend::make_list(items());
    case Tag::map:
      break;
  }
  std::vector<std::string> keys;
  std::vector<c10::IValue> values;
  for (auto left = reader.number<int64_t>(); left > 0; --left) {
    keys.push_back(reader.text());
    values.push_back(read_dynamic(reader));
  }
  return frontend::make_dict(keys, std::move(values));
}

}  // namespace sinter::detail
