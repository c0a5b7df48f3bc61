#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinter::runtime {

/// A function at an address of a program.
struct SourceFrame {
  std::string function;  ///< as C++ writes it, with its namespaces and class; with or without parameters
  std::string file;      ///< with its folders; empty where there are no line tables
  uint32_t line = 0;
};

/// The functions at an offset of a program or library: first those that the compiler put into others, innermost first,
/// then the one that was called. Empty where the file has neither symbols nor debugging information. The first question
/// about a file reads it, which may take a second. Thread-safe.
[[nodiscard]] std::vector<SourceFrame> source_frames(const std::string& file, uint64_t offset);

}  // namespace sinter::runtime
