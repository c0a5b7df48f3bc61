#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What can be seen from outside after a call, as data, so that two runs of a program can be compared.
namespace sinter::test::hostile {

/// A tensor somebody outside the callable holds after a call, and what to call it.
struct Held {
  std::string label;  ///< "argument 0", "state fc.weight", "result 1"
  at::Tensor tensor;
};

/// Everything seen after one call.
struct Observation {
  std::string label;
  std::string facts;         ///< compared as text: types, strides, flags, who shares memory with whom, errors
  std::vector<Held> values;  ///< copies on the CPU, compared as numbers
};

/// Adds metadata, sharing and copies of these tensors, and of their gradients, to an observation. Draws nothing, keeps
/// no reference to the tensors, and runs the same under every mode of LibTorch.
void observe(Observation& into, const std::vector<Held>& tensors);

/// A number that a program gave back, as a tensor of the dtype it was read from: f32 where that holds it, else f64.
[[nodiscard]] at::Tensor as_read(double number);

/// Bytes as text: what is not printable as \xHH.
[[nodiscard]] std::string printable(std::string_view bytes);

/// How equal numbers must be.
enum class Numbers {
  rounded,  ///< integers exactly; floating point within a few roundings of its dtype, nan and infinity in the same
            ///< places
  exact,    ///< bit by bit, up to the payload of nan
};

/// The first difference between the observations of two runs; nothing when they are equal.
[[nodiscard]] std::optional<std::string> difference(const std::vector<Observation>& eager,
                                                    const std::vector<Observation>& compiled, Numbers numbers);

}  // namespace sinter::test::hostile
