#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/plan.h"
#include "compiler/support/compile_observer.h"
#include "runtime/disk_cache.h"
#include "runtime/kernel_cache.h"
#include "runtime/provenance.h"

namespace sinter::runtime {

/// What the driver loads: the machine code of one or several kernels for one architecture.
using CubinCode = std::vector<char>;

/// Where the machine code of one kernel is; the kernel keeps its name there.
struct Cubin {
  std::shared_ptr<const CubinCode> code;
  Provenance provenance;
};

/// Texts of kernels to machine code, once for equal texts: from the cache on disk, or else built with NVRTC and stored
/// there. Needs no GPU. Thread-safe.
///
/// NVRTC reads its programs one after the other, however many threads there are, and takes longer to begin one than to
/// read a kernel (7 and 3 ms on a host with 16 cores, where 50 ms of its work run beside those of other threads). So
/// kernels are built several to a program where there are more of them than cores.
class CubinBuilder {
 public:
  /// `cores`: threads that build at the same time.
  CubinBuilder(DiskCache& disk, size_t cores) : disk_(disk), cores_(cores) {}

  /// Told, on the thread that did it, that a kernel was come by between these times.
  using Told = std::function<void(size_t kernel, const Cached<Cubin>&, CompileObserver::Time, CompileObserver::Time)>;

  /// The code of each source for sm_`sm`. Throws InternalError with the source and the compiler's log saved, for the
  /// first source that does not compile; the others are built all the same.
  [[nodiscard]] std::vector<Cached<Cubin>> build(std::span<const KernelSource* const> sources, int sm,
                                                 const Told& told);

  /// That of the process, with its cache on disk and as many threads as there are cores. Never destroyed: a kernel may
  /// be built on any thread until the process ends.
  [[nodiscard]] static CubinBuilder& process();

 private:
  class Build;

  [[nodiscard]] std::shared_ptr<const CubinCode> code_of_program(const std::string& text, int sm);

  DiskCache& disk_;
  const size_t cores_;
  BuildCache<Cubin> built_;
  std::mutex mutex_;                                                          ///< of what follows
  std::unordered_map<std::string, std::weak_ptr<const CubinCode>> programs_;  ///< read from disk, by text and target
};

/// Indices of kernels, by their names, in groups to be compiled together: no more than `most` and no name twice in one.
[[nodiscard]] std::vector<std::vector<size_t>> group_kernels(std::span<const std::string> names, size_t most);

}  // namespace sinter::runtime
