#include "compiler/support/environment.h"

#include <cstdlib>
#include <string_view>

namespace sinter {

bool is_switched_on(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace sinter
