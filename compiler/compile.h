#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "compiler/ir/graph.h"
#include "compiler/plan.h"
#include "compiler/support/compile_observer.h"
#include "compiler/support/device_info.h"
#include "compiler/support/options.h"
#include "compiler/support/report.h"

namespace sinter {

struct CompileOptions {
  Numerics numerics = Numerics::fast;
  bool freeze = false;
  bool generic_sizes = false;    ///< kernels take sizes as parameters, so that other sizes mostly have the same text
  double measuring_seconds = 0;  ///< that choosing between library calls may take when the plan first runs
  DeviceInfo device;
  /// Known alignment, in bytes, of each input's and state's address, by index; as captured where absent.
  std::vector<int64_t> input_alignment;
  std::vector<int64_t> state_alignment;
  CompileObserver* observer = nullptr;  ///< told of every phase; null: nobody
};

/// Captured graph to plan: runs the pipeline, lowers fused regions, generates their text. Adds a phase per pass. Throws
/// InternalError naming the pass, with the IR that went in saved to a file.
[[nodiscard]] Plan compile(ir::Graph graph, const CompileOptions& options, EntryReport& report);

}  // namespace sinter
