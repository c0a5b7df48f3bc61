#pragma once

#include <string_view>

#include "compiler/ir/graph.h"

namespace sinter::ir {

/// Reads a graph from the text form of docs/ir.md. Throws UserError with `origin`, line and column for anything else
/// ("ir:3:14: expected a type, found '}'. Example: f16[8,768]"); never crashes on broken text. The result is well
/// formed (values defined before use, known ops) but not verified.
[[nodiscard]] Graph parse(std::string_view text, std::string_view origin = "ir");

/// Reads one type: "f16[8,768]{1,8}@cpu". Throws UserError as `parse` does.
[[nodiscard]] Type parse_type(std::string_view text, Device home, std::string_view origin = "type");

}  // namespace sinter::ir
