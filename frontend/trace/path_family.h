#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/size_solver.h"
#include "frontend/trace/path_tree.h"
#include "frontend/trace/size_coverage.h"
#include "frontend/trace/step_numbers.h"

namespace sinter::frontend {

/// The steps of one path, in order.
using PathSteps = std::vector<const Step*>;
[[nodiscard]] PathSteps steps_of(const PathNode& end);

/// A size of an input that changes from call to call.
struct PathDim {
  uint32_t step = 0;   ///< that takes the input, counted from 0
  uint32_t value = 0;  ///< among those it takes
  uint32_t dim = 0;
};

/// Recorded paths that do the same for other sizes: each of their numbers is a function of the sizes of inputs that
/// differ. So a path for further sizes follows without running the program. Immutable once solved; thread-safe.
class PathFamily {
 public:
  /// Why paths are no family.
  struct Unsolved {
    std::string reason;            ///< "aten::view: a number was 3, 4 and follows from no size"
    std::optional<size_t> sample;  ///< the one to blame, where it is one: a size is 0 or 1 in it
  };
  /// Solves paths of the same operators.
  [[nodiscard]] static std::variant<std::shared_ptr<const PathFamily>, Unsolved> solve(std::vector<PathSteps> samples);

  /// The family, knowing the sizes of one more recorded path; null where it would have been thought to do otherwise.
  [[nodiscard]] std::shared_ptr<const PathFamily> with(const PathSteps& recorded) const;

  /// The steps that come next in a call that has done `before`, and now calls an operator that takes these tensors,
  /// none of which earlier steps took: as many as follow from the sizes known so far. Empty where the call is not known
  /// to be one of the family, or has sizes that are neither like those recorded nor among those that the caller vouches
  /// for while LibTorch cannot be asked about all of its operators.
  [[nodiscard]] std::vector<Step> next(const PathSteps& before, const c10::OperatorHandle& op,
                                       std::span<const TraceValue* const> taken,
                                       std::span<const int64_t> vouched) const;

  [[nodiscard]] size_t length() const { return samples_.front().size(); }
  /// Numbers of these steps that kernels take on every call, as bits by step.
  [[nodiscard]] uint64_t live(size_t step) const { return live_[step]; }
  /// "s0: size[0] of tensor 1 of operator 1, aten::relu"
  [[nodiscard]] std::vector<std::string> describe() const;

 private:
  struct Symbol {
    std::vector<PathDim> dims;  ///< equal in every recording
    ir::SizeSolver::Samples samples;
    SizeCoverage coverage;
  };
  /// A number that differs between recordings.
  struct Varying {
    uint32_t number = 0;  ///< of the step
    ir::SizeId term;
    bool in_layout = false;  ///< a size or stride
  };
  using Sizes = std::vector<std::optional<int64_t>>;  ///< by symbol, as far as known

  class Solver;

  /// Which sizes are taken.
  struct Wanted {
    bool any = false;                    ///< else those like recorded ones,
    std::span<const int64_t> vouched{};  ///< and these
  };

  [[nodiscard]] bool bind(Sizes& sizes, size_t step, std::span<const TraceValue* const> taken, Wanted wanted) const;
  [[nodiscard]] bool bind(Sizes& sizes, size_t step, const Step& recorded, Wanted wanted) const;
  /// The values of all terms, those of unknown sizes aside; nothing where one leaves 64 bits, or rounds as none wanted.
  [[nodiscard]] std::optional<std::vector<int64_t>> terms_for(const Sizes& sizes, Wanted wanted) const;
  [[nodiscard]] std::optional<Step> instantiate(size_t step, std::span<const int64_t> terms) const;
  [[nodiscard]] bool has_the_layouts_of_libtorch(const PathSteps& before, std::span<const Step> steps) const;
  [[nodiscard]] bool is_instance(size_t step, const Step& recorded, const Sizes& sizes,
                                 std::span<const int64_t> terms) const;
  [[nodiscard]] bool depends_on_unknown(size_t step, const Sizes& sizes) const;
  [[nodiscard]] bool rounds_as_recorded(std::span<const int64_t> terms, const Sizes& sizes) const;

  std::vector<PathSteps> samples_;  ///< of tree nodes, which outlive the family
  std::vector<Symbol> symbols_;
  ir::SizeTable table_;
  std::vector<std::vector<uint32_t>> symbols_of_;  ///< by term: the symbols it is made of
  std::vector<std::vector<Varying>> varying_;      ///< by step
  std::vector<uint64_t> live_;                     ///< by step
  std::vector<bool> asked_;  ///< by step: LibTorch is asked what its results look like for other sizes
  /// Of every step: sizes unlike those recorded are taken as well, since LibTorch tells what follows from them.
  bool asked_of_all_ = false;
  std::vector<ir::SizeSolver::Rounding> roundings_;
  std::vector<std::set<int64_t>> remainders_;  ///< by rounding: those recorded
};

}  // namespace sinter::frontend
