#include "runtime/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace sinter::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view suffix = ".entry";
constexpr std::string_view temporary_mark = ".tmp-";
constexpr size_t name_digits = 16;
/// An unfinished file this old is of a process that died.
constexpr int64_t abandoned_after_seconds = 3600;

std::string message(int error) { return std::generic_category().message(error); }

/// A file descriptor, closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] bool open() const { return file_ >= 0; }
  [[nodiscard]] int get() const { return file_; }
  /// Closes now; false when the system could not keep what was written.
  [[nodiscard]] bool close() { return ::close(std::exchange(file_, -1)) == 0; }

 private:
  int file_;
};

/// Reads until `bytes` is full or the file ends; shortens `bytes` to what there was. 0, or an errno.
int read_into(int file, std::string& bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = ::read(file, bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  bytes.resize(filled);
  return 0;
}

/// Why code from this file must not be run; empty when only this user can have written it.
std::string_view distrust(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  if (status.st_uid != ::geteuid()) return "another user's file";
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it";
  return {};
}

CacheLookup unopened(int error) {
  if (error == ENOENT) return {CacheAnswer::absent};
  if (error == ELOOP) return {CacheAnswer::untrusted, "a symbolic link"};
  return {CacheAnswer::unreadable, message(error)};
}

CacheLookup read_entry(int file, uint64_t limit, const CacheKey& key) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return {CacheAnswer::unreadable, message(errno)};
  if (const auto doubt = distrust(status); !doubt.empty()) return {CacheAnswer::untrusted, std::string(doubt)};
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > limit) return {CacheAnswer::damaged, "larger than the cache's limit"};

  // The header first: a file that is no entry is never read as a whole.
  std::string bytes(std::min<uint64_t>(size, record_header_size), '\0');
  if (const int error = read_into(file, bytes)) return {CacheAnswer::unreadable, message(error)};
  if (const auto doubt = doubt_header(bytes, size); !doubt.empty()) return {CacheAnswer::damaged, std::string(doubt)};
  std::string rest(size - bytes.size(), '\0');
  if (const int error = read_into(file, rest)) return {CacheAnswer::unreadable, message(error)};
  return decode_record(bytes + rest, key);
}

bool is_name(std::string_view text) {
  return text.size() == name_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// One file of the cache in its folder.
struct Stored {
  fs::path path;
  uint64_t size = 0;
  int64_t used = 0;  ///< nanoseconds since 1970
};

/// Names of the files in a folder; none when it cannot be read. POSIX's own calls: LibTorch exports directory iterators
/// of another standard library, which the dynamic linker would prefer.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) return names;
  while (const dirent* found = ::readdir(directory)) names.emplace_back(found->d_name);
  ::closedir(directory);
  return names;
}

/// The entries in a folder that are this user's. Removes unfinished files of processes that died.
std::vector<Stored> scan(const fs::path& folder) {
  std::vector<Stored> entries;
  const std::time_t now = std::time(nullptr);
  for (const std::string& file : names_in(folder)) {
    const std::string_view rest = std::string_view(file).substr(std::min(file.size(), name_digits));
    const bool entry = rest == suffix;
    if (!is_name(file.substr(0, name_digits)) || (!entry && !rest.starts_with(temporary_mark))) continue;
    const fs::path path = folder / file;
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) continue;
    if (entry) {
      const int64_t used = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
      entries.push_back({path, static_cast<uint64_t>(status.st_size), used});
    } else if (now - status.st_mtim.tv_sec > abandoned_after_seconds) {
      ::unlink(path.c_str());
    }
  }
  return entries;
}

uint64_t total_size(const std::vector<Stored>& entries) {
  uint64_t total = 0;
  for (const Stored& entry : entries) total += entry.size;
  return total;
}

/// Removes the least recently used of `entries` until at most `keep` bytes are left; returns how many are.
uint64_t evict(std::vector<Stored> entries, uint64_t keep) {
  std::sort(entries.begin(), entries.end(),
            [](const Stored& a, const Stored& b) { return std::tie(a.used, a.path) < std::tie(b.used, b.path); });
  uint64_t total = total_size(entries);
  for (const Stored& entry : entries) {
    if (total <= keep) break;
    if (::unlink(entry.path.c_str()) == 0 || errno == ENOENT) total -= entry.size;
  }
  return total;
}

/// A name no other writer has: of this process or another, on this machine or one that shares the folder.
std::string temporary_suffix() {
  static std::atomic<uint64_t> counter{0};
  return fmt::format("{}{}-{}-{:08x}", temporary_mark, ::getpid(), counter++, std::random_device()());
}

/// Empty when the folder exists or could be made.
std::string make_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return {};
  fs::create_directories(folder.parent_path(), error);
  if (error) return error.message();
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) return message(errno);
  return {};
}

