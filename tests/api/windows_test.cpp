#include <ATen/ATen.h>

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "where.h"

/// Pools and depthwise convolutions, which kernels for CUDA compute, beside eager.
namespace sinter::test {
namespace {

using at::Tensor;

class Windows : public OnDevice {
 protected:
  [[nodiscard]] Options options() const { return unlimited({.mode = GetParam().mode, .strict = true}); }
  [[nodiscard]] Tensor random(at::IntArrayRef sizes, at::ScalarType dtype, at::MemoryFormat format) const {
    return at::randn(sizes, at::TensorOptions(GetParam().device)).to(dtype).contiguous(format);
  }

  using Upsampling = std::function<Tensor(const Tensor&, const Tensor&)>;
  /// On images of 28x28, and on what these become, in both layouts.
  void expect_eagers_images(std::span<const Upsampling> ups) const;
};

constexpr int64_t channels = 32;

/// An image, a weight of `taps` x `taps` for each channel, a bias.
struct Program {
  const char* name;
  int64_t taps;
  std::function<Tensor(const Tensor& x, const Tensor& w, const Tensor& b)> of;
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all{
      {"max 3x3", 1, [](auto& x, auto&, auto&) { return at::relu(at::max_pool2d(x, 3, 2, 1)); }},
      {"max 2x2", 1, [](auto& x, auto&, auto&) { return at::max_pool2d(at::relu(x), 2); }},
      {"max dilated", 1, [](auto& x, auto&, auto&) { return at::max_pool2d(x, {3, 2}, 1, {1, 0}, 2); }},
      {"max ceil", 1, [](auto& x, auto&, auto&) { return at::max_pool2d(x, 3, 2, 0, 1, true); }},
      {"average 3x3", 1, [](auto& x, auto&, auto&) { return at::avg_pool2d(x, 3, 1, 1) * 2; }},
      {"average 2x2", 1, [](auto& x, auto&, auto&) { return at::avg_pool2d(x, 2); }},
      {"average without padding", 1, [](auto& x, auto&, auto&) { return at::avg_pool2d(x, 3, 2, 1, false, false); }},
      {"adaptive", 1, [](auto& x, auto&, auto&) { return at::adaptive_avg_pool2d(x, {7, 7}); }},
      {"depthwise 3x3", 3, [](auto& x, auto& w, auto& b) { return at::silu(at::conv2d(x, w, b, 1, 1, 1, channels)); }},
      {"depthwise 3x3 stride 2", 3,
       [](auto& x, auto& w, auto& b) { return at::hardswish(at::conv2d(x, w, b, 2, 1, 1, channels)); }},
      {"depthwise 3x3 dilated", 3, [](auto& x, auto& w, auto&) { return at::conv2d(x, w, {}, 1, 2, 2, channels); }},
      {"depthwise 5x5 behind an activation", 5,
       [](auto& x, auto& w, auto& b) { return at::conv2d(at::gelu(x), w, b, 1, 2, 1, channels) + x; }},
      {"depthwise 7x7", 7, [](auto& x, auto& w, auto& b) { return at::conv2d(x, w, b, 1, 3, 1, channels); }},
  };
  return all;
}

double tolerance_of(at::ScalarType dtype) { return dtype == at::kBFloat16 ? 3e-2 : dtype == at::kHalf ? 4e-3 : 2e-5; }

void Windows::expect_eagers_images(std::span<const Upsampling> ups) const {
  for (const auto dtype : {at::kFloat, at::kHalf}) {
    for (const auto format : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::Contiguous}) {
      for (const auto& up : ups) {
        const auto fast = compile(up, options());
        for (int call = 0; call < 4; ++call) {
          const Tensor x = random({3, channels, 28, 28}, dtype, format);
          const Tensor y = random({3, channels, 56, 84}, dtype, format);
          const auto outcome = same(fast(x, y), up(x, y), tolerance_of(dtype));
          ASSERT_TRUE(outcome) << &up - ups.data() << " " << dtype << " " << format << ": " << outcome.message() << "\n"
                               << fast.report();
        }
        EXPECT_GT(fast.stats().replayed, 0) << fast.report();
      }
    }
  }
}

TEST_P(Windows, give_eagers_results) {
  const FullPrecision exact;
  for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const auto format : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::Contiguous}) {
      for (const Program& program : programs()) {
        const Tensor w = random({channels, 1, program.taps, program.taps}, dtype, at::MemoryFormat::Contiguous) / 4;
        const Tensor b = random({channels}, dtype, at::MemoryFormat::Contiguous);
        const auto fast = compile([&](const Tensor& x) { return program.of(x, w, b); }, options());
        for (int call = 0; call < 3; ++call) {
          const Tensor x = random({3, channels, 28, 28}, dtype, format);
          const auto outcome = same(fast(x), program.of(x, w, b), tolerance_of(dtype));
          ASSERT_TRUE(outcome) << program.name << " " << dtype << " " << format << ": " << outcome.message() << "\n"
                               << fast.report();
        }
        EXPECT_GT(fast.stats().replayed, 0) << program.name << "\n" << fast.report();
      }
    }
  }
}

