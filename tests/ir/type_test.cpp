#include "compiler/ir/type.h"

#include <gtest/gtest.h>

#include "compiler/ir/graph.h"
#include "compiler/support/errors.h"
#include "compiler/support/report.h"

namespace sinter::ir {
namespace {

const Dim s0 = Dim::symbol({0});
const Dim s1 = Dim::symbol({1});

Type tensor(std::vector<Dim> sizes, std::vector<Dim> strides) {
  return {DType::f32, std::move(sizes), std::move(strides), {}};
}

TEST(Dims, add_up_term_by_term_and_drop_what_cancels) {
  EXPECT_EQ(s0 + s1 - s0, s1);
  EXPECT_EQ(s0 * 2 + 1, s0 + s0 + 1);
  EXPECT_EQ(s1 + s0, s0 + s1);
  EXPECT_TRUE((s0 - s0).is_static());
  EXPECT_EQ(s0 * 0, Dim(0));
}

TEST(Dims, print_as_they_are_written) {
  EXPECT_EQ(to_string(Dim(8)), "8");
  EXPECT_EQ(to_string(s0), "s0");
  EXPECT_EQ(to_string(s0 * 2 + 1), "2*s0+1");
  EXPECT_EQ(to_string(s1 - s0 * 3 - 4), "-3*s0+s1-4");
}

TEST(Dims, a_symbol_has_no_number) { EXPECT_THROW((void)s0.value(), InternalError); }

TEST(Types, every_dtype_name_parses_back) {
  for (int i = 0; i <= static_cast<int>(DType::other); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("f8"), std::nullopt);
}

TEST(Types, row_major_strides_treat_empty_dims_as_ones) {
  EXPECT_EQ(contiguous_strides({2, 0, 3}), (std::vector<Dim>{3, 3, 1}));
  EXPECT_EQ(contiguous_strides({s0, 4}), (std::vector<Dim>{4, 1}));
  EXPECT_EQ(contiguous_strides({4, s0}), (std::vector<Dim>{s0, 1}));
  EXPECT_THROW((void)contiguous_strides({4, s0, s1}), InternalError);
}

TEST(Types, dims_of_size_one_do_not_count_for_contiguity) {
  EXPECT_TRUE(tensor({2, 1, 3}, {3, 77, 1}).is_contiguous());
  EXPECT_FALSE(tensor({2, 3}, {1, 2}).is_contiguous());
  EXPECT_TRUE(tensor({s0, 4}, {4, 1}).is_contiguous());
}

TEST(Types, dense_means_every_element_once_in_any_order_of_dims) {
  EXPECT_TRUE(tensor({2, 3}, {1, 2}).is_dense());
  EXPECT_TRUE(tensor({2, 3, 4, 5}, {60, 1, 15, 3}).is_dense());
  EXPECT_FALSE(tensor({2, 3}, {4, 1}).is_dense());
  EXPECT_FALSE(tensor({2, 3}, {0, 1}).is_dense());
  EXPECT_TRUE(tensor({0, 3}, {9, 9}).is_dense());
}

TEST(Types, span_reaches_one_past_the_last_element) {
  EXPECT_EQ(tensor({2, 3}, {10, 2}).span(), 15);
  EXPECT_EQ(tensor({}, {}).span(), 1);
  EXPECT_EQ(tensor({2, 0}, {10, 2}).span(), 0);
}

TEST(Graphs, broadcast_follows_aten) {
  const std::vector<Dim> a{4, 1, 3};
  const std::vector<Dim> b{5, 1};
  const std::vector<Dim> c{2};
  EXPECT_EQ(broadcast(a, b), (std::vector<Dim>{4, 5, 3}));
  EXPECT_EQ(broadcast(b, a), (std::vector<Dim>{4, 5, 3}));
  EXPECT_EQ(broadcast(a, c), std::nullopt);
  EXPECT_EQ(broadcast(std::vector<Dim>{s0, 1}, std::vector<Dim>{1, s1}), (std::vector<Dim>{s0, s1}));
  EXPECT_EQ(broadcast(std::vector<Dim>{0}, std::vector<Dim>{1}), (std::vector<Dim>{0}));
}

TEST(Graphs, replaced_uses_follow_chains_through_lists_and_outputs) {
  Graph graph;
  const Type type = contiguous(DType::f32, {2}, {});
  const ValueId a = graph.add1(Input{0}, {}, type);
  const ValueId b = graph.add1(Input{1}, {}, type);
  const ValueId c = graph.add1(Input{2}, {}, type);
  const NodeId call = graph.add(Call{"aten::cat", {}, {}, false, false}, {{ArgList{{a}, {b}}}}, {type});
  graph.outputs = {a};
  replace_uses(graph, {{a, b}, {b, c}});
  EXPECT_EQ(graph.outputs[0], c);
  EXPECT_EQ(graph.node(call).args[0], (Arg{ArgList{{c}, {c}}}));
  EXPECT_EQ(use_counts(graph)[c.index], 3U);
  EXPECT_EQ(use_counts(graph)[a.index], 0U);
  EXPECT_THROW(replace_uses(graph, {{c, b}, {b, c}}), InternalError);
}

TEST(Graphs, equal_scopes_are_one) {
  Graph graph;
  EXPECT_EQ(graph.scope({"a", "f.cpp:1"}), graph.scope({"a", "f.cpp:1"}));
  EXPECT_NE(graph.scope({"a", "f.cpp:1"}), graph.scope({"a", "f.cpp:2"}));
  EXPECT_EQ(graph.scopes().size(), 2U);
}

TEST(Reports, times_of_one_phase_add_up) {
  EntryReport report;
  report.add_phase("capture", 1);
  report.add_phase("codegen", 2);
  report.add_phase("capture", 3);
  ASSERT_EQ(report.phases.size(), 2U);
  EXPECT_EQ(report.phases[0].seconds, 4);
}

TEST(Types, a_view_that_sees_the_gaps_of_another_tensor_does_not_lie_in_it) {
  const Type columns = tensor({3, 2}, {4, 2});  // elements 0 2, 4 6, 8 10
  EXPECT_TRUE(lies_in_elements_of(columns, tensor({2, 3}, {2, 4}), 0));
  EXPECT_TRUE(lies_in_elements_of(columns, tensor({5}, {2}), 2));
  EXPECT_FALSE(lies_in_elements_of(columns, tensor({2}, {1}), 0));
  EXPECT_FALSE(lies_in_elements_of(columns, tensor({6}, {2}), 2));
  EXPECT_FALSE(lies_in_elements_of(columns, tensor({1}, {1}), -1));
  EXPECT_TRUE(lies_in_elements_of(columns, tensor({0}, {1}), 1));
  EXPECT_TRUE(lies_in_elements_of(tensor({3, 4}, {4, 1}), tensor({2, 2}, {5, 3}), 1));
  EXPECT_FALSE(lies_in_elements_of(tensor({3, 4}, {4, 1}), tensor({2, 2}, {5, 3}), 4));
}

}  // namespace
}  // namespace sinter::ir
