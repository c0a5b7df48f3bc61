#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {

/// Batch norm by stored statistics.
struct StoredNorm {
  std::optional<ir::ValueId> weight, bias;
  ir::ValueId mean, variance;
  double eps = 0;
};

/// A convolution, what is added to each channel of its result, and the norm behind it.
struct ConvolutionChain {
  const ir::Node* convolution = nullptr;
  std::optional<StoredNorm> norm;
};

/// A chain, and what a library adds to its result as it stores.
struct SummedChain {
  ConvolutionChain main;
  std::optional<ir::ValueId> summand;
  std::optional<ConvolutionChain> summands;  ///< the convolution with a norm that the summand is, if nothing else
                                             ///< reads it
};

/// Finds chains whose convolution a library serves, and whose values nothing else reads.
class ConvolutionChains {
 public:
  using IsServed = std::function<bool(const ir::Node&)>;

  /// The graph outlives this.
  ConvolutionChains(const ir::Graph& graph, bool freeze, IsServed is_served);

  /// The chain that ends at the value, or the sum of such a one and another value of its sizes.
  [[nodiscard]] std::optional<SummedChain> summed_chain_behind(ir::ValueId value) const;
  [[nodiscard]] bool is_read_once(ir::ValueId value) const;
  /// True where the weights, with the norm multiplied in, are computed once (frozen.h).
  [[nodiscard]] bool is_kept(const ConvolutionChain& chain) const;

 private:
  [[nodiscard]] std::optional<SummedChain> sum_behind(ir::ValueId value) const;
  [[nodiscard]] std::optional<ConvolutionChain> normed_chain_behind(ir::ValueId value) const;
  [[nodiscard]] std::optional<ConvolutionChain> chain_behind(ir::ValueId value) const;
  [[nodiscard]] bool is_frozen(ir::ValueId value) const { return frozen_[graph_.value(value).producer.index]; }
  [[nodiscard]] bool pays_folded(const ir::Node& convolution) const;
  [[nodiscard]] std::optional<StoredNorm> stored_norm(const ir::Node& node) const;

  const ir::Graph& graph_;
  IsServed is_served_;
  std::vector<uint32_t> uses_;
  std::vector<bool> frozen_;
};

/// A convolution's weights with the norm behind it multiplied in, and what is added to its channels.
struct FoldedConvolution {
  ir::ValueId weight;
  std::optional<ir::ValueId> shift;  ///< f32, but for a bias without a norm
};

/// Adds to a graph what the call that stands for a chain is given.
class ChainFolder {
 public:
  /// Nodes are added in the scope of `at`.
  ChainFolder(Rewriter& rewrite, const ir::Node& at) : rewrite_(rewrite), scope_(at.scope) {}

  FoldedConvolution folded(const ConvolutionChain& chain);
  /// The sum of two shifts.
  std::optional<ir::ValueId> sum(std::optional<ir::ValueId> a, std::optional<ir::ValueId> b);
  /// The value in a dtype: itself where it has that one.
  ir::ValueId cast(ir::ValueId value, ir::DType dtype);
  ir::ValueId add(ir::Payload payload, std::vector<ir::Arg> args, ir::Type type);

 private:
  ir::ValueId computed(std::string_view op, std::vector<ir::Arg> args);
  ir::ValueId vector(ir::ValueId old_value);
  ir::ValueId scaled(ir::ValueId weight, ir::ValueId scale);
  [[nodiscard]] const ir::Type& type(ir::ValueId value) const { return rewrite_.next().type(value); }

  Rewriter& rewrite_;
  ir::ScopeId scope_;
};

/// Numbers as an argument that takes a list alone.
[[nodiscard]] ir::Arg listed(const std::vector<int64_t>& numbers);

}  // namespace sinter::passes
