#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinter::frontend {

/// One file of a zip archive, as the archive's directory describes it.
struct ZipEntry {
  std::string name;
  uint64_t packed = 0;  ///< bytes in the archive
  uint64_t size = 0;    ///< bytes once unpacked
};

/// Reads the directory at the end of a zip archive (with zip64 records), and nothing else: what an archive claims is
/// known, and can be refused, before anything is unpacked. Source: PKWARE's APPNOTE.TXT 6.3.
/// Throws UserError, naming the path, where there is no such file or no such directory in it, and for an archive that
/// is not safe to unpack: names that climb out of it or are absolute, files that overlap, and more than `kMostUnpacked`
/// times its own size once unpacked.
[[nodiscard]] std::vector<ZipEntry> read_zip_directory(const std::string& path);

/// The same errors for an archive within another, which was read as a whole; `name` is for the messages.
void check_zip(const std::string& name, const std::string& bytes);

/// Text shrinks by less than this; bombs shrink by a thousand and more.
inline constexpr uint64_t kMostUnpacked = 64;

}  // namespace sinter::frontend
