#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/torch/stated_place.h"
#include "sinter/profile.h"

namespace sinter::frontend {

/// Where an operator stands, with its phase, as capture keeps it beside the operator: plans name it for all that went
/// into a kernel.
[[nodiscard]] StatedPlace planned_place(const ModeProfile& profile, const ProfiledOperator& op);

/// What planned_place put into a line.
struct PlannedLine {
  std::optional<Phase> phase;
  std::string line;
  bool in_module = false;  ///< its operator has a module
  bool of_loss = false;    ///< its operator has none and belongs to the loss
};
[[nodiscard]] PlannedLine read_planned(const std::string& source);

/// Where the operators of a step stand, in their order, found when eager ran them. Not thread-safe.
class StepPlaces {
 public:
  StepPlaces() = default;
  /// Of the last traced step.
  explicit StepPlaces(const ModeProfile& profile);

  void begin_step() { next_ = 0; }
  /// The place of the operator that comes next, one that has this name; operators that do not come are passed over.
  /// Null where none is near.
  [[nodiscard]] const StatedPlace* next(const std::string& name);

 private:
  struct Placed {
    std::string name;
    StatedPlace place;
  };
  std::vector<Placed> places_;
  size_t next_ = 0;
};

}  // namespace sinter::frontend
