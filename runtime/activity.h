#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// What GPUs did and what the host asked of them, through CUPTI's activity interface. runtime/cuda/ answers; where
/// LibTorch was built without CUDA, runtime/without_cuda/ does, and nothing can be recorded.
namespace sinter::runtime {

/// Something that ran on a GPU, or a call of CUDA's API. Times are nanoseconds of CUPTI's clock.
struct Activity {
  enum class Kind : uint8_t { kernel, copy, fill, api_call };
  Kind kind = Kind::kernel;
  std::string name;  ///< mangled as the driver reports it; "memcpy host to device", "memset"; "cudaStreamSynchronize"
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t stream = 0;
  uint32_t launch = 0;             ///< number of the API call that asked for it
  std::optional<uint64_t> caller;  ///< what push_activity_caller said when that call was made
  bool in_graph = false;           ///< a node of a CUDA Graph, whose caller is that of the graph
  bool pageable = false;           ///< a copy from or to memory of the host that is not pinned
};

struct ActivityTrace {
  std::vector<Activity> activities;  ///< work of a GPU in order of completion, API calls in between
  uint64_t begun = 0;                ///< CUPTI's clock when recording began
};

enum class ActivityDetail : uint8_t {
  kernels,  ///< kernels alone
  callers,  ///< copies, fills and API calls too, and who called
};

/// What was recorded, or in one line why nothing could be; `call` did not run then.
struct RecordedActivities {
  std::optional<ActivityTrace> trace;
  std::string problem;
};

/// Records while `call` runs, which returns when no GPU has work left. Nodes of CUDA Graphs are seen one by one. Lets
/// exceptions of `call` through. Not thread-safe: one recording at a time in a process.
[[nodiscard]] RecordedActivities record_activities(ActivityDetail detail, const std::function<void()>& call);

/// Calls of CUDA's API that this thread makes belong to `caller` until the pop; they nest.
void push_activity_caller(uint64_t caller);
void pop_activity_caller();

}  // namespace sinter::runtime
