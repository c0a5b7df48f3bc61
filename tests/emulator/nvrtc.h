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
  /// Nothing where the library is not found.
  [[nodiscard]] static std::optional<Nvrtc> open();

  /// Compiles all kernels in one program to machine code; names need not differ. The compiler's log when it fails,
  /// empty when it succeeds.
  [[nodiscard]] std::string compile(std::span<const KernelSource> kernels, const char* architecture) const;

 private:
  struct Functions;
  std::shared_ptr<const Functions> functions_;
};

}  // namespace sinter::test
