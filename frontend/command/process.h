#pragma once

#include <string>
#include <vector>

namespace sinter::command {

/// Runs this program again with other arguments, its output going where ours goes, and waits. Returns its exit code,
/// or 128 plus the signal that ended it.
[[nodiscard]] int run_self(const std::vector<std::string>& arguments);

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

}  // namespace sinter::command
