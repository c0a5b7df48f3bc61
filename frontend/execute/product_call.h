#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compiler/plan.h"
#include "compiler/support/report.h"
#include "runtime/product.h"
#include "runtime/product_choices.h"

namespace sinter::frontend {

/// A call of `sinter::product` (compiler/passes/library_product.h): the library gets the operands' addresses, in the
/// way that was chosen for their sizes and layouts, or LibTorch's operators compute it. Thread-safe.
class ProductCall {
 public:
  /// Throws InternalError when the arguments are not those of the call.
  explicit ProductCall(const ExternCall& call);

  /// Computes into a new tensor on the current device and stream; on return `stack` holds it. `buffers` are the tensors
  /// of the plan, by buffer id. The first run with operands of new types may measure alternatives.
  void run(const std::vector<at::Tensor>& buffers, torch::jit::Stack& stack) const;

  /// How the last run computed it; nothing before the first.
  [[nodiscard]] std::optional<ChoiceRecord> choice() const;

 private:
  struct Operands {
    at::Tensor left, right;
    std::optional<at::Tensor> bias, summand;
  };
  struct Chosen {
    runtime::ProductProblem problem;
    std::shared_ptr<const runtime::ProductChoice> choice;
  };
  /// What a call that moves keeps its place for.
  struct Last {
    std::atomic<std::shared_ptr<const Chosen>> chosen;
  };

  [[nodiscard]] at::Tensor compute(Operands operands) const;
  [[nodiscard]] at::Tensor by_libtorch(const Operands& operands) const;
  /// Nothing where the library refuses the algorithm.
  [[nodiscard]] static std::optional<at::Tensor> by_library(const runtime::ProductProblem& problem,
                                                            const runtime::ProductAlgorithm& algorithm,
                                                            const Operands& operands);
  [[nodiscard]] std::shared_ptr<const Chosen> choose(const runtime::ProductProblem& problem,
                                                     const Operands& operands) const;
  /// Nothing for a product without elements or terms. Copies operands that the library cannot read where they lie.
  [[nodiscard]] std::optional<runtime::ProductProblem> problem_of(Operands& operands) const;

  uint32_t left_ = 0, right_ = 0;  ///< buffers
  std::optional<uint32_t> bias_, summand_;
  runtime::ProductActivation activation_ = runtime::ProductActivation::none;
  double seconds_ = 0;
  std::unique_ptr<Last> last_ = std::make_unique<Last>();
};

}  // namespace sinter::frontend
