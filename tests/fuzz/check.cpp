#include "check.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "execute.h"
#include "widened.h"

namespace sinter::test::fuzz {
namespace {

using at::Tensor;
using hostile::Observation;
using hostile::Session;
using Observations = std::vector<Observation>;

constexpr int kNearbyRuns = 24;
constexpr int kNearbyWideRuns = 4;
constexpr double kMargin = 4;
constexpr double kTolerance = 1e-4;
constexpr double kKeptWide = 16;
constexpr double kRoundingOfFloats = 1e-6;

Observations run_eager(const Program& program, const hostile::Place& place, const Drawing& drawing = {}) {
  Session session(place, /*compiled=*/false);
  run(program, session, drawing);
  return session.finish();
}

/// Real numbers in double precision; complex ones are two.
Tensor numbers_of(const Tensor& tensor) {
  return (tensor.is_complex() ? at::view_as_real(tensor) : tensor).to(at::kDouble);
}

bool is_continuous(const Tensor& tensor) { return tensor.is_floating_point() || tensor.is_complex(); }

/// The largest difference of two numbers; infinite where they are no numbers in different places.
double distance(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0;
  const Tensor x = numbers_of(a);
  const Tensor y = numbers_of(b);
  const Tensor same = (x == y).logical_or(x.isnan().logical_and(y.isnan()));
  return at::where(same, at::zeros({}, x.options()), (x - y).abs().nan_to_num(std::numeric_limits<double>::infinity()))
      .max()
      .item<double>();
}

double magnitude(const Tensor& a) {
  return a.numel() == 0 ? 0 : numbers_of(a).abs().nan_to_num(0, 0, 0).max().item<double>();
}

bool same_facts(const Observation& a, const Observation& b) { return a.label == b.label && a.facts == b.facts; }

/// What a number near zero may be off: a few steps of a value that shrinks from call to call.
double few_steps(const Tensor& tensor) { return 4 * step_near_zero(tensor.scalar_type()); }

/// Whether compiled differs from eager no more than runs of eager with data a rounding away do.
bool is_rounding(const Observations& eager, const Observations& compiled, const std::vector<Observations>& nearby) {
  if (eager.size() != compiled.size()) return false;
  for (size_t i = 0; i < eager.size(); ++i) {
    if (!same_facts(eager[i], compiled[i])) {
      return std::any_of(nearby.begin(), nearby.end(),
                         [&](const auto& run) { return same_facts(run[i], compiled[i]); });
    }
    for (size_t j = 0; j < eager[i].values.size(); ++j) {
      const Tensor& expected = eager[i].values[j].tensor;
      double reach = 0;
      for (const auto& run : nearby) {
        if (j < run[i].values.size()) reach = std::max(reach, distance(expected, run[i].values[j].tensor));
      }
      const double own = is_continuous(expected) ? kTolerance * magnitude(expected) + few_steps(expected) : 0;
      const double allowed = own + kMargin * reach;
      if (!(distance(expected, compiled[i].values[j].tensor) <= allowed)) return false;
    }
  }
  return true;
}

/// Whether the text of a row is about values, not about what the host code keeps.
bool is_computed(const Row& row) {
  return row.control == Control::none ? row.effect == Effect::none : row.control < Control::every;
}

bool mentions(const Block& block, std::string_view text) {
  return std::any_of(block.body.begin(), block.body.end(), [&](const Instruction& instruction) {
    return (is_computed(*instruction.row) &&
            std::string_view(instruction.row->text).find(text) != std::string_view::npos) ||
           std::any_of(instruction.blocks.begin(), instruction.blocks.end(),
                       [&](const Block& arm) { return mentions(arm, text); });
  });
}

bool has(const Program& program, at::ScalarType dtype) {
  const auto is_drawn = [&](const std::vector<Source>& sources) {
    return std::any_of(sources.begin(), sources.end(), [&](const Source& source) { return source.dtype == dtype; });
  };
  return is_drawn(program.inputs) || is_drawn(program.state) ||
         mentions(program.body, std::string("k") + c10::toString(dtype));
}

/// A rounding of the narrowest type of the program, or a little more.
double rounding_of(const Program& program) {
  if (has(program, at::kBFloat16)) return 8e-3;
  return has(program, at::kHalf) ? 1e-3 : kRoundingOfFloats;
}

/// Whether a rounding of what an operator is given may change its result by more than a rounding.
bool has_steps(const Program& program) {
  static constexpr std::string_view steps[] = {"floor", "round(", "trunc", "sign(", "remainder", "fmod",
                                               "arg",   "sort",   "topk",  "kLong", "kInt",      "kBool",
                                               " > ",   " < ",    "== ",   "where"};
  return std::ranges::any_of(steps, [&](std::string_view step) { return mentions(program.body, step); });
}

/// By number: whether it is `expected`, or no more than `allowed` away from it.
Tensor is_near(const Tensor& found, const Tensor& expected, const Tensor& allowed) {
  const Tensor x = numbers_of(found);
  const Tensor y = numbers_of(expected);
  const Tensor same = (x == y).logical_or(x.isnan().logical_and(y.isnan()));
  return same.logical_or((x - y).abs() <= allowed);
}

/// Runs in the next wider dtype: of the program's own data first, then of data a rounding away.
using WideRuns = std::vector<Observations>;

/// By number: how far value `i` of what observation `at` saw may be off, `rounding` being that of its dtype. Where
/// eager's numbers overflow, those of the wide run tell how large a rounding is; and what calls pass on to the next
/// grows with them, as the runs of data a rounding away tell.
Tensor allowed_of(const WideRuns& wide, size_t at, size_t i, const Tensor& expected, double rounding) {
  const Tensor stored = numbers_of(wide[0][at].values[i].tensor.to(expected.scalar_type()));
  Tensor allowed = at::zeros_like(stored);
  if (!is_continuous(expected)) return allowed;
  allowed += kKeptWide * rounding * std::max(magnitude(expected), magnitude(stored));
  for (const Observations& near : std::span(wide).subspan(1)) {
    if (!same_facts(near[at], wide[0][at])) continue;
    const Tensor moved = numbers_of(near[at].values[i].tensor.to(expected.scalar_type()));
    allowed = allowed.max(kMargin * (moved - stored).abs().nan_to_num(0, 0, 0));
  }
  return allowed;
}

/// Where in a run numbers begin whose squares, or those of their squares, overflow the dtype they are computed in:
/// variances are infinite or no number then as their algorithm has it. What a program squares may be seen nowhere.
size_t first_overflow(const Observations& run) {
  const auto root = [](double most) { return std::sqrt(std::sqrt(most)); };
  static const double of_double = root(std::numeric_limits<double>::max());
  static const double of_float = root(std::numeric_limits<float>::max());
  const auto overflows = [](const hostile::Held& value) {
    if (!is_continuous(value.tensor)) return false;
    // Of halves eager stores what they overflow to, and compiled code goes on with a number.
    if (value.tensor.scalar_type() == at::kHalf) return !value.tensor.isfinite().all().item<bool>();
    return magnitude(value.tensor) > (value.tensor.scalar_type() == at::kDouble ? of_double : of_float);
  };
  const auto has = [&](const Observation& seen) { return std::ranges::any_of(seen.values, overflows); };
  return static_cast<size_t>(std::ranges::find_if(run, has) - run.begin());
}

bool squares_overflow(const Observations& run) { return first_overflow(run) < run.size(); }

/// What squares that overflow leave open: which numbers are finite, anywhere in a run, as intermediate ones are not
/// seen; from where they are, what comparisons make of numbers that are none; and everything where a program makes
/// numbers of what is none.
enum class Open { nothing, finite, steps_too, everything };

Open open_at(size_t observation, size_t overflow, const Observations& run, bool replaces_nan) {
  if (overflow == run.size()) return Open::nothing;
  if (replaces_nan) return Open::everything;
  return observation < overflow ? Open::finite : Open::steps_too;
}

/// Whether each number of a compiled run is that of eager or that of a wide run, but for a few roundings.
bool lies_between(const Observation& eager, const Observation& compiled, const WideRuns& wide, size_t at,
                  double rounding, Open open) {
  const Observation& first = wide[0][at];
  if (!same_facts(eager, compiled) || eager.values.size() != first.values.size()) return false;
  for (size_t i = 0; i < eager.values.size(); ++i) {
    const Tensor& expected = eager.values[i].tensor;
    const Tensor& found = compiled.values[i].tensor;
    if (first.values[i].tensor.sizes() != expected.sizes()) return false;
    if (open == Open::everything || (open == Open::steps_too && !is_continuous(expected))) continue;
    const Tensor stored = first.values[i].tensor.to(expected.scalar_type());
    const Tensor allowed = allowed_of(wide, at, i, expected, rounding);
    Tensor right = is_near(found, expected, allowed).logical_or(is_near(found, stored, allowed));
    if (open != Open::nothing && is_continuous(expected)) {
      right = right.logical_or(numbers_of(expected).isfinite().logical_and(numbers_of(found).isfinite()).logical_not());
    }
    if (!right.all().item<bool>()) return false;
  }
  return true;
}

bool lie_between(const Observations& eager, const Observations& compiled, const WideRuns& wide, double rounding,
                 bool replaces_nan) {
  const auto has_as_many = [&](const Observations& run) { return run.size() == eager.size(); };
  if (!has_as_many(compiled) || !std::ranges::all_of(wide, has_as_many)) return false;
  const size_t overflow = first_overflow(eager);
  for (size_t i = 0; i < eager.size(); ++i) {
    const Open open = open_at(i, overflow, eager, replaces_nan);
    if (!lies_between(eager[i], compiled[i], wide, i, rounding, open)) return false;
  }
  return true;
}

/// Whether ATen's own loops give different halves for one sum with a factor: those for the CPU round the product where
/// a vector is not full, and do not where it is.
bool has_two_sums(const Program& program, const hostile::Place& place) {
  static constexpr std::string_view sums[] = {"add(", "sub(", "add_(", "sub_("};
  return place.device.is_cpu() &&
         std::ranges::any_of(sums, [&](std::string_view sum) { return mentions(program.body, sum); });
}

/// Whether the differences come from numbers that kernels keep wide: each is that of eager or what eager gives with
/// operators in the next wider dtype; and where halves are about, with a rounding after every operator, as eager has
/// it, there are none. What is wide up to a step and rounded there, as kernels have it, may be neither: for halves
/// before a step the second alone decides.
bool is_kept_wide(const Program& program, const hostile::Place& place, const Observations& eager,
                  const Observations& compiled) {
  const double rounding = rounding_of(program);
  const bool halves = rounding >= 1e-3;
  const bool replaces_nan = mentions(program.body, "nan_to_num");
  if (eager.size() != compiled.size()) return false;
  if (!(halves && has_steps(program))) {
    WideRuns wide{run_eager(program, place, {.wide = true})};
    for (uint64_t i = 1; i <= kNearbyWideRuns; ++i) {
      wide.push_back(run_eager(program, place, {.apart = rounding, .seed = i, .wide = true}));
    }
    if (!lie_between(eager, compiled, wide, rounding, replaces_nan)) return false;
  }
  if (!halves) return true;
  Session session(place, /*compiled=*/true);
  run(program, session, {.numerics = Numerics::eager});
  const auto exact = session.finish();
  if (!hostile::difference(eager, exact, hostile::Numbers::rounded)) return true;
  // A result may be of a wider dtype than what it was computed in.
  return lie_between(eager, exact, {eager}, has_two_sums(program, place) ? rounding : kRoundingOfFloats, replaces_nan);
}

void tell(const hostile::Outcome& outcome, Finding& finding) {
  finding.calls = static_cast<int>(outcome.replayed.size());
  finding.replayed = static_cast<int>(std::count(outcome.replayed.begin(), outcome.replayed.end(), true));
  finding.entries = static_cast<int>(outcome.entries.size());
  finding.report = outcome.report;
  for (const auto& entry : outcome.entries) {
    for (const auto& found : entry.breaks) {
      finding.breaks.insert(fmt::format("{} {}", name(found.code), found.op.empty() ? found.reason : found.op));
    }
    if (entry.internal_error.empty()) continue;
    finding.verdict = Verdict::different;
    finding.difference = "internal error: " + entry.internal_error;
  }
}

}  // namespace

Finding check(const Program& program, const hostile::Place& place) {
  const auto eager = run_eager(program, place);
  Session session(place, /*compiled=*/true);
  run(program, session);
  const auto compiled = session.finish();
  Finding finding;
  tell(session.outcome(), finding);
  finding.effects = has_effects(program);
  finding.throws = std::any_of(eager.begin(), eager.end(),
                               [](const auto& seen) { return seen.facts.find("threw ") != std::string::npos; });
  if (finding.verdict == Verdict::different) return finding;
  const auto text = hostile::difference(eager, compiled, hostile::Numbers::rounded);
  if (!text) return finding;
  std::vector<Observations> nearby;
  for (uint64_t i = 1; i <= kNearbyRuns; ++i) {
    nearby.push_back(run_eager(program, place, {.apart = rounding_of(program), .seed = i}));
  }
  // A variance that is no number on one side alone, where squares overflow, may decide which way the program goes.
  const bool lost = squares_overflow(eager) && mentions(program.body, "item<double>()");
  const bool rounding = lost || is_rounding(eager, compiled, nearby) || is_kept_wide(program, place, eager, compiled);
  finding.verdict = rounding ? Verdict::rounding : Verdict::different;
  finding.difference = *text;
  return finding;
}

}  // namespace sinter::test::fuzz
