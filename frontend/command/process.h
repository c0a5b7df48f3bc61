#pragma once

#include <string>
#include <vector>

namespace sinter::command {

/// Runs this program again with other arguments, its output going where ours goes, and waits. `environment` holds
/// settings ("SINTER_CACHE=off") that come before this process's own. Returns its exit code, or 128 plus the signal
/// that ended it.
[[nodiscard]] int run_self(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);

/// A file in the system's folder for temporary files that is removed with the object.
class TemporaryFile {
 public:
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string read() const;

 private:
  std::string path_;
};

/// A folder in the system's folder for temporary files that is removed, with the files in it, with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace sinter::command
