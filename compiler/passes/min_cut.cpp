#include "compiler/passes/min_cut.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>

namespace sinter::passes {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;

struct Arc {
  int64_t capacity = 0, residual = 0;
  Traits::edge_descriptor reverse{};
};
struct Vertex {
  boost::default_color_type color{};
  int64_t distance = 0;
  Traits::edge_descriptor predecessor{};
};
using Network = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Arc>;

}  // namespace

std::vector<bool> FlowNetwork::source_side() const {
  Network network(vertices_);
  for (const Edge& edge : edges_) {
    const auto arc = boost::add_edge(edge.from, edge.to, network).first;
    const auto back = boost::add_edge(edge.to, edge.from, network).first;
    network[arc] = {.capacity = edge.capacity, .residual = 0, .reverse = back};
    network[back] = {.capacity = 0, .residual = 0, .reverse = arc};
  }
  boost::boykov_kolmogorov_max_flow(network, boost::get(&Arc::capacity, network), boost::get(&Arc::residual, network),
                                    boost::get(&Arc::reverse, network), boost::get(&Vertex::predecessor, network),
                                    boost::get(&Vertex::color, network), boost::get(&Vertex::distance, network),
                                    boost::get(boost::vertex_index, network), source, sink);
  std::vector<bool> side(vertices_);
  for (uint32_t vertex = 0; vertex < vertices_; ++vertex) {
    side[vertex] = network[vertex].color != boost::white_color;  // white: what flows to the sink
  }
  return side;
}

}  // namespace sinter::passes
