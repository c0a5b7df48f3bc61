#pragma once

#include <optional>

#include "frontend/torch/stated_place.h"

namespace sinter::frontend {

/// Module path and Python line of the TorchScript code that runs on this thread; nothing where none does. Costs about
/// a microsecond in TorchScript and nothing elsewhere.
[[nodiscard]] std::optional<StatedPlace> script_place();

}  // namespace sinter::frontend
