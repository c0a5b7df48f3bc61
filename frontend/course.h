#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/passes/split_at_reads.h"
#include "compiler/support/report.h"
#include "frontend/capture.h"
#include "frontend/guards.h"
#include "frontend/operands.h"

namespace sinter::frontend {

/// One recorded course of a program that reads tensors on the host: what it does whenever it reads the same. Immutable
/// but for its count of calls and the arguments it is bound to.
struct Course {
  /// `trace` has reads and no break, and was recorded now, on this thread; `results` are the tensors it returned,
  /// `link` the optimizers as the call found them. Throws InternalError when the trace cannot be made functional.
  Course(Trace recorded, std::string result_structure, std::shared_ptr<OptimizerLink> link,
         std::span<const at::Tensor> results, const detail::Flat& arguments, const Modes& modes);

  /// From here on, numbers that the program only hands on are taken from what a call reads. Before the course is
  /// shared.
  void take(std::vector<Operand> numbers, std::span<const at::Tensor> results, const Modes& modes);

  /// Takes over the ranges of these operands, if they are this course's own but for ranges. False when they are not.
  /// While others follow the course.
  [[nodiscard]] bool widen(const std::vector<Operand>& wider);

  /// The operand that a read gives; null where it decides.
  [[nodiscard]] const Operand* operand(size_t read) const;

  Trace trace;
  std::shared_ptr<const OptimizerLink> optimizers;
  GradientGuards gradients;                ///< of the whole call, to be checked before it
  std::string structure;                   ///< of the result
  uint32_t inputs = 0;                     ///< tensor arguments, and the gradients that are inputs of the trace
  std::vector<Operand> operands;           ///< reads whose numbers do not steer
  std::vector<passes::Segment> segments;   ///< one more than reads
  std::vector<std::string> texts;          ///< of the segments, without what they give to later ones
  Guards guards;                           ///< of the whole call
  std::vector<Guards> state_guards;        ///< by segment: of the state it uses
  std::vector<bool> uses_numbers;          ///< by segment: of optimizers
  std::optional<GraphBreak> shares_state;  ///< it writes, and an argument lies in the memory of state
  std::vector<at::Generator> generators;   ///< that it draws from
  std::atomic<int64_t> calls{1};           ///< that read what it read, recordings included

  /// True when the program may do something else by now: state is gone or was replaced.
  [[nodiscard]] bool lost() const { return guards.lost(); }

 private:
  void split(const ir::Graph& graph, std::span<const at::Tensor> results, const Modes& modes);
};

/// Why a program that writes cannot be replayed while an argument lies in the memory of state. `what` names both.
[[nodiscard]] GraphBreak shared_state_break(const std::string& what);

/// Number of reads from the first on that gave the same, before one that is an operand.
[[nodiscard]] size_t common_reads(const Course& a, const Course& b);

/// Why two courses cannot both be what a program does that depends on what it reads alone: up to the first read that
/// gave something else they must be the same. Nothing when they are.
[[nodiscard]] std::optional<std::string> contradiction(const Course& a, const Course& b);

/// "aten::equal true  model.cpp:7" for every read of a course.
[[nodiscard]] std::vector<std::string> describe_reads(const Course& course);

/// Where a call left the course of `known` that reads the most like it: the first read that gave something else.
[[nodiscard]] std::vector<GuardMiss> first_other_read(std::span<const std::shared_ptr<Course>> known,
                                                      const Course& course);

}  // namespace sinter::frontend
