#include "frontend/model_file/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>

#include "compiler/support/errors.h"

namespace sinter::frontend {
namespace {

constexpr uint64_t kEndSize = 22;
constexpr uint64_t kLongestComment = 0xffff;
constexpr uint64_t kMostDirectory = uint64_t{256} << 20;

/// A file read by position, or one inside another that was read as a whole. Every read stays inside it.
class File {
 public:
  explicit File(const std::string& path) : path_(path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) throw UserError(path + ": no such file");
    if (!std::filesystem::is_regular_file(status)) throw UserError(path + ": not a file");
    size_ = std::filesystem::file_size(path, error);
    errno = 0;
    stream_.open(path, std::ios::binary);
    if (error || !stream_) throw UserError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    if (size_ == 0) throw UserError(path + ": the file is empty");
  }

  File(const std::string& name, std::string_view bytes) : path_(name), bytes_(bytes), size_(bytes.size()) {}

  [[nodiscard]] uint64_t size() const { return size_; }

  [[nodiscard]] std::string read(uint64_t from, uint64_t count) {
    if (from > size_ || count > size_ - from) throw damaged();
    if (!stream_.is_open()) return std::string(bytes_.substr(from, count));
    std::string bytes(count, '\0');
    stream_.seekg(static_cast<std::streamoff>(from));
    stream_.read(bytes.data(), static_cast<std::streamsize>(count));
    if (!stream_) throw damaged();
    return bytes;
  }

  [[nodiscard]] UserError damaged() const {
    return UserError(path_ + ": not a model file, or one that is cut off: the directory of its zip archive is missing");
  }

 private:
  std::string path_;
  std::ifstream stream_;    ///< or, where it is not open,
  std::string_view bytes_;  ///< what was read already
  uint64_t size_ = 0;
};

/// The little-endian number of `count` bytes at a position.
uint64_t number(std::string_view bytes, size_t from, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint64_t{static_cast<uint8_t>(bytes.at(from + i))} << (8 * i);
  return value;
}

/// Where the directory lies.
struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
};

std::optional<Directory> zip64_directory(File& file, uint64_t end) {
  constexpr uint64_t locator_size = 20;
  if (end < locator_size) return std::nullopt;
  const std::string locator = file.read(end - locator_size, locator_size);
  if (!locator.starts_with("PK\x06\x07")) return std::nullopt;
  const std::string record = file.read(number(locator, 8, 8), 56);
  if (!record.starts_with("PK\x06\x06")) throw file.damaged();
  return Directory{number(record, 48, 8), number(record, 40, 8)};
}

Directory find_directory(File& file) {
  if (file.size() < kEndSize) throw file.damaged();
  const uint64_t count = std::min(file.size(), kEndSize + kLongestComment);
  const uint64_t start = file.size() - count;
  const std::string tail = file.read(start, count);
  const size_t at = tail.rfind("PK\x05\x06", tail.size() - kEndSize);
  if (at == std::string::npos) throw file.damaged();
  if (const auto wide = zip64_directory(file, start + at)) return *wide;
  return {number(tail, at + 16, 4), number(tail, at + 12, 4)};
}

/// Sizes of 2^32 - 1 stand for 8-byte ones in the entry's zip64 field.
void widen(ZipEntry& entry, std::string_view extra) {
  constexpr uint64_t marker = 0xffffffff;
  while (extra.size() >= 4) {
    const size_t size = number(extra, 2, 2);
    if (size > extra.size() - 4) return;
    std::string_view field = extra.substr(4, size);
    const bool is_zip64 = number(extra, 0, 2) == 1;
    extra.remove_prefix(4 + size);
    if (!is_zip64) continue;
    for (uint64_t* value : {&entry.size, &entry.packed}) {
      if (*value != marker || field.size() < 8) continue;
      *value = number(field, 0, 8);
      field.remove_prefix(8);
    }
  }
}

bool climbs_out(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find_first_of(std::string_view("\\\0", 2)) != name.npos) return true;
  for (size_t from = 0; from <= name.size();) {
    const size_t to = std::min(name.find('/', from), name.size());
    if (name.substr(from, to - from) == "..") return true;
    from = to + 1;
  }
  return false;
}

std::vector<ZipEntry> entries_of(File& file, const std::string& path) {
  constexpr size_t header_size = 46;
  const Directory directory = find_directory(file);
  if (directory.size > kMostDirectory) throw file.damaged();
  const std::string bytes = file.read(directory.offset, directory.size);
  std::string_view rest = bytes;
  std::vector<ZipEntry> entries;
  while (rest.starts_with("PK\x01\x02")) {
    if (rest.size() < header_size) throw file.damaged();
    const size_t name = number(rest, 28, 2);
    const size_t extra = number(rest, 30, 2);
    const size_t whole = header_size + name + extra + number(rest, 32, 2);
    if (whole > rest.size()) throw file.damaged();
    ZipEntry entry{std::string(rest.substr(header_size, name)), number(rest, 20, 4), number(rest, 24, 4)};
    widen(entry, rest.substr(header_size + name, extra));
    entries.push_back(std::move(entry));
    rest.remove_prefix(whole);
  }
  if (entries.empty()) throw UserError(path + ": the zip archive is empty");
  return entries;
}

void check(const std::string& path, uint64_t file_size, const std::vector<ZipEntry>& entries) {
  uint64_t packed = 0;
  uint64_t unpacked = 0;
  for (const ZipEntry& entry : entries) {
    if (climbs_out(entry.name)) {
      throw UserError(fmt::format("{}: refused: its file '{}' lies outside the archive", path, entry.name));
    }
    if (entry.packed > file_size || entry.size > file_size * kMostUnpacked) {
      throw UserError(fmt::format("{}: refused: its file '{}' claims {} bytes, more than the archive can hold", path,
                                  entry.name, entry.size));
    }
    packed += entry.packed;
    unpacked += entry.size;
  }
  if (packed > file_size) throw UserError(path + ": refused: files of the archive overlap");
  if (unpacked > file_size * kMostUnpacked) {
    throw UserError(fmt::format("{}: refused: it claims to unpack to {} times its size", path, unpacked / file_size));
  }
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const std::string& path) {
  File file(path);
  std::vector<ZipEntry> entries = entries_of(file, path);
  check(path, file.size(), entries);
  return entries;
}

void check_zip(const std::string& name, const std::string& bytes) {
  File file(name, bytes);
  check(name, bytes.size(), entries_of(file, name));
}

}  // namespace sinter::frontend
