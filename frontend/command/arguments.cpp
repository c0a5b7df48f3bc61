#include "frontend/command/arguments.h"

#include <ATen/core/Dict.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "compiler/support/errors.h"
#include "frontend/command/target.h"

namespace sinter::command {
namespace {

using c10::IValue;
using Exchange = std::function<at::Tensor(const at::Tensor&)>;

/// The value with every defined tensor exchanged.
IValue rebuilt(const IValue& value, const Exchange& exchange) {
  if (value.isTensor()) return value.toTensor().defined() ? IValue(exchange(value.toTensor())) : value;
  if (value.isTuple()) {
    std::vector<IValue> items;
    for (const IValue& item : value.toTupleRef().elements()) items.push_back(rebuilt(item, exchange));
    return c10::ivalue::Tuple::create(std::move(items));
  }
  if (value.isList()) {
    c10::impl::GenericList items(value.toList().elementType());
    for (const IValue& item : value.toListRef()) items.push_back(rebuilt(item, exchange));
    return items;
  }
  if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    c10::impl::GenericDict items(dict.keyType(), dict.valueType());
    for (const auto& item : dict) items.insert(item.key(), rebuilt(item.value(), exchange));
    return items;
  }
  return value;
}

Arguments rebuilt(const Arguments& arguments, const Exchange& exchange) {
  Arguments result;
  for (const IValue& value : arguments.positional) result.positional.push_back(rebuilt(value, exchange));
  for (const auto& [name, value] : arguments.named.values) result.named.values[name] = rebuilt(value, exchange);
  return result;
}

}  // namespace

Tensors tensors_in(const IValue& value) {
  Tensors tensors;
  (void)rebuilt(value, [&](const at::Tensor& tensor) {
    tensors.push_back(tensor);
    return tensor;
  });
  return tensors;
}

Tensors tensors_in(const Arguments& arguments) {
  Tensors tensors;
  (void)rebuilt(arguments, [&](const at::Tensor& tensor) {
    tensors.push_back(tensor);
    return tensor;
  });
  return tensors;
}

Arguments with_tensors(const Arguments& arguments, const Tensors& tensors) {
  size_t next = 0;
  return rebuilt(arguments, [&](const at::Tensor& /*old*/) { return tensors.at(next++); });
}

IValue read_value(const std::string& path) { return read_saved(path); }

Arguments read_arguments(const std::string& path) {
  const IValue value = read_value(path);
  Arguments arguments;
  if (value.isTuple()) {
    const auto& items = value.toTupleRef().elements();
    arguments.positional.assign(items.begin(), items.end());
  } else if (value.isList()) {
    arguments.positional = value.toListRef().vec();
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      if (!item.key().isString()) throw UserError(path + ": a dict of arguments has their names as keys");
      arguments.named.values.emplace(item.key().toStringRef(), item.value());
    }
  } else {
    arguments.positional = {value};
  }
  return arguments;
}

std::vector<std::pair<std::string, at::Tensor>> read_state(const std::string& path) {
  const IValue value = read_value(path);
  std::vector<std::pair<std::string, at::Tensor>> state;
  if (!value.isGenericDict())
    throw UserError(path + ": no state dict: torch.save(model.state_dict(), file) writes one");
  for (const auto& item : value.toGenericDict()) {
    if (!item.key().isString() || !item.value().isTensor()) {
      throw UserError(path + ": no state dict: it holds more than tensors under names");
    }
    state.emplace_back(item.key().toStringRef(), item.value().toTensor());
  }
  return state;
}

void write_value(const std::string& path, const IValue& value) {
  const IValue on_cpu = rebuilt(value, [](const at::Tensor& tensor) { return tensor.detach().cpu(); });
  const std::vector<char> bytes = torch::jit::pickle_save(on_cpu);
  write_file(path, std::string(bytes.begin(), bytes.end()));
}

}  // namespace sinter::command
