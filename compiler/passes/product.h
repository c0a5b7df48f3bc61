#pragma once

#include <optional>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// A matrix product of ATen, `left` times `right`, with a bias added or without.
struct Product {
  ir::ValueId left;
  ir::ValueId right;
  std::optional<ir::ValueId> bias;
};

/// The node as `aten::mm`, or as `aten::addmm` whose beta and alpha are 1; nothing where it is neither, or where its
/// result is the memory that a later call writes to (functionalize marks it impure).
[[nodiscard]] std::optional<Product> product_of(const ir::Node& node);

}  // namespace sinter::passes
