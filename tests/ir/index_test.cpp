#include "compiler/ir/index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace sinter::ir {
namespace {

using Numbers = std::vector<int64_t>;

Type tensor(const Numbers& sizes, const Numbers& strides) {
  return {DType::f32, {sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}, {}};
}
Type row_major(const Numbers& sizes) { return contiguous(DType::f32, {sizes.begin(), sizes.end()}, {}); }

/// Every point of a nest, last dim fastest.
void for_each_point(const Numbers& extents, const std::function<void(const Numbers&)>& visit) {
  const int64_t count = std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
  Numbers point(extents.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(point);
    for (size_t d = extents.size(); d-- > 0;) {
      if (++point[d] < extents[d]) break;
      point[d] = 0;
    }
  }
}

int64_t address(const Type& type, int64_t offset, const Numbers& point) {
  return offset + evaluate(storage_index(type), point);
}

std::string text(const Index& index) {
  std::string out = fmt::format("{} + <{}>", index.affine.offset, fmt::join(index.affine.strides, ","));
  for (const QuasiTerm& term : index.terms) {
    out += fmt::format(" + {} * ((({} + <{}>) / {}) % {})", term.scale, term.inner.offset,
                       fmt::join(term.inner.strides, ","), term.divisor, term.modulus);
  }
  return out;
}

std::string text(const std::vector<Index>& map) {
  std::string out;
  for (const Index& index : map) out += text(index) + "\n";
  return out;
}

void expect_terms_are_never_negative(const Index& index, const Numbers& point) {
  for (const QuasiTerm& term : index.terms) {
    ASSERT_GE(evaluate({term.inner, {}}, point), 0) << text(index);
    ASSERT_GT(term.divisor, 0);
    ASSERT_GE(term.modulus, 0);
  }
}

/// The map finds, for every element of the view, the base element with the same address.
void expect_same_elements(const Type& base, const Type& view, int64_t offset, const std::vector<Index>& map) {
  ASSERT_EQ(map.size(), base.rank());
  const Numbers sizes = base.static_sizes();
  for_each_point(view.static_sizes(), [&](const Numbers& point) {
    Numbers at;
    for (size_t d = 0; d < map.size(); ++d) {
      expect_terms_are_never_negative(map[d], point);
      at.push_back(evaluate(map[d], point));
      ASSERT_GE(at[d], 0);
      ASSERT_LT(at[d], sizes[d]);
    }
    ASSERT_EQ(address(base, 0, at), address(view, offset, point));
  });
}

/// Draws dense tensors and views of them.
class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(seed) {}

  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }

  Type dense() {
    Numbers sizes(static_cast<size_t>(number(0, 4)));
    for (int64_t& size : sizes) size = number(1, 6);
    return dense(sizes);
  }

  /// These sizes in a random order of the dims; strides of dims of size 1 are arbitrary.
  Type dense(const Numbers& sizes) {
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (number(0, 1) == 1) std::shuffle(order.begin(), order.end(), engine_);
    Numbers strides(sizes.size(), 1);
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = sizes[order[i]] == 1 ? number(0, 9) : stride;
      stride *= sizes[order[i]];
    }
    return tensor(sizes, strides);
  }

  struct View {
    Type type;
    int64_t offset = 0;
  };

  View view(const Type& base) {
    View current{base, 0};
    for (int64_t step = number(0, 4); step > 0; --step) apply(current);
    return current;
  }

  /// Any strides that stay inside the base.
  View strided(const Type& base) {
    while (true) {
      Numbers sizes(static_cast<size_t>(number(0, 3)));
      for (int64_t& size : sizes) size = number(1, 5);
      Numbers strides;
      for (size_t d = 0; d < sizes.size(); ++d) strides.push_back(number(0, 13));
      Type type = tensor(sizes, strides);
      if (type.span() <= base.span()) return {type, number(0, base.span() - type.span())};
    }
  }

  /// The sizes of another row-major look at as many elements.
  Numbers reshape(int64_t elements) {
    Numbers sizes;
    while (elements > 1) {
      int64_t factor = number(2, elements);
      while (elements % factor != 0) --factor;
      if (factor == 1) continue;
      sizes.push_back(factor);
      elements /= factor;
      if (number(0, 4) == 0) sizes.push_back(1);
    }
    std::shuffle(sizes.begin(), sizes.end(), engine_);
    return sizes;
  }

 private:
  void apply(View& view) {
    Numbers sizes = view.type.static_sizes();
    Numbers strides = view.type.static_strides();
    const size_t rank = sizes.size();
    const auto pick = [&] { return static_cast<size_t>(number(0, static_cast<int64_t>(rank) - 1)); };
    switch (number(0, 6)) {
      case 0: {  // unsqueeze
        const auto at = number(0, static_cast<int64_t>(rank));
        sizes.insert(sizes.begin() + at, 1);
        strides.insert(strides.begin() + at, number(0, 5));
        break;
      }
      case 1: {  // transpose
        if (rank < 2) return;
        const size_t a = pick();
        const size_t b = pick();
        std::swap(sizes[a], sizes[b]);
        std::swap(strides[a], strides[b]);
        break;
      }
      case 2: {  // expand
        if (rank == 0) return;
        const size_t d = pick();
        if (sizes[d] != 1) return;
        sizes[d] = number(1, 4);
        strides[d] = 0;
        break;
      }
      case 3: {  // slice
        if (rank == 0) return;
        const size_t d = pick();
        const int64_t start = number(0, sizes[d] - 1);
        const int64_t step = number(1, 3);
        view.offset += start * strides[d];
        sizes[d] = (sizes[d] - start + step - 1) / step;
        strides[d] *= step;
        break;
      }
      case 4: {  // split a dim
        if (rank == 0) return;
        const size_t d = pick();
        int64_t inner = number(1, sizes[d]);
        while (sizes[d] % inner != 0) --inner;
        sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d), sizes[d] / inner);
        strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(d), strides[d] * inner);
        sizes[d + 1] = inner;
        break;
      }
      case 5: {  // merge two dims
        if (rank < 2) return;
        const auto d = static_cast<size_t>(number(0, static_cast<int64_t>(rank) - 2));
        if (strides[d] != strides[d + 1] * sizes[d + 1]) return;
        sizes[d + 1] *= sizes[d];
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
        strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d));
        break;
      }
      default: {  // reshape all
        if (!view.type.is_contiguous()) return;
        view.type = row_major(reshape(view.type.numel()));
        return;
      }
    }
    view.type = tensor(sizes, strides);
  }

  std::mt19937_64 engine_;
};

