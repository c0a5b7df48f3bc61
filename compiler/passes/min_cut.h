#pragma once

#include <cstdint>
#include <vector>

namespace sinter::passes {

/// A network between a source and a sink, to find what is cheapest to cut so that nothing flows from one to the other
/// (Boykov and Kolmogorov 2004, by Boost.Graph).
class FlowNetwork {
 public:
  static constexpr int64_t unlimited = int64_t{1} << 60;
  static constexpr uint32_t source = 0, sink = 1;

  /// A new vertex.
  uint32_t add_vertex() { return vertices_++; }
  void add_edge(uint32_t from, uint32_t to, int64_t capacity) { edges_.push_back({from, to, capacity}); }

  /// By vertex: true on the source's side of a cheapest cut. Where several are cheapest, it is the one next to the
  /// sink.
  [[nodiscard]] std::vector<bool> source_side() const;

 private:
  struct Edge {
    uint32_t from = 0, to = 0;
    int64_t capacity = 0;
  };

  uint32_t vertices_ = 2;
  std::vector<Edge> edges_;
};

}  // namespace sinter::passes
