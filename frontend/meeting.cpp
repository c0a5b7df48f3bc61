#include "frontend/meeting.h"

#include <algorithm>

#include "frontend/difference.h"
#include "frontend/tensor_memory.h"

namespace sinter::frontend {
namespace {

/// True when the numbers that a course read lie in the ranges of the known one's operands, and all else it read is the
/// same.
bool reads_as(const Course& now, const Course& known) {
  if (now.trace.reads.size() != known.trace.reads.size()) return false;
  for (size_t i = 0; i < now.trace.reads.size(); ++i) {
    const Outcome& outcome = now.trace.reads[i].outcome;
    const Operand* operand = known.operand(i);
    const auto number = outcome.number();
    const bool fits =
        operand == nullptr ? outcome == known.trace.reads[i].outcome : number && operand->range->holds(*number);
    if (!fits) return false;
  }
  return true;
}

Recorded recorded(const Course& course) {
  return {course.trace, course.structure, course.operands, *course.optimizers};
}

}  // namespace

bool closes_over_argument(const Guards& known_guards, const Trace& known, const Trace& now,
                          const detail::Flat& arguments) {
  for (const StateSlot& slot : now.states) {
    const at::Tensor tensor = lock(slot.tensor);
    if (tensor.defined() && known_guards.is_bound_to(tensor)) return true;
  }
  return std::any_of(known.states.begin(), known.states.end(), [&](const StateSlot& slot) {
    const at::Tensor tensor = lock(slot.tensor);
    return tensor.defined() && std::any_of(arguments.tensors.begin(), arguments.tensors.end(),
                                           [&](const at::Tensor* argument) { return argument->is_alias_of(tensor); });
  });
}

std::optional<std::string> difference_of(const Recorded& known, const Recorded& now) {
  const TraceComparison compared = compare(known.trace, now.trace);
  if (compared.other) return compared.other;
  if (auto text = known.optimizers.number_difference(known.trace, compared.numbers, now.optimizers.before()))
    return text;
  if (auto text = gradient_difference(known.trace.gradients, now.trace.gradients)) return text;
  if (known.structure != now.structure) return "the result has another structure or other scalars in it";
  return std::nullopt;
}

Meeting meet(const Course& known, const Course& now, const detail::Flat& arguments) {
  Meeting met;
  if (closes_over_argument(known.guards, known.trace, now.trace, arguments)) {
    met.difference = "it closes over a tensor that it was also called with";
    return met;
  }
  const bool reads_the_same = reads_as(now, known);
  if (reads_the_same && known.operands.empty()) {
    met.difference = difference_of(recorded(known), recorded(now));
    met.same = !met.difference;
    return met;
  }
  const auto gradients = gradient_difference(known.trace.gradients, now.trace.gradients);
  if (!gradients) met.operands = common_operands(recorded(now), recorded(known));
  met.same = reads_the_same && met.operands;
  if (!met.operands) met.difference = contradiction(known, now);
  if (reads_the_same && !met.same && !met.difference) {
    met.difference =
        gradients.value_or("a number that it reads decides what it does, between two for which it did the same");
  }
  return met;
}

bool leaves_room(const std::vector<std::shared_ptr<Course>>& courses, const Course& known,
                 const std::vector<Operand>& operands) {
  return std::none_of(courses.begin(), courses.end(), [&](const auto& course) {
    if (course.get() == &known) return false;
    return std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
      if (!known.trace.reads[operand.read].decides) return false;
      if (operand.read >= course->trace.reads.size()) return false;
      if (const Operand* other = course->operand(operand.read)) return other->range->overlaps(*operand.range);
      const auto number = course->trace.reads[operand.read].outcome.number();
      return number && operand.range->spans(*number);
    });
  });
}

bool is_outdated(const Course& known, const Course& now) {
  return known.lost() || !known.optimizers->held_before(*now.optimizers) ||
         !found_alike(known.trace.gradients, now.trace.gradients);
}

}  // namespace sinter::frontend
