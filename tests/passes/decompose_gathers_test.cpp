// Calls that read at places which tensors tell, and counts and triangles, decomposed and interpreted, against what they
// say element by element.
#include <gtest/gtest.h>

#include "rows.h"

namespace sinter::passes {
namespace {

TEST(DecomposeGathers, rows_and_columns_at_places) {
  const ir::HostTensor x = drawn("f16[5,4]{1,5}", 1);
  const ir::HostTensor p = integers("i64[2,3]", {4, 0, 2, 2, 1, 3});
  const ir::HostTensor q = integers("i32[3]", {3, 0, 3});
  const Row n = numbers_of(x);
  const std::vector<size_t> rows{4, 0, 2, 2, 1, 3}, columns{3, 0, 3};
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f16[5,4]{1,5}, %p: i64[2,3], %q: i32[3]) -> (%w, %r, %c) {"
      " %w = call aten.embedding(%x, %p, -1, false, false) : f16[2,3,4]"
      " %r = call aten.index_select(%x, 0, %q) : f16[3,4]"
      " %c = call aten.index_select(%x, -1, %q) : f16[5,3] }",
      {x, p, q});
  EXPECT_EQ(found.at(0), matrix(6, 4, [&](size_t i, size_t j) { return n[4 * rows[i] + j]; }));
  EXPECT_EQ(found.at(1), matrix(3, 4, [&](size_t i, size_t j) { return n[4 * columns[i] + j]; }));
  EXPECT_EQ(found.at(2), matrix(5, 3, [&](size_t i, size_t j) { return n[4 * i + columns[j]]; }));
}

TEST(DecomposeGathers, a_place_for_every_element) {
  const ir::HostTensor x = drawn("f32[3,4]", 1);
  const ir::HostTensor p = integers("i64[2,3]", {3, 0, 1, 2, 2, 0});
  const Row n = numbers_of(x);
  const std::vector<size_t> place{3, 0, 1, 2, 2, 0};
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f32[3,4], %p: i64[2,3]) -> (%y) {"
      " %y = call aten.gather(%x, 1, %p, false) : f32[2,3] }",
      {x, p});
  EXPECT_EQ(found.at(0), matrix(2, 3, [&](size_t i, size_t j) { return n[4 * i + place[3 * i + j]]; }));
}

/// Places that count from the end, that broadcast, and dims that lie apart: what is indexed then stands first.
TEST(DecomposeGathers, indices_of_integers) {
  const ir::HostTensor x = drawn("f32[3,4,5]", 1);
  const ir::HostTensor p = integers("i64[2]", {-1, 1});
  const ir::HostTensor q = integers("i64[3,1]", {-4, 3, 0});
  const Row n = numbers_of(x);
  const std::vector<size_t> first{2, 1}, second{0, 3, 0}, last{4, 1};
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f32[3,4,5], %p: i64[2], %q: i64[3,1]) -> (%a, %b, %c, %d) {"
      " %a = call aten.index.Tensor(%x, [none, none, %p]) : f32[3,4,2]"
      " %b = call aten.index.Tensor(%x, [%p, %q]) : f32[3,2,5]"
      " %c = call aten.index.Tensor(%x, [%p, none, %p]) : f32[2,4]"
      " %d = call aten.index.Tensor(%x, [none, %q]) : f32[3,3,1,5] }",
      {x, p, q});
  EXPECT_EQ(found.at(0), matrix(12, 2, [&](size_t i, size_t j) { return n[5 * i + last[j]]; }));
  EXPECT_EQ(found.at(1),
            matrix(6, 5, [&](size_t i, size_t j) { return n[20 * first[i % 2] + 5 * second[i / 2] + j]; }));
  EXPECT_EQ(found.at(2), matrix(2, 4, [&](size_t i, size_t j) { return n[20 * first[i] + 5 * j + last[i]]; }));
  EXPECT_EQ(found.at(3), matrix(9, 5, [&](size_t i, size_t j) { return n[20 * (i / 3) + 5 * second[i % 3] + j]; }));
}

TEST(DecomposeGathers, counts_and_triangles) {
  const ir::HostTensor x = drawn("f32[2,3,4]", 1);
  const ir::HostTensor b = drawn("b8[3,3]", 2);
  const Row n = numbers_of(x), flags = numbers_of(b);
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f32[2,3,4], %b: b8[3,3]) -> (%c, %f, %u, %l) {"
      " %c = call aten.arange.start_step(7, -2, -3, dtype(i64), none, none, none) : i64[3]"
      " %f = call aten.arange(4.0, dtype(f16), none, none, none) : f16[4]"
      " %u = call aten.triu(%x, -1) : f32[2,3,4]"
      " %l = call aten.tril(%b, 0) : b8[3,3] }",
      {x, b});
  EXPECT_EQ(found.at(0), (Row{7, 4, 1}));
  EXPECT_EQ(found.at(1), (Row{0, 1, 2, 3}));
  EXPECT_EQ(found.at(2), matrix(6, 4, [&](size_t i, size_t j) { return j + 1 >= i % 3 ? n[4 * i + j] : 0; }));
  EXPECT_EQ(found.at(3), matrix(3, 3, [&](size_t i, size_t j) { return j <= i ? flags[3 * i + j] : 0; }));
}

}  // namespace
}  // namespace sinter::passes
