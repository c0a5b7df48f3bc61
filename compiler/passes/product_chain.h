#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// A product, and the vector that is added to each of its rows, by the product itself or behind it.
struct BiasedProduct {
  const ir::Node* product = nullptr;
  std::optional<ir::ValueId> bias;
};

/// Finds products of ATen with what follows them, for libraries that compute that as they store. Holds for one graph,
/// which outlives it.
class ProductChains {
 public:
  using Accepts = std::function<bool(const ir::Node&)>;

  /// `accepts` is asked of nodes with a `product_of` whose own result is row-major.
  ProductChains(const ir::Graph& graph, Accepts accepts);

  /// The node as an accepted product, or as the sum of one that nothing else reads and a vector along its last dim.
  [[nodiscard]] std::optional<BiasedProduct> at(const ir::Node& node) const;

  /// What computes a value that nothing else reads, through views that show it in other sizes, where it is a result
  /// as of `is_own`; null otherwise.
  [[nodiscard]] const ir::Node* read_once(const ir::Arg& arg) const;

  /// True for a single result of the node's own, row-major.
  [[nodiscard]] bool is_own(const ir::Node& node) const;

 private:
  [[nodiscard]] bool is_accepted(const ir::Node& node) const;

  const ir::Graph& graph_;
  Accepts accepts_;
  std::vector<uint32_t> uses_;
};

/// True for a vector without gaps that can be added to each row of a product's result.
[[nodiscard]] bool is_vector_along(const ir::Type& vector, const ir::Type& product);

/// The two operands of a sum of ATen without a factor; nothing for other nodes.
[[nodiscard]] std::optional<std::array<ir::Arg, 2>> summands_of(const ir::Node& node);

}  // namespace sinter::passes
