#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sinter/sinter.h>

#include <limits>

/// What tests of Replay::checked share.
namespace sinter::test {

/// Everything is recorded and compiled, whatever it costs; failures of Sinter itself are thrown.
inline Options checked() {
  Options options;
  options.replay = Replay::checked;
  options.strict = true;
  options.compile_budget = std::numeric_limits<double>::infinity();
  return options;
}

/// Layout, dtype and, within the tolerance, the numbers; NaN equals NaN.
inline ::testing::AssertionResult same(const at::Tensor& now, const at::Tensor& wanted, double tolerance = 1e-5) {
  if (now.sizes() != wanted.sizes() || now.strides() != wanted.strides())
    return ::testing::AssertionFailure() << "layout";
  if (now.scalar_type() != wanted.scalar_type()) return ::testing::AssertionFailure() << "dtype";
  if (at::allclose(now, wanted, tolerance, tolerance, /*equal_nan=*/true)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "largest difference " << (now - wanted).abs().max().item<double>();
}

class Checked : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(7); }
};

}  // namespace sinter::test
