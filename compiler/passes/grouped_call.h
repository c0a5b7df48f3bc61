#pragma once

#include <vector>

#include "compiler/passes/reduction_rules.h"

namespace sinter::passes {

/// The row-major sizes in which a group of channels is a row.
struct Grouped {
  int64_t samples = 0;
  int64_t groups = 0;
  int64_t channels = 0;  ///< of one group
  int64_t elements = 0;  ///< of one channel

  [[nodiscard]] std::vector<ir::Dim> sizes() const { return {samples, groups, channels, elements}; }
};

/// The sizes that a call names at `first` and after it: N, C, HxW and the number of groups.
[[nodiscard]] std::optional<Grouped> grouped_sizes(const CallSite& site, size_t first);

/// A tensor of floats that kernels can read as one of these sizes: row-major, or an image whose channels lie otherwise,
/// channels-last among others. Nothing where it is none.
[[nodiscard]] std::optional<ir::Type> seen_in_groups(const ir::Graph& graph, const ir::Arg& arg,
                                                     const Grouped& grouped);

/// True when the argument is a row-major tensor of floats of as many elements as the sizes say, that kernels can read.
[[nodiscard]] bool is_grouped(const ir::Graph& graph, const ir::Arg& arg, const Grouped& grouped);

/// True when the argument is None or a vector over the channels that kernels can read.
[[nodiscard]] bool is_parameter(const ir::Graph& graph, const ir::Arg& arg, const Grouped& grouped);

}  // namespace sinter::passes
