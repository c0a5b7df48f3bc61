#pragma once

#include <string>

namespace sinter {

/// A symbol as C++ writes it; what is no mangled name stays as it is.
[[nodiscard]] std::string demangled(const std::string& symbol);

/// A function's symbol for people: demangled, without return type, parameters and anonymous namespaces.
[[nodiscard]] std::string readable_symbol(const std::string& symbol);

}  // namespace sinter
