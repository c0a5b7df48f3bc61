#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "compiler/ir/parse.h"
#include "compiler/kernel/lower.h"
#include "compiler/support/errors.h"

/// Loop nests with reductions.
namespace sinter::test {
namespace {

using kernel::Kernel;
using kernel::Level;

Kernel lowered(std::string_view text) { return kernel::lower(ir::parse(text), "fused"); }

/// The kernel of the whole graph as one region; nothing where one nest does not do.
std::optional<Kernel> tried(std::string_view text) {
  const ir::Graph graph = ir::parse(text);
  std::vector<ir::NodeId> members;
  std::ranges::copy_if(graph.order(), std::back_inserter(members),
                       [&](ir::NodeId id) { return ir::is_computed(graph.node(id)); });
  return kernel::try_lower({graph, members, graph.outputs}, 64);
}

using Extents = std::vector<int64_t>;

constexpr std::string_view centred = R"(graph @g on cuda:0 (%x: f32[2,3,8]) -> (%y, %m) {
  %m = reduce sum %x over 2 : f32[2,3,1]
  %y = sub %x, %m : f32[2,3,8]
})";

TEST(Rows, reduced_loops_are_innermost_and_merge_among_themselves) {
  const Kernel k = lowered(centred);
  EXPECT_EQ(k.extents, Extents({6, 8}));
  EXPECT_EQ(k.reduced, 1u);
  EXPECT_EQ(k.rows(), 6);
  EXPECT_EQ(k.row_points(), 8);
  EXPECT_EQ(k.bytes_moved(), (48 + 48 + 6) * 4);
}

TEST(Rows, what_is_the_same_along_a_row_is_computed_once_for_it) {
  const Kernel k = lowered(centred);
  const auto level = kernel::levels(k);
  for (size_t slot = 0; slot < k.body.size(); ++slot) {
    const bool reduction = std::holds_alternative<kernel::Reduce>(k.body[slot].operation);
    EXPECT_EQ(level[slot], reduction ? Level::row : Level::element) << slot;
  }
}

TEST(Rows, a_reduction_over_outer_dims_has_them_innermost) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[4,3,8]) -> (%m) {
    %m = reduce sum %x over 0 : f32[1,3,8]
  })");
  EXPECT_EQ(k.extents, Extents({24, 4}));
  EXPECT_EQ(k.reduced, 1u);
}

TEST(Rows, results_are_stored_in_other_sizes_of_as_many_elements) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[2,3,2,4]) -> (%y) {
    %m = reduce sum %x over 2, 3 : f32[2,3,1,1]
    %c = sub %x, %m : f32[2,3,2,4]
    %flat = view %c + 0 : f32[6,8]
    %y = neg %flat : f32[6,8]
  })");
  EXPECT_EQ(k.extents, Extents({6, 8}));
  EXPECT_EQ(k.reduced, 1u);
}

TEST(Rows, two_reductions_share_a_kernel_where_their_rows_are_the_same) {
  EXPECT_TRUE(tried(R"(graph @g on cuda:0 (%x: f32[6,8], %y: f32[6,8]) -> (%a, %b) {
    %a = reduce sum %x over 1 : f32[6,1]
    %b = reduce max %y over 1 : f32[6,1]
  })"));
  EXPECT_FALSE(tried(R"(graph @g on cuda:0 (%x: f32[4,6,8]) -> (%a, %b) {
    %a = reduce sum %x over 2 : f32[4,6,1]
    %b = reduce sum %x over 0 : f32[1,6,8]
  })"))
      << "along other dims";
  EXPECT_FALSE(tried(R"(graph @g on cuda:0 (%x: f32[6,8], %y: f32[6,4]) -> (%a, %b) {
    %a = reduce sum %x over 1 : f32[6,1]
    %b = reduce sum %y over 1 : f32[6,1]
  })"))
      << "of another length";
}

TEST(Rows, sums_over_groups_of_rows_are_stored_once_a_group) {
  const std::string text = R"(graph @g on cuda:0 (%x: f32[12,8]) -> (%m, %y, %s) {
    %m = reduce max %x over 1 : f32[12,1]
    %y = sub %x, %m : f32[12,8]
    %v = view %y + 0 : f32[3,4,8]
    %s = reduce sum %v over 1 : f32[3,1,8]
  })";
  const Kernel k = lowered(text);
  EXPECT_EQ(k.extents, Extents({3, 4, 8}));
  EXPECT_EQ(k.group_rows(), 4);
  ASSERT_EQ(k.stores.size(), 3u);
  EXPECT_FALSE(k.stores[1].over_group.has_value());
  EXPECT_TRUE(k.stores[2].over_group.has_value());
  std::string on_cpu = text;
  on_cpu.replace(on_cpu.find("cuda:0"), 6, "cpu");
  EXPECT_FALSE(tried(on_cpu)) << "code for the CPU has no groups";
}

TEST(Rows, a_result_that_changes_along_the_row_again_is_no_part_of_the_kernel) {
  EXPECT_FALSE(tried(R"(graph @g on cuda:0 (%x: f32[8,8]) -> (%y) {
    %m = reduce sum %x over 1 : f32[8,1]
    %t = view %m + 0 : f32[1,8]{8,1}
    %y = sub %x, %t : f32[8,8]
  })"));
}

TEST(Rows, a_reduction_over_one_element_is_the_element) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[5,1]) -> (%y) {
    %y = reduce sum %x over 1 : f32[5,1]
  })");
  EXPECT_EQ(k.extents, Extents({5}));
  EXPECT_EQ(k.reduced, 0u);
}

TEST(Rows, nothing_is_lowered_where_there_is_nothing_to_join) {
  EXPECT_FALSE(tried(R"(graph @g on cuda:0 (%x: f32[5,0]) -> (%y) {
    %y = reduce sum %x over 1 : f32[5,1]
  })"));
}

}  // namespace
}  // namespace sinter::test
