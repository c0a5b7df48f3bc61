#include "runtime/cache_record.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace sinter::runtime {
namespace {

constexpr std::string_view magic = "SINTERC\n";
constexpr uint64_t format_version = 1;
constexpr size_t word = 8;
constexpr size_t part_count = 5;  ///< kind, compiler, target, text, payload
constexpr size_t checksum_size = word;
static_assert(record_header_size == (2 + part_count) * word);

/// FNV-1a. Every step is a bijection of the state, so that two texts that differ in one byte never agree.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) state_ = (state_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  }
  [[nodiscard]] uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0xcbf29ce484222325ULL;
};

/// Little-endian, whatever the machine is.
std::string number_bytes(uint64_t value) {
  std::string bytes;
  for (size_t i = 0; i < word; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

uint64_t number_at(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < word; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

std::string_view name(CacheAnswer answer) {
  switch (answer) {
    case CacheAnswer::hit:
      return "hit";
    case CacheAnswer::absent:
      return "absent";
    case CacheAnswer::damaged:
      return "damaged";
    case CacheAnswer::other_key:
      return "another key of the same name";
    case CacheAnswer::other_compiler:
      return "compiler changed";
    case CacheAnswer::untrusted:
      return "not trusted";
    case CacheAnswer::unreadable:
      return "unreadable";
    case CacheAnswer::disabled:
      return "disabled";
  }
  return "unknown";
}

}  // namespace

std::string CacheLookup::reason() const {
  return detail.empty() ? std::string(name(answer)) : fmt::format("{}: {}", name(answer), detail);
}

std::string name_of(const CacheKey& key) {
  Hash hash;
  for (const std::string* part : {&key.kind, &key.target, &key.text}) {
    hash.add(number_bytes(part->size()));
    hash.add(*part);
  }
  return fmt::format("{:016x}", hash.value());
}

std::string encode_record(const CacheKey& key, std::span<const char> payload) {
  const std::array<std::string_view, part_count> parts{key.kind, key.compiler, key.target, key.text,
                                                       std::string_view(payload.data(), payload.size())};
  std::string bytes(magic);
  bytes += number_bytes(format_version);
  for (const std::string_view part : parts) bytes += number_bytes(part.size());
  for (const std::string_view part : parts) bytes += part;
  Hash checksum;
  checksum.add(bytes);
  bytes += number_bytes(checksum.value());
  return bytes;
}

std::string_view doubt_header(std::string_view bytes, uint64_t size) {
  if (bytes.size() < record_header_size || size < record_header_size + checksum_size) return "truncated";
  if (!bytes.starts_with(magic)) return "magic";
  if (number_at(bytes, word) != format_version) return "format version";
  uint64_t rest = size - record_header_size - checksum_size;
  for (size_t i = 0; i < part_count; ++i) {
    const uint64_t length = number_at(bytes, (2 + i) * word);
    if (length > rest) return "lengths";
    rest -= length;
  }
  return rest == 0 ? std::string_view() : "lengths";
}

CacheLookup decode_record(std::string_view bytes, const CacheKey& key) {
  if (const std::string_view doubt = doubt_header(bytes, bytes.size()); !doubt.empty()) {
    return {CacheAnswer::damaged, std::string(doubt)};
  }
  const size_t end = bytes.size() - checksum_size;
  Hash checksum;
  checksum.add(bytes.substr(0, end));
  if (checksum.value() != number_at(bytes, end)) return {CacheAnswer::damaged, "checksum"};

  std::array<std::string_view, part_count> parts;
  size_t at = record_header_size;
  for (size_t i = 0; i < part_count; ++i) {
    parts[i] = bytes.substr(at, number_at(bytes, (2 + i) * word));
    at += parts[i].size();
  }
  const auto& [kind, compiler, target, text, payload] = parts;
  if (kind != key.kind || target != key.target || text != key.text) return {CacheAnswer::other_key};
  if (compiler != key.compiler) return {CacheAnswer::other_compiler};
  return {CacheAnswer::hit, {}, {payload.begin(), payload.end()}};
}

}  // namespace sinter::runtime
