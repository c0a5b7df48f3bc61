#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sinter::test {

/// What one run of the program left behind.
struct Ran {
  int code = -1;  ///< exit code; 128 plus the signal that ended it
  std::string out;
  std::string err;
};

/// Runs the `sinter` program that was built with the tests, its output caught. `environment` holds settings
/// ("SINTER_FAULT=lost_op") that are added to this process's own. There is no kernel cache unless they name one.
[[nodiscard]] Ran sinter(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});

/// A new folder that is removed with the object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes a file and returns its path.
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path folder_;
};

/// The text of a file; empty when it cannot be read.
[[nodiscard]] std::string text_of(const std::string& path);

}  // namespace sinter::test