/// The value of an environment variable; none when it is unset or empty.
std::optional<std::string> setting(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

void set_folder(DiskCacheSettings& settings) {
  if (const auto folder = setting("SINTER_CACHE")) {
    std::error_code error;
    settings.folder = fs::absolute(*folder, error);
    if (*folder == "off") settings.off = "SINTER_CACHE=off";
    if (error) settings.off = "SINTER_CACHE: " + error.message();
    return;
  }
  const auto xdg = setting("XDG_CACHE_HOME");  // to be ignored, says its specification, when it is relative
  const auto home = setting("HOME");
  if (xdg && fs::path(*xdg).is_absolute()) {
    settings.folder = fs::path(*xdg) / "sinter";
  } else if (home) {
    settings.folder = fs::path(*home) / ".cache" / "sinter";
  } else {
    settings.off = "neither SINTER_CACHE nor XDG_CACHE_HOME nor HOME is set";
  }
}

constexpr uint64_t checks_a_limit = 16;

void set_limit(DiskCacheSettings& settings) {
  const auto text = setting("SINTER_CACHE_LIMIT");
  if (!text) return;
  uint64_t mebibytes = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), mebibytes);
  if (error != std::errc() || end != text->data() + text->size() || mebibytes > UINT64_MAX >> 20) {
    settings.off = fmt::format("SINTER_CACHE_LIMIT is '{}', which is no number of MiB", *text);
    return;
  }
  settings.limit = mebibytes << 20;
  if (mebibytes == 0) settings.off = "SINTER_CACHE_LIMIT=0";
}

}  // namespace

DiskCacheSettings DiskCacheSettings::from_environment() {
  DiskCacheSettings settings;
  set_limit(settings);
  set_folder(settings);
  settings.unchecked = std::random_device()() % (settings.limit / checks_a_limit + 1);
  return settings;
}

DiskCache::DiskCache(DiskCacheSettings settings) : settings_(std::move(settings)), until_scan_(settings_.unchecked) {
  if (settings_.write == nullptr) settings_.write = ::write;
}

DiskCache& DiskCache::process() {
  // Never destroyed: a kernel may be built on any thread until the process ends.
  static auto& cache = *new DiskCache(DiskCacheSettings::from_environment());
  return cache;
}

fs::path DiskCache::file_of(const CacheKey& key) const {
  return settings_.folder / (name_of(key) + std::string(suffix));
}

CacheLookup DiskCache::find(const CacheKey& key) const {
  if (!settings_.off.empty()) return {CacheAnswer::disabled, settings_.off};
  // Not blocking: somebody may have put a pipe there.
  const Descriptor file(::open(file_of(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.open()) return unopened(errno);
  CacheLookup found = read_entry(file.get(), settings_.limit, key);
  if (found.hit()) (void)::futimens(file.get(), nullptr);  // used now; a read-only cache cannot know
  return found;
}

std::string DiskCache::store(const CacheKey& key, std::span<const char> payload) {
  if (!settings_.off.empty()) return {};
  const auto hindered = [&](const std::string& why) {
    return fmt::format("cannot write to {}: {}", settings_.folder.string(), why);
  };
  const std::string bytes = encode_record(key, payload);
  if (bytes.size() > settings_.limit) return hindered("an entry is larger than the cache's limit");
  if (const std::string why = make_folder(settings_.folder); !why.empty()) return hindered(why);

  const fs::path file = file_of(key);
  fs::path temporary = file;
  temporary.replace_extension(temporary_suffix());
  if (const std::string why = write_file(temporary, bytes); !why.empty()) return hindered(why);
  // Readers see the whole entry or what was there before.
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return hindered(message(error));
  }
  trim_after(bytes.size());
  return {};
}

std::string DiskCache::write_file(const fs::path& temporary, std::string_view bytes) const {
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!file.open()) return message(errno);
  int error = 0;
  while (!bytes.empty() && error == 0) {
    const ssize_t count = settings_.write(file.get(), bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      error = count == 0 ? EIO : errno;
    }
  }
  if (error == 0 && !file.close()) error = errno;
  if (error == 0) return {};
  ::unlink(temporary.c_str());
  return message(error);
}

void DiskCache::trim_after(uint64_t written) {
  std::lock_guard lock(trimming_);
  if (written <= until_scan_) {
    until_scan_ -= written;
    return;
  }
  std::vector<Stored> entries = scan(settings_.folder);
  uint64_t total = total_size(entries);
  if (total > settings_.limit) total = evict(std::move(entries), settings_.limit / 4 * 3);
  // Other processes write too: look again before this one alone could have exceeded the limit.
  until_scan_ = std::min(settings_.limit - std::min(total, settings_.limit), settings_.limit / checks_a_limit);
}

}  // namespace sinter::runtime
