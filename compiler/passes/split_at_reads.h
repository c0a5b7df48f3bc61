#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// A value that a segment makes for later ones: a result of its node at `position`, or of the read that ends it.
struct Made {
  static constexpr uint32_t by_read = UINT32_MAX;

  uint32_t segment = 0;
  uint32_t position = 0;  ///< in Segment::nodes, or `by_read`
  uint32_t result = 0;
  bool operator==(const Made&) const = default;
};

/// The call that ends a segment. The host runs it, and what it gives decides which segment comes next.
struct ReadCall {
  ir::Call call;
  std::vector<ir::Arg> args;  ///< a ValueId in them counts the segment's outputs
  std::vector<ir::Type> results;
  ir::Scope scope;
};

/// What runs between two reads.
struct Segment {
  /// Functional. Inputs from `split_at_reads`' `inputs` on are made by earlier segments. Outputs: the tensors the read
  /// looks at; of the last segment, those of the whole graph.
  ir::Graph graph;
  std::vector<Made> taken;        ///< by earlier segments, in the order of the inputs that stand for them
  std::vector<ir::NodeId> nodes;  ///< of the graph, counted the same in every graph that begins alike
  std::vector<Made> given;        ///< to later segments: results of its nodes, in ascending order
  std::optional<ReadCall> read;   ///< none ends the last segment
};

/// Cuts a functional graph into one segment more than it has calls marked `read`. `inputs` is the number of the call's
/// own tensor arguments.
///
/// A segment computes what its read looks at; whatever no read needs stands in the last segment, and so do all writes:
/// nothing that outlives the call changes before its last read. Calls with effects (random numbers) stay between the
/// reads they stood between. Views, and looks at inputs and state, are made again where they are used, so that no value
/// that crosses is part of another tensor of the call's. What a segment holds, and the positions of its nodes, depends
/// on the graph up to its read alone.
[[nodiscard]] std::vector<Segment> split_at_reads(const ir::Graph& functional, uint32_t inputs);

/// The segment's graph with these of its values as further outputs.
[[nodiscard]] ir::Graph graph_giving(const Segment& segment, const std::vector<Made>& given);

}  // namespace sinter::passes
