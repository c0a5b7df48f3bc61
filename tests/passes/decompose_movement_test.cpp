// Joins, pads and rolls, decomposed and interpreted, against what they say element by element.
#include <gtest/gtest.h>

#include "rows.h"

namespace sinter::passes {
namespace {

constexpr size_t rows = 3;
constexpr size_t columns = 4;

TEST(DecomposeMovement, joins_tensors_of_several_dtypes_and_leaves_empty_ones_out) {
  const ir::HostTensor a = drawn("f16[3,4]", 1);
  const ir::HostTensor b = drawn("f32[3,2]", 2);
  const ir::HostTensor none = drawn("f32[0]", 3);
  const Row x = numbers_of(a);
  const Row y = numbers_of(b);
  const auto found = decomposed(
      "graph @g on cuda:0 (%a: f16[3,4], %b: f32[3,2], %n: f32[0]) -> (%c) {"
      " %c = call aten.cat([%b, %n, %a], -1) : f32[3,6] }",
      {a, b, none});
  EXPECT_EQ(found.at(0), matrix(rows, 6, [&](size_t i, size_t j) { return j < 2 ? y[2 * i + j] : x[4 * i + j - 2]; }));
}

TEST(DecomposeMovement, stacks_along_a_new_dim) {
  const ir::HostTensor a = drawn("i64[3,4]{1,3}", 1);
  const ir::HostTensor b = drawn("i64[3,4]", 2);
  const Row x = numbers_of(a);
  const Row y = numbers_of(b);
  const auto found = decomposed(
      "graph @g on cuda:0 (%a: i64[3,4]{1,3}, %b: i64[3,4]) -> (%c, %d) {"
      " %c = call aten.stack([%a, %b], 1) : i64[3,2,4]"
      " %d = call aten.stack([%a, %b], -1) : i64[3,4,2] }",
      {a, b});
  EXPECT_EQ(found.at(0), matrix(rows, 8, [&](size_t i, size_t j) { return j < 4 ? x[4 * i + j] : y[4 * i + j - 4]; }));
  EXPECT_EQ(found.at(1), matrix(12, 2, [&](size_t i, size_t j) { return j == 0 ? x[i] : y[i]; }));
}

TEST(DecomposeMovement, gradients_of_parts_have_zeros_elsewhere) {
  const ir::HostTensor a = drawn("f32[3,4]", 1);
  const ir::HostTensor b = drawn("f32[3]", 2);
  const Row x = numbers_of(a);
  const Row y = numbers_of(b);
  const auto found = decomposed(
      "graph @g on cuda:0 (%a: f32[3,4], %b: f32[3]) -> (%s, %t, %u) {"
      " %u = call aten.slice_backward(%a, [9,4], 0, 1, 8, 3) : f32[9,4]"
      " %s = call aten.slice_backward(%a, [3,7], -1, 2, -1, 1) : f32[3,7]"
      " %t = call aten.select_backward(%b, [3,4], 1, 3) : f32[3,4] }",
      {a, b});
  EXPECT_EQ(found.at(0), matrix(3, 7, [&](size_t i, size_t j) { return j >= 2 && j < 6 ? x[4 * i + j - 2] : 0; }));
  EXPECT_EQ(found.at(1), matrix(3, 4, [&](size_t i, size_t j) { return j == 3 ? y[i] : 0; }));
  EXPECT_EQ(found.at(2), matrix(9, 4, [&](size_t i, size_t j) { return i % 3 == 1 ? x[4 * (i / 3) + j] : 0; }));
}

TEST(DecomposeMovement, pads_and_cuts_both_ends_of_dims) {
  const ir::HostTensor a = drawn("f32[3,4]", 1);
  const Row x = numbers_of(a);
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f32[3,4]) -> (%p, %n) {"
      " %p = call aten.constant_pad_nd(%x, [2, -1, -1, 1], 7) : f32[3,5]"
      " %n = call aten.constant_pad_nd(%x, [0, 0], 7) : f32[3,4] }",
      {a});
  EXPECT_EQ(found.at(0),
            matrix(3, 5, [&](size_t i, size_t j) { return i < 2 && j >= 2 ? x[4 * (i + 1) + j - 2] : 7; }));
  EXPECT_EQ(found.at(1), x);
}

TEST(DecomposeMovement, rolls_over_several_dims_either_way) {
  const ir::HostTensor a = drawn("f32[3,4]", 1);
  const Row x = numbers_of(a);
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f32[3,4]) -> (%r) { %r = call aten.roll(%x, [1, -5], [0, -1]) : f32[3,4] }", {a});
  EXPECT_EQ(found.at(0), matrix(rows, columns, [&](size_t i, size_t j) {
              return x[4 * ((i + rows - 1) % rows) + (j + 5) % columns];
            }));
}

TEST(DecomposeMovement, windows_as_columns) {
  const ir::HostTensor x = drawn("f32[2,3,8,6]", 1);
  const Row n = numbers_of(x);
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f32[2,3,8,6]) -> (%y) {"
      " %y = call aten.im2col(%x, [3, 2], [1, 2], [1, 0], [2, 1]) : f32[2,18,16] }",
      {x});
  EXPECT_EQ(found.at(0), matrix(36, 16, [&](size_t row, size_t window) {
              const size_t image = row / 18, channel = row / 6 % 3;
              const auto y = static_cast<int64_t>(window / 4 * 2 + row / 2 % 3) - 1;
              const size_t column = window % 4 + row % 2 * 2;
              if (y < 0 || y >= 8) return 0.0;
              return n[((image * 3 + channel) * 8 + static_cast<size_t>(y)) * 6 + column];
            }));
}

}  // namespace
}  // namespace sinter::passes
