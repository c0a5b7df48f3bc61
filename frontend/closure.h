#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace torch::nn {
class Module;
}

namespace sinter::frontend {

/// Modules that the closure of a lambda refers to, each once: a holder or shared pointer that it holds, one that it
/// refers to, a module that it refers to (`this`). What a class outside of the closure holds beyond its first member is
/// not found, nor are global variables.
///
/// C++ does not tell what a closure holds. So every word of it is taken for a pointer, as conservative garbage
/// collectors take the words of a stack (Boehm and Weiser, 1988), and believed only where a module lies whose class
/// says so and which a shared pointer owns. Memory is read through the kernel, which refuses addresses that are none.
[[nodiscard]] std::vector<std::shared_ptr<torch::nn::Module>> modules_in(std::span<const std::byte> closure);

}  // namespace sinter::frontend
