#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/interpret.h"

/// Reductions as one writes them down, in double: what decomposed graphs are compared with.
namespace sinter::passes {

using Row = std::vector<double>;
using Reduced = std::function<double(const Row&)>;
using Mapped = std::function<Row(const Row&)>;

/// Places in row-major order of the elements that are joined along dims, for every row.
[[nodiscard]] std::vector<std::vector<size_t>> rows_of(const std::vector<int64_t>& sizes,
                                                       const std::vector<int64_t>& dims);
/// One number a row.
[[nodiscard]] Row reduce_rows(const Row& elements, const std::vector<std::vector<size_t>>& rows, const Reduced& join);
/// As many numbers as elements, row by row.
[[nodiscard]] Row map_rows(const Row& elements, const std::vector<std::vector<size_t>>& rows, const Mapped& map);

[[nodiscard]] double sum_of(const Row& row);
[[nodiscard]] double mean_of(const Row& row);
/// Mean of the squared differences from the mean.
[[nodiscard]] double variance_of(const Row& row);
/// NaN where there is one.
[[nodiscard]] double largest_of(const Row& row);
[[nodiscard]] Row softmax_of(const Row& row);

/// Numbers of a dtype, the same for the same seed: floats in [-2, 2], integers in [-3, 3], bools.
[[nodiscard]] ir::HostTensor drawn(std::string_view type, uint64_t seed);
/// The same, with infinities, NaN and a row of -inf alone among them.
[[nodiscard]] ir::HostTensor drawn_with_specials(std::string_view type, uint64_t seed);
/// Integers, row by row, as a tensor of this type.
[[nodiscard]] ir::HostTensor integers(std::string_view type, const std::vector<int64_t>& numbers);
/// Elements [i, j] of a matrix that a function of them gives.
[[nodiscard]] Row matrix(size_t height, size_t width, const std::function<double(size_t, size_t)>& element);
[[nodiscard]] Row numbers_of(const ir::HostTensor& tensor);

/// Decomposes a graph for its device, expects that no call is left and that outputs keep their types, and interprets
/// it: the outputs' elements.
[[nodiscard]] std::vector<Row> decomposed(std::string_view graph, const std::vector<ir::HostTensor>& inputs);
/// The same for a graph whose calls the pass expand_windows expands.
[[nodiscard]] std::vector<Row> expanded(std::string_view graph, const std::vector<ir::HostTensor>& inputs);
/// The same for expand_pool_gradients.
[[nodiscard]] std::vector<Row> with_pool_gradients(std::string_view graph, const std::vector<ir::HostTensor>& inputs);
/// The same for expand_upsampling.
[[nodiscard]] std::vector<Row> upsampled(std::string_view graph, const std::vector<ir::HostTensor>& inputs);
/// The same after sum_products.
[[nodiscard]] std::vector<Row> summed(std::string_view graph, const std::vector<ir::HostTensor>& inputs);

/// Expects numbers equal up to `tolerance` relative to the greater of them and 1; NaN equals NaN.
void expect_close(const Row& found, const Row& wanted, double tolerance);
/// What rounding may change in results of a dtype ("f16").
[[nodiscard]] double tolerance_of(std::string_view dtype);

/// The gradient of sum(weights * f(x)) at x, by central differences.
[[nodiscard]] Row gradient_of(const std::function<Row(const Row&)>& f, const Row& x, const Row& weights);

}  // namespace sinter::passes
