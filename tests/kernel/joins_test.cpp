#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "compiler/ir/parse.h"
#include "compiler/kernel/joined_loads.h"
#include "compiler/kernel/lower.h"
#include "compiler/kernel/parse.h"
#include "compiler/kernel/verify.h"

/// Loop nests that read operands of joins under guards.
namespace sinter::test {
namespace {

using kernel::Inside;
using kernel::Kernel;
using kernel::Load;

using Extents = std::vector<int64_t>;
using Bounds = std::vector<std::pair<int64_t, int64_t>>;

Kernel lowered(std::string_view text) { return kernel::lower(ir::parse(text), "fused"); }

template <class Operation>
std::vector<Operation> all(const Kernel& kernel) {
  std::vector<Operation> found;
  for (const auto& instruction : kernel.body) {
    if (const auto* operation = std::get_if<Operation>(&instruction.operation)) found.push_back(*operation);
  }
  return found;
}

Bounds bounds(const Kernel& kernel) {
  Bounds found;
  for (const Inside& inside : all<Inside>(kernel)) found.emplace_back(inside.begin, inside.end);
  return found;
}

constexpr std::string_view halves = R"(graph @g on cuda:0 (%a: f32[4,8], %b: f32[4,4]) -> (%y) {
  %y = join %a, %b over 1 : f32[4,12]
})";

TEST(Joins, operands_are_read_where_they_lie) {
  const Kernel k = lowered(halves);
  EXPECT_EQ(k.extents, Extents({4, 12}));
  EXPECT_EQ(bounds(k), Bounds({{0, 8}, {8, 12}}));
  const auto loads = all<Load>(k);
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].index.affine, (ir::Affine{0, {8, 1}}));
  EXPECT_EQ(loads[1].index.affine, (ir::Affine{-8, {4, 1}})) << "before its begin the index means nothing";
  for (const Load& load : loads)
    EXPECT_TRUE(load.guard && std::holds_alternative<Inside>(k.body[*load.guard].operation));
}

TEST(Joins, move_the_bytes_of_their_operands) {
  EXPECT_EQ(lowered(halves).bytes_moved(), (32 + 16 + 48) * 4);
  EXPECT_EQ(lowered(R"(graph @rolled on cuda:0 (%x: f32[12]) -> (%y) {
    %a = view %x + 5 : f32[7]
    %b = view %x + 0 : f32[5]
    %y = join %a, %b over 0 : f32[12]
  })")
                .bytes_moved(),
            (12 + 12) * 4);
  EXPECT_EQ(lowered(R"(graph @rolled_twice on cuda:0 (%x: f32[4,8]) -> (%y) {
    %a = view %x + 8 : f32[3,8]
    %b = view %x + 0 : f32[1,8]
    %r = join %a, %b over 0 : f32[4,8]
    %c = view %r + 2 : f32[4,6]{8,1}
    %d = view %r + 0 : f32[4,2]{8,1}
    %y = join %c, %d over 1 : f32[4,8]
  })")
                .bytes_moved(),
            (32 + 32) * 4);
}

TEST(Joins, over_outer_dims_are_one_loop_with_the_dims_inside) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%a: f32[2,8,7,7], %b: f32[2,16,7,7]) -> (%y) {
    %y = join %a, %b over 1 : f32[2,24,7,7]
  })");
  EXPECT_EQ(k.extents, Extents({2, 24 * 49}));
  EXPECT_EQ(bounds(k), Bounds({{0, 8 * 49}, {8 * 49, 24 * 49}}));
  EXPECT_EQ(lowered(R"(graph @g on cuda:0 (%a: f32[3,8], %b: f32[5,8]) -> (%y) {
    %y = join %a, %b over 0 : f32[8,8]
  })")
                .extents,
            Extents({64}));
}

TEST(Joins, within_joins_read_under_both_guards) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%a: f32[4], %b: f32[4], %c: f32[2]) -> (%y) {
    %j = join %a, %b over 0 : f32[8]
    %y = join %c, %j over 0 : f32[10]
  })");
  size_t under_both = 0;
  for (const Load& load : all<Load>(k)) {
    under_both += std::holds_alternative<kernel::Compute>(k.body[load.guard.value()].operation) ? 1 : 0;
  }
  EXPECT_EQ(under_both, 2u);
}

