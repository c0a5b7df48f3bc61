#include <gtest/gtest.h>

#include "compiler/codegen/cuda.h"
#include "tests/emulator/compare.h"
#include "tests/llvm/kernels.h"

/// How kernels of every layout read and write, and what their text looks like for it.
namespace sinter::test {
namespace {

using ir::DType;
using kernel::Kernel;
using kernel::Slot;

Case named(std::string name, Kernel kernel, Tolerance tolerance = {}) {
  return {.name = std::move(name), .kernel = std::move(kernel), .tolerance = tolerance};
}

std::string text_of(const Kernel& kernel, DeviceInfo device = test_device()) {
  return codegen::generate_cuda(kernel, device).text;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

Kernel negated(DType dtype, std::vector<int64_t> extents, std::vector<int64_t> strides, int64_t offset = 0) {
  KernelBuilder b("fused_neg", extents);
  const Slot x = b.input(dtype, std::move(strides), offset);
  b.output(dtype, b.op("neg", {x}, dtype), row_major(extents));
  return b.kernel();
}

TEST(Layouts, every_length_of_tail_is_written_and_nothing_behind_it) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f64, DType::f32, DType::i16, DType::i8}) {
    for (int64_t numel = 1; numel <= 36; ++numel) {
      cases.push_back(named("neg " + std::to_string(numel), negated(dtype, {numel}, {1})));
    }
    for (const int64_t numel : {2047, 2048, 4099}) cases.push_back(named("neg", negated(dtype, {numel}, {1})));
  }
  EXPECT_EQ(compare_all(cases), "");
}

TEST(Layouts, a_bias_repeats_over_rows) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t channels : {1, 3, 16, 33, 64, 200}) {
      cases.push_back(named("bias " + std::to_string(channels), add_bias_relu(19, channels, dtype)));
    }
  }
  EXPECT_EQ(compare_all(cases), "");
}

TEST(Layouts, a_transposed_operand_is_read_across_rows) {
  std::vector<Case> cases;
  for (const int64_t rows : {1, 7, 64}) {
    for (const int64_t columns : {1, 5, 64, 68}) cases.push_back(named("transposed", transposed_add(rows, columns)));
  }
  EXPECT_EQ(compare_all(cases), "");
}

TEST(Layouts, threads_in_tiles_reach_every_point_once) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f64, DType::f32, DType::i16, DType::i8}) {
    for (const int64_t rows : {2, 8, 12}) {
      KernelBuilder b("fused_permute", {3, rows, 40});
      const Slot x = b.input(dtype, {rows * 40, 1, rows});
      const Slot y = b.input(dtype, {rows * 40, 40, 1});
      b.output(dtype, b.op("add", {x, y}, dtype), {rows * 40, 40, 1});
      b.output(dtype, b.op("neg", {y}, dtype), {40, 120, 1});
      cases.push_back(named("permute", b.kernel()));
    }
  }
  EXPECT_FALSE(contains(text_of(cases.back().kernel), "__shared__"));
  EXPECT_EQ(compare_all(cases), "");
}

TEST(Layouts, what_lies_along_another_loop_goes_through_shared_memory_in_squares) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f64, DType::f16}) {
    for (const int64_t rows : {33, 64}) {
      for (const int64_t columns : {32, 45}) {
        KernelBuilder b("fused_transpose", {5, rows, columns});
        const Slot x = b.input(dtype, {rows * columns, 1, rows}, 3);
        const Slot y = b.input(dtype, {rows * columns, columns, 1});
        const Slot z = b.input(dtype, {0, 1, rows});
        const ir::DType computed = ir::is_half(dtype) ? DType::f32 : dtype;
        const auto wide = [&](Slot slot) { return ir::is_half(dtype) ? b.op("cast", {slot}, computed) : slot; };
        const Slot sum = b.op("add", {wide(x), wide(y)}, computed);
        const Slot all = b.op("add", {sum, wide(z)}, computed);
        const Slot stored = ir::is_half(dtype) ? b.op("cast", {all}, dtype) : all;
        b.output(dtype, stored, {rows * columns, columns, 1});
        cases.push_back(named("transpose", b.kernel()));
        cases.back().special = false;  // the sign of a sum of NaNs is the compiler's choice
      }
    }
  }
  EXPECT_TRUE(contains(text_of(cases.back().kernel), "square0[lane][other]")) << text_of(cases.back().kernel);
  EXPECT_EQ(compare_all(cases), "");
}

