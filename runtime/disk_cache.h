#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>

#include "runtime/cache_record.h"

namespace sinter::runtime {

/// Where a cache keeps its entries, and how much of them.
struct DiskCacheSettings {
  std::filesystem::path folder;
  uint64_t limit = uint64_t{1024} << 20;  ///< bytes of all entries together
  /// Bytes that a process may write before it looks how much there is, which takes as long as there are files.
  uint64_t unchecked = 0;
  std::string off;  ///< why nothing is looked up or stored; empty when the cache is on
  /// How entries reach the file; as ::write.
  ssize_t (*write)(int file, const void* bytes, size_t count) = nullptr;

  /// SINTER_CACHE (a folder, or "off"), else $XDG_CACHE_HOME/sinter, else ~/.cache/sinter; SINTER_CACHE_LIMIT in MiB.
  /// A value that makes no sense turns the cache off and says so. `unchecked` is drawn, up to a sixteenth of the limit:
  /// all processes together look once for each sixteenth that they write, however little each of them does.
  [[nodiscard]] static DiskCacheSettings from_environment();
};

/// Bytes under keys, kept in a folder for later processes; see docs/caching.md. Whatever is wrong with the folder or a
/// file in it costs time, never an exception: a lookup is a miss with its reason, a store tells what hindered it.
/// Thread-safe; any number of processes may use one folder at once. Other files in the folder are left alone.
class DiskCache {
 public:
  explicit DiskCache(DiskCacheSettings settings);

  /// The payload stored under a key, if it is whole and only this user can have written it.
  [[nodiscard]] CacheLookup find(const CacheKey& key) const;

  /// Stores a payload, in place of any other under this key. Evicts the least recently used entries when they exceed
  /// the limit, down to three quarters of it. Returns what hindered it, for a person to read; empty when nothing did.
  [[nodiscard]] std::string store(const CacheKey& key, std::span<const char> payload);

  /// The file that does or would hold the entry of a key.
  [[nodiscard]] std::filesystem::path file_of(const CacheKey& key) const;

  /// The cache of this process, with the settings of its environment.
  [[nodiscard]] static DiskCache& process();

 private:
  [[nodiscard]] std::string write_file(const std::filesystem::path& temporary, std::string_view bytes) const;
  void trim_after(uint64_t written);

  DiskCacheSettings settings_;
  std::mutex trimming_;
  uint64_t until_scan_;  ///< bytes this process may still write before it looks at the folder again
};

}  // namespace sinter::runtime
