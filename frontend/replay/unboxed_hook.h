#pragma once

#include <string>
#include <vector>

namespace sinter::frontend {

/// The operators that have kernels of ours at the keys of both hooks: "aten::add.Tensor".
[[nodiscard]] std::vector<std::string> unboxed_operators();

}  // namespace sinter::frontend