TEST(Layouts, neighbouring_threads_share_a_filter_that_is_laid_out_anew) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16}) {
    for (const int64_t taps : {3, 9, 14, 25, 49}) {
      for (const int64_t channels : {3, 40, 64}) {
        KernelBuilder b("fused_relay", {5, taps, channels});
        const Slot x = b.input(dtype, {channels * taps, 1, taps});
        b.output(dtype, x, {channels * taps, channels, 1});
        cases.push_back(named("relay", b.kernel()));
      }
    }
  }
  KernelBuilder b("fused_relay", {512, 9, 512});
  const Slot x = b.input(DType::f32, {4608, 1, 9});
  b.output(DType::f32, x, {4608, 512, 1});
  EXPECT_TRUE(contains(text_of(b.kernel()), "first % 9u")) << text_of(b.kernel());
  EXPECT_EQ(compare_all(cases), "");
}

TEST(Layouts, narrow_accesses_are_batched) {
  std::vector<Case> cases;
  for (const int64_t rows : {31, 32}) {
    KernelBuilder b("fused_transpose", {33, rows});
    const Slot x = b.input(DType::f32, {rows * 2, 2});
    b.output(DType::f32, b.op("neg", {x}, DType::f32), {1, 33});
    cases.push_back(named("transpose", b.kernel()));
  }
  EXPECT_TRUE(contains(text_of(cases.front().kernel), "x0[u]"));
  EXPECT_EQ(compare_all(cases), "");
}

TEST(Layouts, vectors_cross_rows_where_rows_are_odd) {
  KernelBuilder b("fused_bn", {4, 5, 49});
  const Slot x = b.input(DType::f32, {245, 49, 1});
  const Slot scale = b.input(DType::f32, {0, 1, 0});
  const Slot row = b.input(DType::f32, {0, 0, 1});
  const Slot one = b.input(DType::f32, {0, 0, 0});
  const Slot product = b.op("mul", {x, scale}, DType::f32);
  const Slot sum = b.op("add", {product, row}, DType::f32);
  b.output(DType::f32, b.op("sub", {sum, one}, DType::f32), {245, 49, 1});
  const Case test = named("bn", b.kernel());
  EXPECT_TRUE(contains(text_of(test.kernel), "load<pack<float, 4, 16>>"));
  EXPECT_EQ(compare_all({&test, 1}), "");
}

TEST(Layouts, outputs_may_be_strided_and_several) {
  KernelBuilder b("fused_two", {6, 36});
  const Slot x = b.input(DType::f32, {36, 1});
  b.output(DType::f32, b.op("neg", {x}, DType::f32), {36, 1});
  b.output(DType::f64, b.cast(x, DType::f64), {1, 6});
  b.output(DType::b8, b.op("lt", {x, b.number(0.0, DType::f32)}, DType::b8), {72, 2});
  const Case test = named("two", b.kernel());
  EXPECT_EQ(compare_all({&test, 1}), "");
}

TEST(Layouts, a_host_scalar_is_passed_by_value) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32, DType::u8, DType::b8}) {
    KernelBuilder b("fused_add_scalar", {50});
    const Slot x = b.input(dtype, {1});
    b.output(dtype, b.op("add", {x, b.host_scalar(dtype)}, dtype), {1});
    cases.push_back(named("scalar", b.kernel()));
  }
  EXPECT_EQ(compare_all(cases), "");
}

TEST(Layouts, a_reshape_that_does_not_follow_the_dims_is_read_by_division) {
  std::vector<Case> cases;
  for (const int64_t divisor : {1, 2, 4, 6, 8, 14}) {
    for (const int64_t modulus : {0, 3, 4, 8}) {
      KernelBuilder b("fused_reshape", {9, 40});
      const Slot x = b.input(DType::f32, {40, 1});
      ir::Index index{.affine = {.offset = 0, .strides = {0, 0}}, .terms = {}};
      index.terms.push_back(
          {.scale = 1, .inner = {.offset = 0, .strides = {40, 1}}, .divisor = divisor, .modulus = modulus});
      b.output(DType::f32, b.op("mul", {x, b.load(0, index)}, DType::f32), {40, 1});
      cases.push_back(
          named("divided by " + std::to_string(divisor) + " modulo " + std::to_string(modulus), b.kernel()));
    }
  }
  EXPECT_EQ(compare_all(cases), "");
}

