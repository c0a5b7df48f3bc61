#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinter::frontend {

/// Return addresses of a thread, innermost first.
using Stack = std::vector<void*>;

/// Of the calling thread. Takes about a microsecond once the addresses are known.
[[nodiscard]] Stack stack_here();

/// True where an address lies in the user's program or a library of it.
[[nodiscard]] bool is_programs_own(void* address);

/// What place_here says of a function at a line: "resnet.cpp:58", the function's name without a file, nothing for
/// functions of LibTorch, of Sinter and of the C++ library.
[[nodiscard]] std::string line_of(const std::string& function, const std::string& file, uint64_t line);

/// The innermost place of the calling thread that belongs neither to LibTorch nor to Sinter nor to the C++ library:
/// "resnet.cpp:58", or a function's name where the program has no line tables; empty when unknown. Reads symbols when
/// an address is met for the first time, without starting another process. Thread-safe.
[[nodiscard]] std::string place_here();

}  // namespace sinter::frontend