TEST(Joins, ask_once_for_a_whole_row_where_rows_come_from_one_operand) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%a: f32[3,8], %b: f32[5,8]) -> (%m) {
    %j = join %a, %b over 0 : f32[8,8]
    %m = reduce sum %j over 1 : f32[8,1]
  })");
  const auto levels = kernel::levels(k);
  for (size_t slot = 0; slot < k.body.size(); ++slot) {
    if (!std::holds_alternative<Inside>(k.body[slot].operation)) continue;
    EXPECT_EQ(levels[slot], kernel::Level::row) << slot;
  }
}

TEST(Joins, do_not_cut_rows) {
  const ir::Graph graph = ir::parse(R"(graph @g on cuda:0 (%x: f32[4,2]) -> (%y) {
    %m = reduce sum %x over 1 : f32[4,1]
    %j = join %m, %m over 1 : f32[4,2]
    %y = neg %j : f32[4,2]
  })");
  std::vector<ir::NodeId> members;
  std::ranges::copy_if(graph.order(), std::back_inserter(members),
                       [&](ir::NodeId id) { return ir::is_computed(graph.node(id)); });
  EXPECT_FALSE(kernel::try_lower({graph, members, graph.outputs}, 64));
}

TEST(Joins, of_values_of_rows_are_stored_part_by_part) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[4,2]) -> (%y) {
    %m = reduce sum %x over 1 : f32[4,1]
    %n = neg %m : f32[4,1]
    %y = join %n, %m over 1 : f32[4,2]
  })");
  EXPECT_TRUE(kernel::verify(k).empty());
  EXPECT_FALSE(kernel::has_guards(k));
  ASSERT_EQ(k.stores.size(), 2u);
  for (int64_t part = 0; part < 2; ++part) {
    const kernel::Store& store = k.stores[static_cast<size_t>(part)];
    EXPECT_EQ(store.param, 1u);
    EXPECT_EQ(store.index.affine.offset, part);
    EXPECT_EQ(store.index.affine.strides, (std::vector<int64_t>{2, 0}));
  }
  EXPECT_EQ(k.bytes_moved(), 4 * (8 + 8));
}

TEST(Joins, of_tensors_in_memory_load_once) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%a: f32[4,8], %b: f32[4,4], %c: f32[4,4]) -> (%y) {
    %j = join %a, %b, %c over 1 : f32[4,16]
    %y = neg %j : f32[4,16]
  })");
  const auto joins = kernel::joined_loads(k);
  ASSERT_EQ(joins.size(), 1u);
  EXPECT_EQ(joins[0].loads.size(), 3u);
  EXPECT_EQ(joins[0].choices.size(), 1u);
  const auto* neg = std::get_if<kernel::Compute>(&k.body[k.stores[0].value].operation);
  ASSERT_NE(neg, nullptr);
  EXPECT_EQ(neg->operands, std::vector<kernel::Slot>{joins[0].result});
}

TEST(Joins, of_what_is_computed_or_read_again_load_one_by_one) {
  const std::string_view texts[] = {
      R"(graph @g on cuda:0 (%a: f32[4,8], %b: f32[4,4]) -> (%y) {
        %n = neg %b : f32[4,4]
        %y = join %a, %n over 1 : f32[4,12]
      })",
      R"(graph @g on cuda:0 (%a: f32[4,8], %b: f32[4,4], %c: f32[4,12]) -> (%y) {
        %j = join %a, %b over 1 : f32[4,12]
        %y = join %c, %j over 1 : f32[4,24]
      })",
  };
  for (const std::string_view text : texts) EXPECT_TRUE(kernel::joined_loads(lowered(text)).empty()) << text;
}

/// Beyond the last range nothing may be read: there is no address to choose.
TEST(Joins, that_leave_points_out_load_one_by_one) {
  constexpr std::string_view text = R"(kernel @k over [{}] (in f32 align 16, in f32 align 16, out f32 align 16) {
    %0 = inside i0 in [0, 4) : b8
    %1 = load p0[i0] if %0 reach 4 : f32
    %2 = inside i0 in [4, 8) : b8
    %3 = load p1[-4 + i0] if %2 reach 4 : f32
    %4 = where %0, %1, %3 : f32
    store %4 to p2[i0]
  })";
  const auto joins = [&](std::string_view points) {
    std::string of_points(text);
    return kernel::joined_loads(kernel::parse(of_points.replace(of_points.find("{}"), 2, points))).size();
  };
  EXPECT_EQ(joins("8"), 1u);
  EXPECT_EQ(joins("9"), 0u);
}

}  // namespace
}  // namespace sinter::test
