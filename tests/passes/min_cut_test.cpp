#include "compiler/passes/min_cut.h"

#include <gtest/gtest.h>

namespace sinter::passes {
namespace {

constexpr int64_t unlimited = FlowNetwork::unlimited;

TEST(MinCut, takes_the_cheaper_of_two_stages) {
  FlowNetwork network;
  const uint32_t a = network.add_vertex(), b = network.add_vertex(), c = network.add_vertex();
  network.add_edge(FlowNetwork::source, a, unlimited);
  network.add_edge(a, b, 4);
  network.add_edge(b, c, 7);
  network.add_edge(c, FlowNetwork::sink, unlimited);
  const auto side = network.source_side();
  EXPECT_TRUE(side[a]);
  EXPECT_FALSE(side[b]);
  EXPECT_FALSE(side[c]);
}

TEST(MinCut, of_equal_ones_is_the_one_next_to_the_sink) {
  FlowNetwork network;
  const uint32_t a = network.add_vertex(), b = network.add_vertex(), c = network.add_vertex();
  network.add_edge(FlowNetwork::source, a, unlimited);
  network.add_edge(a, b, 5);
  network.add_edge(b, c, 5);
  network.add_edge(c, FlowNetwork::sink, unlimited);
  const auto side = network.source_side();
  EXPECT_TRUE(side[a] && side[b]);
  EXPECT_FALSE(side[c]);
}

/// Two needs that follow from one value: keeping that costs less than either would save alone.
TEST(MinCut, counts_what_several_needs_share_once) {
  FlowNetwork network;
  const uint32_t in = network.add_vertex(), out = network.add_vertex();
  network.add_edge(FlowNetwork::source, in, unlimited);
  network.add_edge(in, out, 6);
  for (int i = 0; i < 2; ++i) {
    const uint32_t need_in = network.add_vertex(), need_out = network.add_vertex();
    network.add_edge(out, need_in, unlimited);
    network.add_edge(need_in, need_out, 4);
    network.add_edge(need_out, FlowNetwork::sink, unlimited);
  }
  const auto side = network.source_side();
  EXPECT_TRUE(side[in]);
  EXPECT_FALSE(side[out]);
}

TEST(MinCut, is_everything_where_nothing_reaches_the_sink) {
  FlowNetwork network;
  const uint32_t a = network.add_vertex(), b = network.add_vertex();
  network.add_edge(FlowNetwork::source, a, unlimited);
  network.add_edge(b, FlowNetwork::sink, 3);
  const auto side = network.source_side();
  EXPECT_TRUE(side[a]);
  EXPECT_FALSE(side[b]);
}

}  // namespace
}  // namespace sinter::passes
