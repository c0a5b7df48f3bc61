#pragma once

#include <cstdint>
#include <vector>

#include "frontend/torch/modes.h"
#include "frontend/trace/step.h"

namespace sinter::frontend {

struct PathNode;

struct KnownBackward;

/// What has become of the nodes of a segment before a pass.
struct NodeHistory {
  std::vector<uint64_t> others{};              ///< operators that have made nodes and are no steps, as words
  std::vector<const KnownBackward*> passes{};  ///< they have freed what nodes save

  bool operator==(const NodeHistory&) const = default;
};

/// A backward pass whose steps are known: autograd's engine, which calls operators as the graph of nodes tells, need
/// not run to call them one by one.
struct KnownBackward {
  /// What the pass does to a leaf's gradient.
  struct Leaf {
    enum class How : uint8_t { keeps, sets, adds };
    How how = How::keeps;
    TraceValueId gradient{};  ///< that is set
    uint32_t writes = 0;      ///< into the gradient, as versions count them
  };

  std::vector<uint64_t> graph{};  ///< of nodes, as words
  NodeHistory history{};
  Modes modes;                           ///< under which the engine is called
  CallKey key{};                         ///< of the roots' gradients, the leaves and theirs
  SettingSet settings{};                 ///< that decide what its steps compute
  std::vector<const PathNode*> steps{};  ///< in order
  std::vector<Leaf> leaves{};            ///< in the graph's order
  std::vector<TraceMemoryId> given{};    ///< memories that gradients which are set lie in
  const KnownBackward* next = nullptr;   ///< at the same place
};

}  // namespace sinter::frontend
