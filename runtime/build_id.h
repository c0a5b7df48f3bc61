#pragma once

#include <filesystem>
#include <string>

namespace sinter::runtime {

/// The GNU build ID of a 64-bit ELF file in hexadecimal digits, which its linker made from everything in it; empty when
/// it has none or is no such file. Reads a few kilobytes, however large the file is.
[[nodiscard]] std::string build_id(const std::filesystem::path& file);

}  // namespace sinter::runtime
