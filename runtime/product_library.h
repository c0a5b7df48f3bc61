#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/product.h"

/// cuBLASLt, where LibTorch has loaded it: products by pointers, with what follows them, and more than one way to
/// compute each. All functions are thread-safe and work on the calling thread's current device.
namespace sinter::runtime::product_library {

/// False where the library is not part of the process, or has another major version than its header had here.
[[nodiscard]] bool is_there();
/// "cuBLASLt 130200"
[[nodiscard]] std::string version();
/// What times hold for, beside the version: "NVIDIA H200, driver 13000".
[[nodiscard]] std::string target();

/// Ways to compute a problem, at most so many, what the library thinks best first; none where it has none.
[[nodiscard]] std::vector<ProductAlgorithm> algorithms(const ProductProblem& problem, int most);

/// Enqueues a product on a CUstream. `workspace` has the algorithm's bytes and is free again behind it. False where the
/// library refuses the algorithm; nothing has been enqueued then.
[[nodiscard]] bool run(const ProductProblem& problem, const ProductAlgorithm& algorithm,
                       const ProductAddresses& addresses, void* workspace, void* stream);

/// Measures what is enqueued on one CUstream.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  /// Microseconds that the device takes for what `call` enqueues: the median of several calls, each with caches that
  /// hold other data, as between the other kernels of a model. Waits for them. Infinity where `call` says that it has
  /// enqueued nothing. Throws InternalError where the device fails.
  [[nodiscard]] virtual double microseconds(const std::function<bool()>& call) = 0;
};
/// Null while the stream is being recorded, and where memory is missing.
[[nodiscard]] std::unique_ptr<Stopwatch> stopwatch(void* stream);

}  // namespace sinter::runtime::product_library
