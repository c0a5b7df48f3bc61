// Small products of matrices as sums, interpreted, against sums that are written out.
#include <gtest/gtest.h>

#include "rows.h"

namespace sinter::passes {
namespace {

/// Row times column; `left` has `inner` numbers in a row, `right` in a column.
double dot(const Row& left, const Row& right, size_t row, size_t column, size_t inner) {
  double sum = 0;
  for (size_t k = 0; k < inner; ++k) sum += left[row * inner + k] * right[column * inner + k];
  return sum;
}

TEST(SumProducts, of_weights_that_lie_turned_and_a_bias) {
  const ir::HostTensor x = drawn("f64[3,5]", 1), w = drawn("f64[4,5]", 2), b = drawn("f64[4]", 3);
  const Row n = numbers_of(x), m = numbers_of(w), bias = numbers_of(b);
  const auto found = summed(
      "graph @g on cuda:0 (%x: f64[3,5], %w: f64[4,5], %b: f64[4]) -> (%p, %q) {"
      " %t = view %w + 0 : f64[5,4]{1,5}"
      " %p = call aten.mm(%x, %t) : f64[3,4]"
      " %q = call aten.addmm(%b, %x, %t, 1, 1) : f64[3,4] }",
      {x, w, b});
  for (size_t at = 0; at < 12; ++at) {
    const double product = dot(n, m, at / 4, at % 4, 5);
    EXPECT_NEAR(found.at(0).at(at), product, 1e-14) << at;
    EXPECT_NEAR(found.at(1).at(at), product + bias[at % 4], 1e-14) << at;
  }
}

/// Each with a matrix of its own, and all with one, which lies the other way round.
TEST(SumProducts, of_batches) {
  const ir::HostTensor x = drawn("f64[2,3,5]", 1), w = drawn("f64[2,4,5]", 2), v = drawn("f64[4,5]", 3);
  const Row n = numbers_of(x), m = numbers_of(w), shared = numbers_of(v);
  const auto found = summed(
      "graph @g on cuda:0 (%x: f64[2,3,5], %w: f64[2,4,5], %v: f64[4,5]) -> (%p, %q) {"
      " %t = view %w + 0 : f64[2,5,4]{20,1,5}"
      " %s = view %v + 0 : f64[2,5,4]{0,1,5}"
      " %p = call aten.bmm(%x, %t) : f64[2,3,4]"
      " %q = call aten.bmm(%x, %s) : f64[2,3,4] }",
      {x, w, v});
  for (size_t at = 0; at < 24; ++at) {
    const size_t batch = at / 12, row = at / 4 % 3, column = at % 4;
    EXPECT_NEAR(found.at(0).at(at), dot(n, m, 3 * batch + row, 4 * batch + column, 5), 1e-14) << at;
    EXPECT_NEAR(found.at(1).at(at), dot(n, shared, 3 * batch + row, column, 5), 1e-14) << at;
  }
}

}  // namespace
}  // namespace sinter::passes
