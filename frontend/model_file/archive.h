#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace caffe2::serialize {
class PyTorchStreamReader;
}

namespace sinter::frontend {

/// A zip archive as LibTorch writes them, opened after its directory was checked. Not thread-safe.
class Archive {
 public:
  /// Throws UserError, in one line that names the path, for anything that is not such an archive or not a safe one.
  explicit Archive(std::string path);
  ~Archive();
  Archive(Archive&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Names of all files, without the archive's own folder.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool has(const std::string& name) const;
  /// The content of a file. Throws UserError where it is missing or does not match its checksum.
  [[nodiscard]] std::string text(const std::string& name);
  /// The same, as memory for tensors on the CPU.
  [[nodiscard]] c10::Storage bytes(const std::string& name);

 private:
  std::string path_;
  std::vector<std::string> names_;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
};

/// What an archive holds.
enum class ArchiveKind : uint8_t {
  exported,  ///< torch.export.save
  script,    ///< torch.jit.save
  pickle,    ///< torch.save
  other,
};
[[nodiscard]] ArchiveKind kind_of(const Archive& archive);

}  // namespace sinter::frontend
