#pragma once

#include <array>
#include <optional>

#include "compiler/passes/decompose_rules.h"

namespace sinter::passes {

/// By input, weight and bias the result that holds the gradient. Gradients that were not wanted were undefined: the
/// call has no results for them.
using Gradients = std::array<std::optional<size_t>, 3>;

/// What a mask of `entries` flags says; nothing where the call's results do not follow it.
[[nodiscard]] std::optional<Gradients> gradients_of(const CallSite& site, const ir::Arg& mask, size_t entries = 3);

/// True when something reads the gradient.
[[nodiscard]] bool is_used(const CallSite& site, const std::optional<size_t>& gradient);

}  // namespace sinter::passes
