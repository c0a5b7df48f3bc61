#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace sinter {

/// What SINTER_DUMP asks to see: a list of items separated by commas. `SINTER_DUMP=help` prints the table of items.
/// Dumps go to standard error, or to one file each under SINTER_DUMP_DIR. Immutable, so free to share.
class Dump {
 public:
  /// Parses the two variables' values; unknown items are kept for `unknown`.
  Dump(std::string_view items, std::filesystem::path folder);

  /// The process's own setting, read from the environment once.
  [[nodiscard]] static const Dump& environment();

  /// True when `item` ("after:fuse", "cuda", "plan"), or "all", was asked for.
  [[nodiscard]] bool wants(std::string_view item) const;
  /// Writes `text` under a heading, when it is wanted. `stem` names the file: "mlp", "fused_add_relu".
  void write(std::string_view item, std::string_view stem, std::string_view text) const;

  /// The table of items, as `SINTER_DUMP=help` prints it.
  [[nodiscard]] static std::string help();

 private:
  std::set<std::string, std::less<>> items_;
  std::filesystem::path folder_;
};

/// Saves text that reproduces a failure, under SINTER_DUMP_DIR or the system's folder for temporary files, as
/// "sinter-STEM-N.EXTENSION". Returns the path, or nothing when it could not be written: it never throws.
[[nodiscard]] std::string save_artifact(std::string_view stem, std::string_view extension, std::string_view text);

}  // namespace sinter
