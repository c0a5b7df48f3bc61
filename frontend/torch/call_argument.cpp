#include "frontend/torch/call_argument.h"

#include <string>
#include <type_traits>

namespace sinter::frontend {

c10::IValue boxed(const CallArgument& argument) {
  const auto box = [](const auto& value) -> c10::IValue {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::monostate>) {
      return {};
    } else if constexpr (std::is_pointer_v<Value>) {
      return *value;
    } else if constexpr (std::is_same_v<Value, std::string_view>) {
      return std::string(value);
    } else {
      return value;
    }
  };
  return std::visit(box, argument);
}

std::vector<c10::IValue> boxed(CallArguments arguments) {
  std::vector<c10::IValue> values;
  for (const CallArgument& argument : arguments) values.push_back(boxed(argument));
  return values;
}

}  // namespace sinter::frontend
