#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/capture.h"
#include "frontend/difference.h"
#include "frontend/optimizers.h"

namespace sinter::frontend {

/// Floats that a program is taken to treat alike: those between two that recordings have shown it to treat alike, at
/// most a factor of two apart. What a program decides by comparing a number with others, it decides the same for a
/// number between two for which it decided the same; so it would take two decisions within a factor of two to go wrong
/// here.
class NumberRange {
 public:
  /// Nothing for what is no number between others: nan and the infinities.
  [[nodiscard]] static std::optional<NumberRange> of(double number);
  /// Of a number that the program promises not to decide by: holds all of them.
  [[nodiscard]] static NumberRange all() { return {}; }
  /// With what another one has seen; nothing where the numbers are not of one sign.
  [[nodiscard]] std::optional<NumberRange> joined(const NumberRange& other) const;

  [[nodiscard]] bool holds(const ir::Scalar& number) const;
  /// True when a number lies between the smallest and the largest seen, near others or not.
  [[nodiscard]] bool spans(const ir::Scalar& number) const;
  [[nodiscard]] bool overlaps(const NumberRange& other) const;

 private:
  std::vector<double> seen_;  ///< in ascending order; none: all there are
};

/// A read whose number does not steer: it only comes back as an argument of operators or in the result, or nowhere.
struct Operand {
  uint32_t read = 0;
  std::optional<NumberRange> range;  ///< always, once it is known that all of it fits
  std::vector<NumberPlace> arguments;
  std::vector<size_t> results;  ///< offsets of its eight bytes in the structure of the result
};

/// What a recording says, for comparing.
struct Recorded {
  const Trace& trace;
  std::string_view structure;         ///< of the result
  std::span<const Operand> operands;  ///< known so far; their arguments name nodes of `trace`
  const OptimizerLink& optimizers;    ///< the source of other numbers that differ
};

/// The operands of two recordings that differ in nothing but numbers that were read, and those of optimizers: every
/// difference is an argument of an operator that a kernel can take per call, or a number of the result, and equals what
/// the same read gave in both. A float that was read and is the reason of none is an operand of nothing. Arguments name
/// nodes of the first recording. Nothing otherwise.
[[nodiscard]] std::optional<std::vector<Operand>> common_operands(const Recorded& now, const Recorded& known);

/// The recording's graph, with values of the reads in place of the numbers that are operands: 0-dim CPU tensors, made
/// by the read, one of each dtype that is needed.
[[nodiscard]] ir::Graph graph_with_operands(const Trace& trace, const std::vector<Operand>& operands);

}  // namespace sinter::frontend
