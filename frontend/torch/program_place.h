#pragma once

#include <string>

namespace sinter::frontend {

/// The innermost place of the calling thread that belongs neither to LibTorch nor to Sinter nor to the C++ library:
/// "resnet.cpp:58", or a function's name where the program has no line tables; empty when unknown. Reads symbols when
/// an address is met for the first time, without starting another process. Thread-safe.
[[nodiscard]] std::string place_here();

}  // namespace sinter::frontend