/// Of an image, and of one pixel for each channel.
TEST_P(Windows, of_neighbours_are_weighed) {
  const auto bilinear = [](const Tensor& x, at::IntArrayRef sizes) { return at::upsample_bilinear2d(x, sizes, false); };
  const Upsampling ups[] = {
      [&](const Tensor& x, const Tensor& y) { return bilinear(at::gelu(x), {56, 84}) + y; },
      [&](const Tensor& x, const Tensor& y) { return at::cat({bilinear(x * 2, {56, 84}), y}, 1).relu(); },
      [&](const Tensor& x, const Tensor& y) { return bilinear(x.mean({2, 3}, /*keepdim=*/true), {56, 84}) * y; },
      [&](const Tensor& x, const Tensor&) { return bilinear(x.slice(1, 1, 6), {28 * 7, 28 * 16}); },
      [&](const Tensor& x, const Tensor& y) { return bilinear(x, {28, 84}).mean(2) - y.mean(2); },
      [&](const Tensor& x, const Tensor& y) { return bilinear(x, {56, 84}).softmax(1) * y; },
  };
  EXPECT_NO_FATAL_FAILURE(expect_eagers_images(ups));
}

/// Elements move and none is computed.
TEST_P(Windows, of_one_element_repeat_it) {
  const Upsampling ups[] = {
      [](const Tensor& x, const Tensor& y) { return at::upsample_nearest2d(at::relu(x), {56, 84}) + y; },
      [](const Tensor& x, const Tensor& y) { return at::cat({at::upsample_nearest2d(x * 2, {56, 84}), y}, 1); },
      [](const Tensor& x, const Tensor& y) { return at::_upsample_nearest_exact2d(x, {56, 84}) * y; },
      [](const Tensor& x, const Tensor& y) { return at::upsample_nearest2d(x, {56, 84}, 2.0, 3.0) - y; },
      [](const Tensor& x, const Tensor& y) { return at::upsample_nearest2d(x, {40, 30}) + y.mean(); },
  };
  EXPECT_NO_FATAL_FAILURE(expect_eagers_images(ups));
}

TEST_P(Windows, of_a_max_pool_pass_nan_and_minus_infinity_on) {
  const auto pool = [](const Tensor& x) { return at::max_pool2d(x, 3, 2, 1); };
  const auto fast = compile(pool, options());
  for (int call = 0; call < 3; ++call) {
    Tensor x = random({2, channels, 28, 28}, at::kHalf, at::MemoryFormat::ChannelsLast);
    x.slice(2, 14).fill_(-std::numeric_limits<double>::infinity());
    x.select(3, 5).fill_(std::numeric_limits<double>::quiet_NaN());
    ASSERT_TRUE(at::allclose(fast(x), pool(x), 0, 0, true)) << fast.report();
  }
}

/// A block of MobileNet: convolutions of one tap around a depthwise one.
TEST_P(Windows, between_convolutions_keep_their_layout) {
  const FullPrecision exact;
  for (const auto dtype : {at::kFloat, at::kHalf}) {
    const Tensor up = random({channels, 8, 1, 1}, dtype, at::MemoryFormat::Contiguous) / 4;
    const Tensor w = random({channels, 1, 3, 3}, dtype, at::MemoryFormat::Contiguous) / 4;
    const Tensor down = random({8, channels, 1, 1}, dtype, at::MemoryFormat::Contiguous) / 4;
    const auto block = [&](const Tensor& x) {
      const Tensor wide = at::relu(at::conv2d(x, up));
      return at::conv2d(at::relu(at::conv2d(wide, w, {}, 1, 1, 1, channels)), down) + x;
    };
    const auto fast = compile(block, options());
    for (int call = 0; call < 3; ++call) {
      const Tensor x = random({2, 8, 28, 28}, dtype, at::MemoryFormat::Contiguous);
      const auto outcome = same(fast(x), block(x), dtype == at::kHalf ? 2e-2 : 1e-4);
      ASSERT_TRUE(outcome) << dtype << ": " << outcome.message() << "\n" << fast.report();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Where, Windows, everywhere(), name_of);

}  // namespace
}  // namespace sinter::test
