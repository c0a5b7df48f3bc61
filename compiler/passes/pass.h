#pragma once

#include <cstdint>
#include <string_view>

#include "compiler/ir/graph.h"
#include "compiler/support/device_info.h"
#include "compiler/support/options.h"

namespace sinter::passes {

/// What a pass may ask about the compilation it is part of.
struct PassContext {
  DeviceInfo device;
  Numerics numerics = Numerics::fast;
  bool freeze = false;
  int64_t eager_peak_bytes = 0;  ///< memory a plan may use without asking for more than eager does; 0: unknown
  bool generic_sizes = false;    ///< kernels take sizes as parameters; further plans for other sizes come
  double measuring_seconds = 0;  ///< that measuring alternatives of library calls may take; 0: none is measured

  /// True where library calls on CUDA may be exchanged for others that round elsewhere.
  [[nodiscard]] bool fast_on_cuda() const { return device.backend == Backend::cuda && numerics == Numerics::fast; }
  /// The same on the CPU.
  [[nodiscard]] bool fast_on_cpu() const { return device.backend == Backend::llvm && numerics == Numerics::fast; }
};

/// What a pass did.
struct PassResult {
  int64_t changes = 0;  ///< rewrites made; 0 means that the graph is as it was
};

/// A pass rewrites a graph. Throws InternalError on what it cannot be given.
using PassFunction = PassResult (*)(ir::Graph&, const PassContext&);

}  // namespace sinter::passes