std::string describe(uint64_t seed, const Type& base, const Draw::View& view) {
  return fmt::format("seed {}: {} seen as {} + {}", seed, to_string(base, Device{}), to_string(view.type, Device{}),
                     view.offset);
}

TEST(Index, finds_the_base_element_of_every_element_of_random_views) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Draw draw(seed);
    const Type base = draw.dense();
    const auto view = seed % 3 == 0 ? draw.strided(base) : draw.view(base);
    SCOPED_TRACE(describe(seed, base, view));
    const auto map = view_map(base, view.type, view.offset);
    ASSERT_TRUE(map.has_value());
    SCOPED_TRACE(text(*map));
    expect_same_elements(base, view.type, view.offset, *map);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Index, composes_two_views_of_computed_values_point_by_point) {
  int asked = 0;
  int composed = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Draw draw(seed);
    const Type first = draw.dense();
    const auto outer = draw.view(first);
    const Type second = draw.dense(outer.type.static_sizes());
    const auto inner = seed % 5 == 0 ? draw.strided(second) : draw.view(second);
    SCOPED_TRACE(describe(seed, first, outer) + "; " + describe(seed, second, inner));
    const auto outer_map = view_map(first, outer.type, outer.offset);
    const auto inner_map = view_map(second, inner.type, inner.offset);
    ASSERT_TRUE(outer_map && inner_map);
    const Numbers extents = inner.type.static_sizes();
    for (size_t d = 0; d < outer_map->size(); ++d) {
      const auto index = compose((*outer_map)[d], *inner_map, extents);
      ++asked;
      if (!index) continue;
      ++composed;
      SCOPED_TRACE(text(*index));
      for_each_point(extents, [&](const Numbers& point) {
        Numbers between;
        for (const Index& one : *inner_map) between.push_back(evaluate(one, point));
        expect_terms_are_never_negative(*index, point);
        ASSERT_EQ(evaluate(*index, point), evaluate((*outer_map)[d], between));
      });
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(composed, asked * 95 / 100) << "of " << asked;
}

TEST(Index, composes_a_storage_address_with_any_view) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Draw draw(seed);
    const Type base = draw.dense();
    const auto view = draw.view(base);
    SCOPED_TRACE(describe(seed, base, view));
    const auto map = view_map(base, view.type, view.offset);
    ASSERT_TRUE(map.has_value());
    const auto index = compose(storage_index(base), *map, view.type.static_sizes());
    ASSERT_TRUE(index.has_value());
    for_each_point(view.type.static_sizes(), [&](const Numbers& point) {
      ASSERT_EQ(evaluate(*index, point), address(view.type, view.offset, point)) << text(*index);
    });
    // The divisions of all dims cancel: an address inside a dense base is affine again.
    EXPECT_TRUE(index->is_affine()) << text(*index);
    if (testing::Test::HasFailure()) return;
  }
}

std::vector<Index> map_of(const Type& base, const Type& view, int64_t offset = 0) {
  auto map = view_map(base, view, offset);
  EXPECT_TRUE(map.has_value());
  return map.value_or(std::vector<Index>{});
}

TEST(Index, a_transpose_is_affine) {
  const auto map = map_of(row_major({4, 6}), tensor({6, 4}, {1, 6}));
  EXPECT_EQ(map[0], (Index{{0, {0, 1}}, {}}));
  EXPECT_EQ(map[1], (Index{{0, {1, 0}}, {}}));
}

