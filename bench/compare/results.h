#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

/// Result files of the benchmark and of its peers: read, checked, joined and shown. No LibTorch: files are enough.
namespace sinter::bench {

using Json = nlohmann::json;

/// One line of a result file (docs/benchmarking.md); what a contender measured for one model and input.
struct Row {
  std::string model;   ///< with its settings and how it is trained: "vit_b16 depth=2 train=sgd amp=f16"
  std::string device;  ///< "cpu", "cuda:0"
  std::string dtype;
  std::string shape;  ///< "f16[1,3,224,224], i64[8]"
  std::string mode;   ///< "reduce-overhead freeze numerics=eager"; a peer's begins with its name
  std::string peer;   ///< who measured; empty: Sinter
  double eager_ms = 0;
  double steady_ms = 0;
  std::optional<double> cold_s, warm_s, eager_cold_s;
  std::vector<double> later_calls_s;  ///< the second call and those after it that were timed one by one
  std::optional<double> latency_ms, eager_latency_ms;
  std::optional<double> device_bytes, eager_device_bytes;        ///< by the driver's count; older files: the next
  std::optional<double> allocated_bytes, eager_allocated_bytes;  ///< at most, by LibTorch's allocator
  std::optional<double> reserved_bytes, eager_reserved_bytes;    ///< at most, by LibTorch's allocator
  std::optional<double> kernels, eager_kernels;
  std::optional<double> max_error, eager_max_error;
  std::optional<double> break_even_calls;
  bool trains = false;                               ///< a call is a training step
  std::optional<double> unsynchronised_ms;           ///< a call that is not waited for
  std::optional<double> device_ms, eager_device_ms;  ///< all kernels of a call, where they were listed
  std::optional<double> loss_difference;             ///< from eager's, the largest of several steps
  Json source;                                       ///< all fields, as they stood in the file
};

/// The rows of one contender in one file.
struct Results {
  std::string peer;  ///< empty: Sinter
  std::string file;
  Json environment;  ///< versions, device and flags; an empty object where the file says nothing
  std::vector<Row> rows;
};

/// Checks a document and gives one Results for each contender in it, in the order of their first rows. `file` stands
/// in messages. Throws UserError naming the file, the row and the field that is missing or of the wrong type.
[[nodiscard]] std::vector<Results> parse_results(const Json& document, const std::string& file);

/// Reads a file of the benchmark's own rows. Throws UserError as parse_results does, also for a file that cannot be
/// read, is no JSON or is nested too deep.
[[nodiscard]] std::vector<Results> read_results(const std::string& path);

/// Reads a peer's file. Sinter's own rows in it are a peer too (an older result, say), named by the file.
[[nodiscard]] std::vector<Results> read_peer(const std::string& path);

}  // namespace sinter::bench
