#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/llvm/harness.h"
#include "tests/llvm/kernels.h"
#include "tests/llvm/values.h"

namespace sinter::test {
namespace {

using ir::DType;

constexpr std::array dtypes{DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                            DType::i32, DType::i16, DType::i8,  DType::u8,   DType::b8};

kernel::Kernel cast_kernel(DType from, DType to) {
  KernelBuilder b(fmt::format("cast_{}_{}", ir::name(from), ir::name(to)), {301});
  b.output(to, b.cast(b.input(from, {1}), to), {1});
  return b.kernel();
}

TEST(Casts, between_all_dtypes_agree_with_the_reference) {
  for (const int width : host_widths()) {
    for (const DType from : dtypes) {
      for (const DType to : dtypes) {
        const kernel::Kernel kernel = cast_kernel(from, to);
        std::vector<Buffer> params = make_params(kernel);
        std::mt19937_64 random(3);
        // What a float out of an integer's range becomes is not specified.
        fill(params[0], random, {.special = !ir::is_float(from) || ir::is_float(to) || to == DType::b8});
        ASSERT_EQ(compare_with_reference(kernel, params, width), "");
      }
    }
  }
}

/// Every half value, and points between each and the next, become the nearest half, ties to even.
TEST(Casts, to_halves_round_to_nearest_even) {
  for (const DType half : {DType::f16, DType::bf16}) {
    KernelBuilder b("round", {3 * 65536});
    b.output(half, b.cast(b.input(DType::f32, {1}), half), {1});
    std::vector<Buffer> params = make_params(b.kernel());
    const Buffer every = [&] {
      Buffer all(half, 65536);
      for (uint32_t bits = 0; bits < 65536; ++bits)
        static_cast<uint16_t*>(all.data())[bits] = static_cast<uint16_t>(bits);
      return all;
    }();
    for (int64_t i = 0; i < 65536; ++i) {
      const double low = std::get<double>(every.get(i));
      const double high = std::get<double>(every.get(std::min<int64_t>(i + 1, 65535)));
      params[0].set(3 * i, low);
      params[0].set(3 * i + 1, (low + high) / 2);
      params[0].set(3 * i + 2, low + (high - low) * 0.501);
    }
    ASSERT_EQ(compare_with_reference(b.kernel(), params, runtime::host_vector_bits()), "");
  }
}

TEST(Casts, through_a_half_in_the_middle_of_a_kernel_keep_its_rounding) {
  for (const DType half : {DType::f16, DType::bf16}) {
    KernelBuilder b("round_trip", {100});
    const auto rounded = b.cast(b.cast(b.input(DType::f32, {1}), half), DType::f32);
    b.output(DType::f32, rounded, {1});
    std::vector<Buffer> params = make_params(b.kernel());
    std::mt19937_64 random(4);
    fill(params[0], random);
    ASSERT_EQ(compare_with_reference(b.kernel(), params, runtime::host_vector_bits()), "");
  }
}

}  // namespace
}  // namespace sinter::test