TEST(Index, a_slice_of_a_channels_last_value_is_affine) {
  const Type base = tensor({2, 3, 4, 5}, {60, 1, 15, 3});
  const auto map = map_of(base, tensor({2, 2, 4, 5}, {60, 1, 15, 3}), 1);
  EXPECT_EQ(map[1], (Index{{1, {0, 1, 0, 0}}, {}}));
  for (const Index& index : map) EXPECT_TRUE(index.is_affine()) << text(index);
}

TEST(Index, splitting_a_dim_is_affine) {
  const auto map = map_of(row_major({24, 5}), row_major({4, 6, 5}));
  EXPECT_EQ(map[0], (Index{{0, {6, 1, 0}}, {}}));
  EXPECT_EQ(map[1], (Index{{0, {0, 0, 1}}, {}}));
}

TEST(Index, merging_two_dims_divides) {
  const auto map = map_of(row_major({4, 6}), row_major({24}));
  EXPECT_EQ(map[0], (Index{{0, {0}}, {{1, {0, {1}}, 6, 0}}}));
  EXPECT_EQ(map[1], (Index{{0, {0}}, {{1, {0, {1}}, 1, 6}}}));
}

TEST(Index, keeps_the_innermost_dim_affine_where_only_outer_dims_mix) {
  const auto map = map_of(row_major({2, 12}), row_major({6, 4}));
  EXPECT_EQ(map[0], (Index{{0, {0, 0}}, {{1, {0, {1, 0}}, 3, 0}}}));
  EXPECT_EQ(map[1], (Index{{0, {0, 1}}, {{4, {0, {1, 0}}, 1, 3}}}));
}

TEST(Index, a_diagonal_is_affine) {
  const auto map = map_of(row_major({6, 6}), tensor({6}, {7}));
  EXPECT_EQ(map[0], (Index{{0, {1}}, {}}));
  EXPECT_EQ(map[1], (Index{{0, {1}}, {}}));
}

TEST(Index, a_reshape_and_its_inverse_cancel) {
  const auto there = map_of(row_major({4, 6}), row_major({24}));
  const auto back = map_of(row_major({24}), row_major({4, 6}));
  const Numbers extents{4, 6};
  for (size_t d = 0; d < 2; ++d) {
    const auto index = compose(there[d], back, extents);
    ASSERT_TRUE(index.has_value());
    EXPECT_EQ(*index, (Index{{0, {d == 0 ? 1 : 0, d == 1 ? 1 : 0}}, {}})) << text(*index);
  }
}

TEST(Index, reshapes_that_interleave_compose_through_one_division) {
  const auto outer = map_of(row_major({6, 4}), row_major({24}));
  const auto inner = map_of(row_major({24}), row_major({8, 3}));
  for (size_t d = 0; d < 2; ++d) {
    const auto index = compose(outer[d], inner, Numbers{8, 3});
    ASSERT_TRUE(index.has_value());
    for_each_point({8, 3}, [&](const Numbers& p) {
      const int64_t flat = 3 * p[0] + p[1];
      EXPECT_EQ(evaluate(*index, p), d == 0 ? flat / 4 : flat % 4);
    });
  }
}

TEST(Index, a_base_with_holes_has_no_map) {
  EXPECT_FALSE(view_map(tensor({4, 6}, {8, 1}), row_major({4}), 0).has_value());
}

TEST(Index, a_view_beyond_its_base_has_no_map) {
  EXPECT_FALSE(view_map(row_major({4}), row_major({4}), 1).has_value());
}

TEST(Index, an_empty_view_maps_to_zero) {
  const auto map = map_of(row_major({4, 6}), row_major({0, 6}), 0);
  for (const Index& index : map) EXPECT_EQ(index, (Index{{0, {0, 0}}, {}}));
}

TEST(Index, a_view_of_a_zero_dim_value_has_no_dims_to_map) {
  EXPECT_TRUE(map_of(row_major({}), tensor({3, 4}, {0, 0})).empty());
}

TEST(Index, extents_beyond_32_bits_stay_exact) {
  const int64_t big = int64_t{1} << 33;
  const auto map = map_of(row_major({big, 4}), row_major({4 * big}));
  EXPECT_EQ(evaluate(map[0], Numbers{4 * big - 1}), big - 1);
  EXPECT_EQ(evaluate(map[1], Numbers{4 * big - 1}), 3);
}

TEST(Index, broadcast_aligns_to_the_right_and_repeats_ones) {
  const auto map = broadcast_map(Numbers{1, 6}, Numbers{2, 4, 6});
  EXPECT_EQ(map[0], (Index{{0, {0, 0, 0}}, {}}));
  EXPECT_EQ(map[1], (Index{{0, {0, 0, 1}}, {}}));
}

}  // namespace
}  // namespace sinter::ir
