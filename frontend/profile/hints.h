#pragma once

#include <string>

namespace sinter::frontend {

/// What to do instead of a wait of this operator; empty where nothing is known. The table is docs/profiling.md's.
[[nodiscard]] std::string hint_for(const std::string& op, const std::string& autograd, bool pageable);

/// What to do instead of this operator while LibTorch's deterministic algorithms are on; empty where its deterministic
/// form is not known to be slow. The table is docs/profiling.md's.
[[nodiscard]] std::string slow_hint_for(const std::string& op);

}  // namespace sinter::frontend
