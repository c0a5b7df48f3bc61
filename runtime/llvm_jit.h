#pragma once

#include <cstdint>
#include <memory>

#include "compiler/plan.h"
#include "runtime/provenance.h"

namespace sinter::runtime {

/// A CPU kernel's machine code; see generate_llvm for its arguments. `begin` and `end` count KernelSource::numel.
using CpuKernel = void (*)(const void* const* params, int64_t begin, int64_t end);

/// Machine code that lives as long as this object.
class CompiledCpuKernel {
 public:
  CompiledCpuKernel(CpuKernel function, std::shared_ptr<const void> code, Provenance provenance)
      : entry_(function), code_(std::move(code)), provenance_(std::move(provenance)) {}
  [[nodiscard]] CpuKernel entry() const { return entry_; }
  [[nodiscard]] const Provenance& provenance() const { return provenance_; }
  void operator()(const void* const* params, int64_t begin, int64_t end) const { entry_(params, begin, end); }

 private:
  CpuKernel entry_;
  std::shared_ptr<const void> code_;
  Provenance provenance_;
};

/// Compiles LLVM IR text for the CPU it runs on, or finds what it compiles to in a cache on disk. Thread-safe; threads
/// compile in parallel. External functions are looked up in the process and in libtorch_cpu.so.
class LlvmJit {
 public:
  /// The cache outlives the compiler.
  explicit LlvmJit(DiskCache& cache = DiskCache::process());
  ~LlvmJit();
  LlvmJit(const LlvmJit&) = delete;
  LlvmJit& operator=(const LlvmJit&) = delete;

  /// Throws InternalError with LLVM's message and the path of the saved text when the text is not valid or calls what
  /// the process does not have. The kernel may outlive the compiler.
  [[nodiscard]] std::shared_ptr<const CompiledCpuKernel> compile(const KernelSource& source);

 private:
  struct Session;
  DiskCache& cache_;
  std::shared_ptr<Session> session_;
};

/// Width of this CPU's widest vector registers that generated code and ATen use: 512 (AVX-512 F, VL, BW, DQ),
/// 256 (AVX2 and FMA) or 128.
[[nodiscard]] int host_vector_bits();

}  // namespace sinter::runtime
