#pragma once

#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <memory>

namespace sinter::frontend {

/// What `register_hook` put on the gradient of a tensor at one time. LibTorch keeps all hooks of a tensor in one list,
/// which outlives each of them: registering one makes it longer, removing one leaves an empty place.
class Hooks {
 public:
  Hooks() = default;
  [[nodiscard]] static Hooks of(const c10::TensorImpl& tensor);

  /// How many there are.
  [[nodiscard]] size_t count() const { return count_; }
  /// True when they are the same functions, not only as many.
  bool operator==(const Hooks& other) const;

 private:
  std::weak_ptr<const torch::autograd::hooks_list> list_;
  size_t length_ = 0;
  size_t count_ = 0;
};

/// True where forward-mode differentiation has put a tangent beside the data.
[[nodiscard]] bool has_tangent(const c10::TensorImpl& tensor);

}  // namespace sinter::frontend
