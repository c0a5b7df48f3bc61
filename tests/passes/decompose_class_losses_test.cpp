// Negative log likelihoods of classes and their gradients, decomposed and interpreted, against a few lines of double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rows.h"

namespace sinter::passes {
namespace {

constexpr int64_t images = 3, classes = 4, pixels = 5;
constexpr int mean = 1, sum = 2;

/// Scores [n, classes, pixels], row by row; classes [n, pixels]; weights [classes], perhaps.
struct Example {
  Row scores, labels, weights;
  int64_t ignored;

  [[nodiscard]] bool counts(size_t element) const { return labels[element] != static_cast<double>(ignored); }
  [[nodiscard]] double weight(size_t element) const {
    return weights.empty() ? 1 : weights[static_cast<size_t>(labels[element])];
  }
  /// The place of an element's score of a class.
  [[nodiscard]] static size_t place(size_t element, size_t label) {
    return (element / pixels * classes + label) * pixels + element % pixels;
  }
};

double weight_of(const Example& example) {
  double total = 0;
  for (size_t e = 0; e < example.labels.size(); ++e) total += example.counts(e) ? example.weight(e) : 0;
  return total;
}

double loss_of(const Example& example, int reduction) {
  double total = 0;
  for (size_t e = 0; e < example.labels.size(); ++e) {
    if (!example.counts(e)) continue;
    total -= example.weight(e) * example.scores[Example::place(e, static_cast<size_t>(example.labels[e]))];
  }
  return reduction == mean ? total / weight_of(example) : total;
}

Row gradient_of(const Example& example, int reduction, double upstream) {
  Row gradient(example.scores.size(), 0);
  const double step = reduction == mean ? upstream / weight_of(example) : upstream;
  for (size_t e = 0; e < example.labels.size(); ++e) {
    if (example.counts(e)) {
      gradient[Example::place(e, static_cast<size_t>(example.labels[e]))] = -step * example.weight(e);
    }
  }
  return gradient;
}

/// Labels of which every fourth is ignored.
ir::HostTensor labels_of(int64_t ignored) {
  std::vector<int64_t> labels;
  for (int64_t e = 0; e < images * pixels; ++e) labels.push_back(e % 4 == 3 ? ignored : (7 * e + 2) % classes);
  return integers(fmt::format("i64[{},{}]", images, pixels), labels);
}

void expect_eagers(std::string_view dtype, int reduction, bool is_weighed, int64_t ignored) {
  const ir::HostTensor x = drawn(fmt::format("{}[{},{},{}]", dtype, images, classes, pixels), 3);
  const ir::HostTensor t = labels_of(ignored);
  const ir::HostTensor w = drawn(fmt::format("{}[{}]", dtype, classes), 5);
  const ir::HostTensor g = drawn(fmt::format("{}[]", dtype), 6);
  const std::string graph = fmt::format(
      "graph @g on cuda:0 (%x: {0}[3,4,5], %t: i64[3,5], %w: {0}[4], %g: {0}[]) -> (%l, %c, %d) {{\n"
      "  %l, %c = call aten.nll_loss2d_forward(%x, %t, {1}, {2}, {3}) : {0}[], {0}[]\n"
      "  %d = call aten.nll_loss2d_backward(%g, %x, %t, {1}, {2}, {3}, %c) : {0}[3,4,5]\n}}\n",
      dtype, is_weighed ? "%w" : "none", reduction, ignored);
  const auto found = decomposed(graph, {x, t, w, g});
  const Example example{numbers_of(x), numbers_of(t), is_weighed ? numbers_of(w) : Row{}, ignored};
  const double tolerance = 8 * tolerance_of(dtype);
  expect_close(found.at(0), {loss_of(example, reduction)}, tolerance);
  expect_close(found.at(1), {weight_of(example)}, tolerance);
  expect_close(found.at(2), gradient_of(example, reduction, numbers_of(g)[0]), tolerance);
}

TEST(DecomposeClassLosses, weigh_the_scores_of_classes) {
  for (const std::string_view dtype : {"f32", "f16", "f64"}) {
    for (const int reduction : {mean, sum}) {
      for (const bool is_weighed : {false, true}) {
        for (const int64_t ignored : {int64_t{-100}, int64_t{2}}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", dtype, reduction, is_weighed, ignored));
          expect_eagers(dtype, reduction, is_weighed, ignored);
        }
      }
    }
  }
}

/// As LibTorch gives, which divides by nothing.
TEST(DecomposeClassLosses, give_nan_where_all_are_ignored) {
  const ir::HostTensor x = drawn("f32[3,4]", 3);
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f32[3,4], %t: i64[3]) -> (%l) {"
      " %l, %c = call aten.nll_loss_forward(%x, %t, none, 1, 1) : f32[], f32[] }",
      {x, integers("i64[3]", {1, 1, 1})});
  EXPECT_TRUE(std::isnan(found.at(0).at(0)));
}

}  // namespace
}  // namespace sinter::passes
