#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "compiler/plan.h"

namespace sinter::test {

/// NVRTC opened at run time from the LibTorch folder that SINTER_LIBTORCH names, now or when the tests were configured.
/// Needs no GPU.
class Nvrtc {
 public:
  /// Nothing where no folder is named. Throws std::runtime_error where NVRTC is not in it.
  [[nodiscard]] static std::optional<Nvrtc> open();

  struct Compiled {
    std::string log;  ///< empty when it succeeded
    std::string ptx;  ///< empty when it failed, or when the architecture is a real one (sm_90, not compute_90)
  };
  /// Compiles all kernels in one program, with the options that the text is written for; names need not differ.
  [[nodiscard]] Compiled compile(std::span<const KernelSource> kernels, const char* architecture) const;

 private:
  struct Functions;
  std::shared_ptr<const Functions> functions_;
};

}  // namespace sinter::test
