#include "compiler/support/fault.h"

#include <algorithm>
#include <cstdlib>

namespace sinter {

Faults::Faults(std::string_view names) {
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    if (comma > 0) names_.emplace(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
}

const Faults& Faults::environment() {
  static const Faults faults = [] {
    const char* value = std::getenv("SINTER_FAULT");
    return Faults(value == nullptr ? "" : value);
  }();
  return faults;
}

}  // namespace sinter