TEST(Text, half_takes_eight_elements_and_float_four_in_16_bytes) {
  EXPECT_TRUE(contains(text_of(negated(DType::f32, {4096}, {1})), "pack<float, 4, 16>"));
  KernelBuilder b("fused_copy", {4096});
  b.output(DType::f16, b.input(DType::f16, {1}), {1});
  EXPECT_TRUE(contains(text_of(b.kernel()), "pack<f16, 8, 16>"));
}

TEST(Text, an_offset_or_an_alignment_narrows_the_access) {
  EXPECT_TRUE(contains(text_of(negated(DType::f32, {64, 64}, {68, 1}, 2)), "load<pack<float, 4, 8>>"));
  Kernel kernel = negated(DType::f32, {4096}, {1});
  kernel.params[0].alignment = 4;
  EXPECT_TRUE(contains(text_of(kernel), "load<pack<float, 4, 4>>"));
}

TEST(Text, more_than_31_bits_of_elements_need_wide_indices) {
  EXPECT_FALSE(contains(text_of(negated(DType::f32, {1 << 30}, {1})), "long long"));
  EXPECT_TRUE(contains(text_of(negated(DType::f32, {int64_t{3} << 30}, {1})), "long long"));
  EXPECT_TRUE(contains(text_of(negated(DType::f32, {4, 4}, {int64_t{1} << 30, 1})), "long long"));
}

TEST(Text, memory_shared_with_an_output_is_not_restrict) {
  KernelBuilder b("fused_in_place", {100});
  const Slot x = b.input(DType::f32, {1});
  b.output_in_place(DType::f32, b.op("neg", {x}, DType::f32), {1});
  Kernel kernel = b.kernel();
  kernel.params[0].in_place = true;
  EXPECT_FALSE(contains(text_of(kernel), "__restrict__"));
}

TEST(Text, the_comment_is_no_part_of_it) {
  Kernel kernel = negated(DType::f32, {100}, {1});
  const std::string plain = text_of(kernel);
  kernel.comment = {"fused_neg: layer1.0  [model.cpp:3]"};
  EXPECT_EQ(text_of(kernel), plain);
  EXPECT_TRUE(contains(codegen::generate_cuda(kernel, test_device()).comment, "layer1.0"));
}

TEST(Text, a_half_gelu_takes_the_cheap_function_unless_numerics_are_eager) {
  KernelBuilder b("fused_gelu", {4096});
  const Slot x = b.cast(b.input(DType::f16, {1}), DType::f32);
  const Slot erf = b.op("erf", {x}, DType::f32);
  const Slot sum = b.op("add", {erf, b.number(1.0, DType::f32)}, DType::f32);
  b.output(DType::f16, b.cast(b.op("mul", {x, sum}, DType::f32), DType::f16), {1});
  Kernel kernel = b.kernel();
  EXPECT_TRUE(contains(text_of(kernel), "half_one_plus_erf"));
  kernel.half_accuracy = false;
  EXPECT_FALSE(contains(text_of(kernel), "half_one_plus_erf"));
}

TEST(Text, a_value_that_a_float_store_needs_stays_accurate) {
  KernelBuilder b("fused_exp", {4096});
  const Slot x = b.cast(b.input(DType::f16, {1}), DType::f32);
  const Slot exp = b.op("exp", {x}, DType::f32);
  b.output(DType::f16, b.cast(exp, DType::f16), {1});
  b.output(DType::f32, exp, {1});
  EXPECT_FALSE(contains(text_of(b.kernel()), "half_exp"));
}

TEST(Text, an_empty_kernel_has_no_points) {
  const KernelSource source = codegen::generate_cuda(negated(DType::f32, {0}, {1}), test_device());
  EXPECT_EQ(source.numel, 0);
  EXPECT_EQ(source.bytes, 0);
}

}  // namespace
}  // namespace sinter::test
