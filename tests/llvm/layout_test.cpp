#include <gtest/gtest.h>

#include "tests/llvm/harness.h"
#include "tests/llvm/kernels.h"
#include "tests/llvm/values.h"

namespace sinter::test {
namespace {

using ir::DType;
using kernel::Slot;

/// With sizes in the text, and with sizes as parameters.
void expect_agreement(kernel::Kernel kernel, Tolerance tolerance = {}) {
  std::vector<Buffer> params = make_params(kernel);
  std::mt19937_64 random(11);
  for (Buffer& buffer : params) fill(buffer, random, {.special = false});
  for (const int width : host_widths()) {
    for (const bool generic : {false, true}) {
      kernel.generic_sizes = generic;
      ASSERT_EQ(compare_with_reference(kernel, params, width, tolerance), "");
    }
  }
}

/// Lengths around one vector and one step of the main loop, at every width.
TEST(Layouts, every_length_of_tail_is_written_and_nothing_behind_it) {
  for (const int64_t numel : {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 191, 193, 260}) {
    KernelBuilder b("fused_neg", {numel});
    b.output(DType::f32, b.op("neg", {b.input(DType::f32, {1})}, DType::f32), {1});
    expect_agreement(b.kernel());
  }
}

TEST(Layouts, a_bias_repeats_over_rows) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t channels : {1, 3, 16, 33, 64, 200}) expect_agreement(add_bias_relu(19, channels, dtype));
  }
}

TEST(Layouts, a_transposed_operand_is_read_across_rows) {
  for (const int64_t rows : {1, 7, 64}) {
    for (const int64_t columns : {1, 5, 65}) expect_agreement(transposed_add(rows, columns));
  }
}

/// Rows run in blocks; ranges that meet inside one, and dims that blocks do not divide.
TEST(Layouts, a_transposed_operand_is_read_in_blocks_of_rows) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i8}) {
    KernelBuilder b("fused_permute", {3, 70, 75});
    const Slot x = b.input(dtype, {70 * 75, 1, 70});
    const Slot y = b.input(dtype, {0, 1, 0});
    const Slot z = b.input(dtype, {75, 0, 1});
    b.output(dtype, x, {70 * 75, 75, 1});
    b.output(dtype, y, {70 * 75, 1, 70});
    b.output(dtype, z, {70 * 75, 75, 1});
    expect_agreement(b.kernel());
  }
}

TEST(Layouts, a_value_per_channel_is_computed_once_a_row) {
  KernelBuilder b("fused_norm", {2, 5, 49});
  const Slot x = b.input(DType::f32, {245, 49, 1});
  const Slot variance = b.input(DType::f32, {0, 1, 0});
  const Slot scale = b.op("sqrt", {b.op("abs", {variance}, DType::f32)}, DType::f32);
  b.output(DType::f32, b.op("mul", {x, scale}, DType::f32), {245, 49, 1});
  expect_agreement(b.kernel());
}

TEST(Layouts, outputs_may_be_strided_and_several) {
  KernelBuilder b("fused_two", {6, 35});
  const Slot x = b.input(DType::f32, {35, 1});
  b.output(DType::f32, b.op("neg", {x}, DType::f32), {35, 1});
  b.output(DType::f64, b.cast(x, DType::f64), {1, 6});
  b.output(DType::b8, b.op("lt", {x, b.number(0.0, DType::f32)}, DType::b8), {70, 2});
  expect_agreement(b.kernel());
}

TEST(Layouts, an_output_may_take_the_place_of_an_input) {
  KernelBuilder b("fused_in_place", {100});
  const Slot x = b.input(DType::f32, {1});
  b.output_in_place(DType::f32, b.op("add", {x, b.number(1.0, DType::f32)}, DType::f32), {1});
  const kernel::Kernel kernel = b.kernel();
  Buffer memory(DType::f32, 100);
  std::mt19937_64 random(5);
  fill(memory, random, {.special = false});
  Buffer want = memory;
  for (int64_t i = 0; i < 100; ++i) want.set(i, std::get<double>(memory.get(i)) + 1.0);
  const auto compiled = runtime::LlvmJit().compile(codegen::generate_llvm(kernel, {.vector_bits = 256}));
  const std::array<const void*, 2> pointers{memory.data(), memory.data()};
  (*compiled)(pointers.data(), 0, 100);
  EXPECT_EQ(memory, want);
}

TEST(Layouts, a_host_scalar_is_an_operand) {
  for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32, DType::u8, DType::b8}) {
    KernelBuilder b("fused_add_scalar", {50});
    const Slot x = b.input(dtype, {1});
    b.output(dtype, b.op("add", {x, b.host_scalar(dtype)}, dtype), {1});
    expect_agreement(b.kernel());
  }
}

/// x.reshape(7, 6).t().reshape(42) read by a loop over 42 points: element i is x[i % 7 * 6 + i / 7].
TEST(Layouts, a_reshape_that_does_not_follow_the_dims_is_read_by_division) {
  KernelBuilder b("fused_reshape", {3, 42});
  const Slot x = b.input(DType::f32, {42, 1});
  ir::Index index;
  index.affine = {.offset = 0, .strides = {42, 0}};
  const ir::Affine inner{.offset = 0, .strides = {0, 1}};
  index.terms.push_back({.scale = 6, .inner = inner, .divisor = 1, .modulus = 7});
  index.terms.push_back({.scale = 1, .inner = inner, .divisor = 7, .modulus = 0});
  b.output(DType::f32, b.op("add", {x, b.load(0, index)}, DType::f32), {42, 1});
  expect_agreement(b.kernel());
}

/// The whole nest in one quasi-affine index, over two dims.
TEST(Layouts, a_division_may_span_outer_dims) {
  KernelBuilder b("fused_span", {9, 40});
  const Slot x = b.input(DType::f32, {40, 1});
  ir::Index index;
  const ir::Affine inner{.offset = 4, .strides = {40, 1}};
  index.affine = {.offset = 0, .strides = {0, 0}};
  index.terms.push_back({.scale = 13, .inner = inner, .divisor = 14, .modulus = 0});
  b.output(DType::f32, b.op("mul", {x, b.load(0, index)}, DType::f32), {40, 1});
  const kernel::Kernel kernel = b.kernel();
  expect_agreement(kernel);
}

TEST(Layouts, mixed_widths_share_one_loop) {
  KernelBuilder b("fused_mixed", {77});
  const Slot x = b.cast(b.input(DType::u8, {1}), DType::f32);
  const Slot n = b.cast(b.input(DType::i64, {1}), DType::f64);
  const Slot scaled = b.op("div", {x, b.number(100.0, DType::f32)}, DType::f32);
  b.output(DType::f32, b.op("exp", {scaled}, DType::f32), {1});
  b.output(DType::f64, b.op("exp", {b.cast(scaled, DType::f64)}, DType::f64), {1});
  b.output(DType::f64, b.op("mul", {n, b.cast(scaled, DType::f64)}, DType::f64), {1});
  expect_agreement(b.kernel(), {.ulps = 4});
}

}  // namespace
}  // namespace sinter::test
