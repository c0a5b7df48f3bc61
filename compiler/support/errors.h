#pragma once

#include <stdexcept>
#include <string>

namespace sinter {

/// Misuse: a wrong option, input or file. One line, lower case: the thing, what is wrong, what to do.
/// The command exits with 2 on it.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A bug in Sinter, or a tool under it that failed (NVRTC, LLVM). Names the pass or phase and, where there is one,
/// the file that reproduces it. Caught at the edge of `sinter::compile`: kept in the report while the call runs
/// through ATen, thrown under `strict`.
class InternalError : public std::runtime_error {
 public:
  InternalError(std::string where, const std::string& what, std::string artifact = {})
      : std::runtime_error(where + ": " + what), where_(std::move(where)), artifact_(std::move(artifact)) {}

  /// The pass or phase that failed, e.g. "fuse" or "nvrtc".
  [[nodiscard]] const std::string& where() const { return where_; }
  /// Path of the saved IR or kernel source; empty when nothing could be saved.
  [[nodiscard]] const std::string& artifact() const { return artifact_; }

 private:
  std::string where_;
  std::string artifact_;
};

/// Why a part of a program runs as eager runs it. The third outcome beside the two errors: data, never thrown.
enum class BreakCode {
  unsupported_op,  ///< an op that no segment can hold (sparse, quantized or meta tensors, hidden effects)
  compile_failed,  ///< an InternalError; the record carries it
};

/// Short kebab-case name of a code, as reports print it ("unsupported-op").
[[nodiscard]] const char* name(BreakCode code);

struct GraphBreak {
  BreakCode code{};
  std::string op;      ///< ATen name, e.g. "aten::_local_scalar_dense"; empty where no op is to blame
  std::string where;   ///< module path and source place, e.g. "head.score  detect.cpp:88"
  std::string reason;  ///< one sentence
  std::string hint;    ///< what to change
};

}  // namespace sinter
