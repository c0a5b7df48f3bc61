#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// One entry of the cache on disk as bytes: what it was stored under in full, its content, and a checksum of both.
namespace sinter::runtime {

/// What an entry is stored under. Entries answer only to a key that is equal in every part.
struct CacheKey {
  std::string kind;      ///< what the payload is: "cuda", "llvm"
  std::string compiler;  ///< that made the payload, with its exact version; not part of the entry's name
  std::string target;    ///< processor, its features, and the compiler's options
  std::string text;      ///< that was compiled

  bool operator==(const CacheKey&) const = default;
};

enum class CacheAnswer {
  hit,
  absent,          ///< never stored, or evicted
  damaged,         ///< not what was written: `detail` is the check that failed
  other_key,       ///< the entry of another key with the same name
  other_compiler,  ///< made by another version of the compiler
  untrusted,       ///< somebody else may have written it
  unreadable,      ///< `detail` is the system's message
  disabled,        ///< `detail` says by what
};

/// What a cache says about one key.
struct CacheLookup {
  CacheAnswer answer = CacheAnswer::absent;
  std::string detail = {};
  std::vector<char> payload = {};  ///< of a hit

  [[nodiscard]] bool hit() const { return answer == CacheAnswer::hit; }
  /// "hit", "absent", "damaged: checksum"
  [[nodiscard]] std::string reason() const;
};

/// 16 hexadecimal digits that stand for a key; equal for keys that differ in the compiler alone, whose entries replace
/// one another.
[[nodiscard]] std::string name_of(const CacheKey& key);

/// Bytes of a record before the parts whose lengths they give.
inline constexpr size_t record_header_size = 56;

/// The bytes of an entry.
[[nodiscard]] std::string encode_record(const CacheKey& key, std::span<const char> payload);

/// Why these bytes cannot be the header of a record of `size` bytes; empty when they can. Reads no further than
/// record_header_size.
[[nodiscard]] std::string_view doubt_header(std::string_view bytes, uint64_t size);

/// The answer that the bytes of an entry give to `key`: hit, damaged, other_key or other_compiler. Any bytes are safe.
[[nodiscard]] CacheLookup decode_record(std::string_view bytes, const CacheKey& key);

}  // namespace sinter::runtime
