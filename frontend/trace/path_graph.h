#pragma once

#include <span>
#include <vector>

#include "compiler/ir/graph.h"
#include "frontend/trace/path_tree.h"

namespace sinter::frontend {

/// What an input of the graph is: a value of the segment, or a number that steps are given on every call.
struct PathInput {
  TraceValueId value{};  ///< invalid for a number
  uint32_t step = 0;     ///< that takes it first, counted from 0
  uint32_t number = 0;   ///< of it
  ir::DType dtype = ir::DType::f64;
};

/// A segment in the compiler's terms.
struct PathGraph {
  ir::Graph graph;                        ///< captured stage; its outputs are what the escaped memories hold in the end
  std::vector<PathInput> inputs;          ///< by ir::Input index
  std::vector<int64_t> alignments;        ///< of the inputs
  std::vector<TraceValueId> states;       ///< by ir::State index
  std::vector<int64_t> state_alignments;  ///< of the states
  std::vector<c10::IValue> opaques;
};

/// The graph of the steps that lead to a node. `escaped` are fresh memories of theirs; `states` are inputs that the
/// caller vouches for: they are the same tensors with the same contents in every call.
[[nodiscard]] PathGraph graph_of(std::span<const PathNode* const> steps, std::span<const TraceMemoryId> escaped,
                                 std::span<const TraceValueId> states = {});

/// Tells paths apart by what they do and by the sizes they do it for. Equal for equal ones, and hardly for others.
struct PathHash {
  size_t operators = 0, sizes = 0;

  [[nodiscard]] static PathHash of(std::span<const PathNode* const> steps);
};

}  // namespace sinter::frontend
