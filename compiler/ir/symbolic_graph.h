#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/graph_numbers.h"
#include "compiler/ir/size_expression.h"
#include "compiler/ir/size_solver.h"

namespace sinter::ir {

/// A size of an input.
struct InputDim {
  uint32_t input = 0;
  uint32_t dim = 0;
  bool operator==(const InputDim&) const = default;
};

/// A size that changes from call to call: that of one or more dims of inputs, which are equal in every sample.
struct Symbol {
  std::vector<InputDim> dims;
  std::vector<int64_t> samples;
};

/// Why two or more captures are not one graph with other numbers: "argument 1 of aten::mul was 2, is 7, and follows
/// from no size".
struct Unsolved {
  std::string reason;
};

/// A captured graph whose numbers are functions of the sizes of its inputs. Immutable once solved, thread-safe.
class SymbolicGraph {
 public:
  /// Compares captures of one program under several shapes. `first` is one of them, `samples` the numbers of each, in
  /// the same form. Each number that differs becomes a function of the input sizes that differ, each of which must be
  /// at least 2 in every sample: what 0 and 1 do is a program of its own.
  [[nodiscard]] static std::variant<SymbolicGraph, Unsolved> solve(const Graph& first,
                                                                   const std::vector<Numbers>& samples);

  [[nodiscard]] const std::vector<Symbol>& symbols() const { return symbols_; }

  /// The symbols' values for inputs of these sizes; nothing when equal dims differ or one is below 2. `size` gives the
  /// size of an input's dim, which exists.
  template <class Size>
  [[nodiscard]] std::optional<std::vector<int64_t>> bind(Size&& size) const {
    std::vector<int64_t> values;
    for (const Symbol& symbol : symbols_) {
      const int64_t value = size(symbol.dims.front());
      for (const InputDim& dim : symbol.dims) {
        if (size(dim) != value) return std::nullopt;
      }
      if (value < 2) return std::nullopt;
      values.push_back(value);
    }
    return values;
  }

  /// The captured graph under other sizes. Nothing when a size or stride would become 0 or 1 that no sample had so, or
  /// negative, or leave 64 bits.
  [[nodiscard]] std::optional<Graph> instantiate(std::span<const int64_t> values) const;

  /// For each floor division that was found by trial: the remainder its dividend has under these sizes. Where a
  /// remainder is new, the division may round another way.
  [[nodiscard]] std::vector<int64_t> remainders(std::span<const int64_t> values) const;

  /// The solved numbers, in words: "size[0] of result 0 of aten::relu: s0".
  [[nodiscard]] std::vector<std::string> describe() const;
  /// Sizes of an input with symbols in place: "[s0,64]".
  [[nodiscard]] std::string signature(uint32_t input) const;

 private:
  friend class SymbolicSolver;
  struct Varying {
    uint32_t number = 0;  ///< index in numbers_of(graph_)
    SizeId term;
  };

  Graph graph_;
  SizeTable table_;
  std::vector<Symbol> symbols_;
  std::vector<Varying> varying_;  ///< by rising number
  std::vector<SizeSolver::Rounding> roundings_;
};

}  // namespace sinter::ir
