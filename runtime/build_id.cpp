#include "runtime/build_id.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

namespace sinter::runtime {
namespace {

constexpr size_t largest_notes = 1 << 16;
constexpr size_t most_segments = 1 << 10;

/// `count` values of T at `offset` of a file; none when the file is too short.
template <class T>
std::vector<T> read_at(std::ifstream& file, uint64_t offset, size_t count) {
  std::vector<T> values(count);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(T)));
  return file ? values : std::vector<T>();
}

/// The build ID among the notes of one segment.
std::string find_in(std::string_view notes) {
  const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  Elf64_Nhdr note{};
  while (notes.size() >= sizeof(note)) {
    std::memcpy(&note, notes.data(), sizeof(note));
    notes.remove_prefix(sizeof(note));
    const size_t name_size = padded(note.n_namesz);
    const size_t size = padded(note.n_descsz);
    if (name_size > notes.size() || size > notes.size() - name_size) return {};
    if (note.n_type == NT_GNU_BUILD_ID && notes.starts_with(std::string_view("GNU\0", 4))) {
      std::string digits;
      for (const char byte : notes.substr(name_size, note.n_descsz)) {
        digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      }
      return digits;
    }
    notes.remove_prefix(name_size + size);
  }
  return {};
}

}  // namespace

std::string build_id(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const auto headers = read_at<Elf64_Ehdr>(file, 0, 1);
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) return {};
  const Elf64_Ehdr& header = headers[0];
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phnum > most_segments) return {};
  for (const auto& segment : read_at<Elf64_Phdr>(file, header.e_phoff, header.e_phnum)) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > largest_notes) continue;
    const auto notes = read_at<char>(file, segment.p_offset, segment.p_filesz);
    if (auto found = find_in({notes.data(), notes.size()}); !found.empty()) return found;
    file.clear();
  }
  return {};
}

}  // namespace sinter::runtime
