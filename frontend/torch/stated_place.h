#pragma once

#include <optional>
#include <string>

namespace sinter::frontend {

/// Where an operator of a model file stands, as the file says it: native stacks lead into the file's reader only.
struct StatedPlace {
  std::string module;  ///< "layer1.0.bn1"
  std::string line;    ///< "resnet.py:58"
};

/// States the place of the operators called on this thread while it lives. The place must outlive it.
class PlaceGuard {
 public:
  explicit PlaceGuard(const StatedPlace& place);
  ~PlaceGuard();
  PlaceGuard(const PlaceGuard&) = delete;
  PlaceGuard& operator=(const PlaceGuard&) = delete;

 private:
  const StatedPlace* before_;
};

/// The place that holds on this thread: a guard's, else that of the TorchScript function which is running, else none.
[[nodiscard]] std::optional<StatedPlace> stated_place();

}  // namespace sinter::frontend
