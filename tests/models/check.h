#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <sinter/sinter.h>

#include <string>
#include <vector>

#include "bench/models/model.h"

namespace sinter::test {

using Inputs = std::vector<at::Tensor>;
using Forward = std::function<at::Tensor(const Inputs&)>;

/// A built-in model on a device, with the same parameters in every run, and its twin in float64.
struct Subject {
  Subject(const std::string& name, at::Device device, at::ScalarType dtype, const bench::Settings& settings = {});

  /// Standard normal values, or integers where the model takes some; the same for every subject and seed.
  [[nodiscard]] Inputs draw(const std::vector<int64_t>& sizes, uint64_t seed = 1) const;
  [[nodiscard]] Compiled<Forward> compile(Options options) const;
  /// Compiled against eager on one input: the same metadata, and no further from float64 than bench::compare allows.
  [[nodiscard]] ::testing::AssertionResult agrees(const Compiled<Forward>& fast, const Inputs& inputs) const;
  /// float64's results of the parameters as they are now.
  [[nodiscard]] at::Tensor exact(const Inputs& inputs) const;

  const bench::ModelRow& row;
  bench::Model model;
  at::Device device;
  at::ScalarType dtype;
};

/// What one call of a compiled function starts.
struct Work {
  int64_t launches = 0;
  int64_t kernels = 0;  ///< distinct ones
  int64_t calls = 0;    ///< of the library
  bool operator==(const Work&) const = default;
};
void PrintTo(const Work& work, std::ostream* out);
[[nodiscard]] Work work_of(const EntryReport& entry);

/// What one call starts once it is compiled, after two calls.
[[nodiscard]] Work work_of(const Compiled<Forward>& fast, const Subject& subject, const std::vector<int64_t>& sizes);

/// Calls a model often enough that it is recorded and replayed. Expects eager's results from every call, one entry
/// without breaks, replays from the second call on, and this work a call.
void expect_compiled(const Subject& subject, const std::vector<int64_t>& sizes, const Options& options,
                     const Work& work);

/// Options under which the work on the CPU is the same on every processor: which library multiplies fastest, and takes
/// activations with it, is measured where it is used.
[[nodiscard]] inline Options counted(Mode mode = Mode::Default) { return {.mode = mode, .numerics = Numerics::eager}; }

}  // namespace sinter::test
