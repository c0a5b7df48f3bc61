#include "frontend/trace/path_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "frontend/trace/meta_check.h"

namespace sinter::frontend {
namespace {

using Samples = ir::SizeSolver::Samples;
using Kind = StepNumberPlace::Kind;

bool all_equal(const Samples& samples) {
  return std::ranges::all_of(samples, [&](int64_t sample) { return sample == samples.front(); });
}

int64_t remainder(int64_t dividend, int64_t divisor) { return (dividend % divisor + divisor) % divisor; }

/// Values of unknown symbols do not matter to the terms that are looked at.
std::vector<int64_t> known_or_zero(const std::vector<std::optional<int64_t>>& sizes) {
  std::vector<int64_t> values;
  for (const auto& size : sizes) values.push_back(size.value_or(0));
  return values;
}

}  // namespace

PathSteps steps_of(const PathNode& end) {
  PathSteps steps;
  for (const PathNode* node : steps_to(end)) steps.push_back(&node->step);
  return steps;
}

/// Solves the numbers of steps in their order, each with the terms of the steps before at hand.
class PathFamily::Solver {
 public:
  explicit Solver(std::vector<PathSteps> samples) { family_->samples_ = std::move(samples); }

  std::variant<std::shared_ptr<const PathFamily>, Unsolved> run() {
    if (!is_one_form()) return Unsolved{"the operators differ in more than sizes", {}};
    find_symbols();
    if (family_->symbols_.empty()) return Unsolved{"no size of an input differs", {}};
    std::vector<Samples> symbol_samples;
    for (Symbol& symbol : family_->symbols_) {
      const auto small = std::ranges::find_if(symbol.samples, [](int64_t size) { return size < 2; });
      if (small != symbol.samples.end()) {
        return Unsolved{"a size is 0 or 1", static_cast<size_t>(small - symbol.samples.begin())};
      }
      for (const int64_t size : symbol.samples) symbol.coverage.add(size);
      symbol_samples.push_back(symbol.samples);
    }
    find_asked();
    ir::SizeSolver solver(family_->table_, symbol_samples);
    for (uint32_t step = 0; step < family_->length(); ++step) {
      if (!solve_step(step, solver)) return Unsolved{std::move(reason_), {}};
    }
    note_roundings(solver);
    note_symbols_of_terms();
    return std::shared_ptr<const PathFamily>(std::move(family_));
  }

 private:
  bool is_one_form() {
    const PathSteps& first = family_->samples_.front();
    family_->live_.resize(first.size());
    for (const PathSteps& other : family_->samples_) {
      if (other.size() != first.size()) return false;
      for (size_t i = 0; i < first.size(); ++i) {
        if (!differ_in_numbers_only(*first[i], *other[i], family_->live_[i])) return false;
      }
    }
    return true;
  }

  /// By number of a step, what it is in each recording.
  [[nodiscard]] std::vector<Samples> samples_of(uint32_t step) const {
    std::vector<Samples> samples;
    for (const PathSteps& path : family_->samples_) {
      const StepNumbers numbers = whole_numbers_of(*path[step]);
      samples.resize(numbers.size());
      for (size_t i = 0; i < numbers.size(); ++i) samples[i].push_back(numbers[i]);
    }
    return samples;
  }

  void find_symbols() {
    for (uint32_t step = 0; step < family_->length(); ++step) {
      const auto places = number_places(*family_->samples_.front()[step]);
      const auto samples = samples_of(step);
      for (size_t i = 0; i < places.size(); ++i) {
        if (places[i].kind != Kind::input || all_equal(samples[i])) continue;
        auto& symbols = family_->symbols_;
        auto known = std::ranges::find(symbols, samples[i], &Symbol::samples);
        if (known == symbols.end()) known = symbols.insert(known, {.dims = {}, .samples = samples[i], .coverage = {}});
        known->dims.push_back({step, places[i].value, places[i].dim});
      }
    }
  }

  /// Of a step: each is looked for among the others, and a call that splits a tensor into thousands has thousands.
  static constexpr int64_t most_numbers = 512;

  bool solve_step(uint32_t step, ir::SizeSolver& solver) {
    const Step& recorded = *family_->samples_.front()[step];
    const auto places = number_places(recorded);
    const auto samples = samples_of(step);
    if (std::ranges::count_if(samples, std::not_fn(all_equal)) > most_numbers) {
      reason_ = fmt::format("{}: more than {} of its numbers differ", recorded.facts->name, most_numbers);
      return false;
    }
    family_->varying_.emplace_back();
    std::vector<ir::SizeId> nearby = last_terms_;
    std::vector<ir::SizeId> found;
    for (uint32_t i = 0; i < places.size(); ++i) {
      if (all_equal(samples[i])) continue;
      const auto term = solver.solve(samples[i], nearby);
      if (!term) {
        if (places[i].kind == Kind::argument && family_->live_[step] != 0) continue;  // compared, or taken as it comes
        reason_ = fmt::format("{}: a number was {} and follows from no size", recorded.facts->name,
                              fmt::join(samples[i], ", "));
        return false;
      }
      const Kind kind = places[i].kind;
      const bool of_result = kind == Kind::layout || kind == Kind::place;
      if (of_result && !family_->asked_[step] && !is_number_of_operands(recorded, samples[i])) {
        reason_ =
            fmt::format("{}: LibTorch cannot say what its results look like for other sizes", recorded.facts->name);
        return false;
      }
      family_->varying_.back().push_back({i, *term, kind == Kind::input || kind == Kind::layout});
      if (kind != Kind::argument && kind != Kind::bytes) note_number(recorded, places[i], samples[i]);
      found.push_back(*term);
      nearby.insert(nearby.begin(), *term);
    }
    values_ += static_cast<uint32_t>(recorded.taken.size() + recorded.made.size());
    if (!found.empty()) last_terms_ = std::move(found);
    return true;
  }

  /// True where a size or stride of an operand was the same in every recording.
  [[nodiscard]] bool is_number_of_operands(const Step& step, const Samples& samples) const {
    bool is = false;
    const auto look = [&](ir::ValueId value) {
      const auto found = numbers_.find(value.index);
      is = is || (found != numbers_.end() && std::ranges::find(found->second, samples) != found->second.end());
    };
    for (const ir::Arg& arg : step.args) ir::for_each_value(arg, look);
    return is;
  }

  void note_number(const Step& step, const StepNumberPlace& place, const Samples& samples) {
    const bool made = place.kind == Kind::layout || place.kind == Kind::place;
    const auto taken = static_cast<uint32_t>(step.taken.size());
    numbers_[values_ + place.value + (made ? taken : 0)].push_back(samples);
  }

  /// The steps whose results LibTorch can tell: for every recording it says what was recorded.
  void find_asked() {
    family_->asked_.assign(family_->length(), true);
    for (const PathSteps& path : family_->samples_) {
      MetaCheck check;
      for (size_t i = 0; i < path.size(); ++i) {
        if (!family_->asked_[i]) {
          check.pass(*path[i]);
        } else if (check.add(*path[i]) != MetaCheck::Answer::agrees) {
          family_->asked_[i] = false;
        }
      }
    }
    family_->asked_of_all_ = std::ranges::all_of(family_->asked_, std::identity{});
  }

  void note_roundings(ir::SizeSolver& solver) {
    family_->roundings_ = solver.roundings();
    for (const auto& [dividend, divisor] : family_->roundings_) {
      auto& remainders = family_->remainders_.emplace_back();
      for (const int64_t value : solver.samples(dividend)) remainders.insert(remainder(value, divisor));
    }
  }

  void note_symbols_of_terms() {
    const ir::SizeTable& table = family_->table_;
    for (uint32_t i = 0; i < table.size(); ++i) {
      const ir::SizeTerm& term = table.term({i});
      std::set<uint32_t> symbols;
      if (term.kind == ir::SizeTerm::Kind::symbol) symbols.insert(static_cast<uint32_t>(term.number));
      for (const ir::SizeId operand : {term.left, term.right}) {
        if (!operand.valid()) continue;
        const auto& inner = family_->symbols_of_[operand.index];
        symbols.insert(inner.begin(), inner.end());
      }
      family_->symbols_of_.emplace_back(symbols.begin(), symbols.end());
    }
  }

  std::shared_ptr<PathFamily> family_ = std::make_shared<PathFamily>();
  std::vector<ir::SizeId> last_terms_;                          ///< of the last step in which a number differed
  std::unordered_map<uint32_t, std::vector<Samples>> numbers_;  ///< by value: those of its numbers that differ
  uint32_t values_ = 0;                                         ///< of the steps before
  std::string reason_;
};

std::variant<std::shared_ptr<const PathFamily>, PathFamily::Unsolved> PathFamily::solve(
    std::vector<PathSteps> samples) {
  return Solver(std::move(samples)).run();
}

/// Takes sizes from what a step takes. False where equal dims differ, or a size is unlike those wanted.
bool PathFamily::bind(Sizes& sizes, size_t step, std::span<const TraceValue* const> taken, Wanted wanted) const {
  for (size_t s = 0; s < symbols_.size(); ++s) {
    for (const PathDim& dim : symbols_[s].dims) {
      if (dim.step != step) continue;
      if (dim.value >= taken.size() || dim.dim >= taken[dim.value]->elements.sizes.size()) return false;
      const int64_t size = taken[dim.value]->elements.sizes[dim.dim];
      if (size < 2 || sizes[s].value_or(size) != size) return false;
      const bool vouched = std::ranges::find(wanted.vouched, size) != wanted.vouched.end();
      if (!wanted.any && !vouched && !asked_of_all_ && !symbols_[s].coverage.contains(size)) return false;
      sizes[s] = size;
    }
  }
  return true;
}

bool PathFamily::bind(Sizes& sizes, size_t step, const Step& recorded, Wanted wanted) const {
  std::vector<const TraceValue*> taken;
  for (const TraceValue& value : recorded.taken) taken.push_back(&value);
  return recorded.op == samples_.front()[step]->op && bind(sizes, step, taken, wanted);
}

bool PathFamily::depends_on_unknown(size_t step, const Sizes& sizes) const {
  return std::ranges::any_of(varying_[step], [&](const Varying& varying) {
    return std::ranges::any_of(symbols_of_[varying.term.index], [&](uint32_t symbol) { return !sizes[symbol]; });
  });
}

bool PathFamily::rounds_as_recorded(std::span<const int64_t> terms, const Sizes& sizes) const {
  for (size_t i = 0; i < roundings_.size(); ++i) {
    const auto& [dividend, divisor] = roundings_[i];
    const auto& symbols = symbols_of_[dividend.index];
    if (std::ranges::any_of(symbols, [&](uint32_t symbol) { return !sizes[symbol]; })) continue;
    if (!remainders_[i].contains(remainder(terms[dividend.index], divisor))) return false;
  }
  return true;
}

std::optional<std::vector<int64_t>> PathFamily::terms_for(const Sizes& sizes, Wanted wanted) const {
  auto terms = table_.evaluate(known_or_zero(sizes));
  if (!terms || (!wanted.any && !asked_of_all_ && !rounds_as_recorded(*terms, sizes))) return std::nullopt;
  return terms;
}

/// Nothing where a size would become 0 or 1.
std::optional<Step> PathFamily::instantiate(size_t step, std::span<const int64_t> terms) const {
  StepNumbers numbers = whole_numbers_of(*samples_.front()[step]);
  for (const Varying& varying : varying_[step]) {
    const int64_t value = terms[varying.term.index];
    if (varying.in_layout && value < 2) return std::nullopt;
    numbers[varying.number] = value;
  }
  Step made = with_numbers(*samples_.front()[step], numbers);
  for (const PathSteps& sample : samples_) {
    for (size_t i = 0; i < made.taken.size(); ++i) {
      made.taken[i].alignment = std::min(made.taken[i].alignment, sample[step]->taken[i].alignment);
    }
  }
  return made;
}

bool PathFamily::is_instance(size_t step, const Step& recorded, const Sizes& sizes,
                             std::span<const int64_t> terms) const {
  uint64_t live = 0;
  const auto made = depends_on_unknown(step, sizes) ? std::nullopt : instantiate(step, terms);
  return made && differ_in_numbers_only(*made, recorded, live) && whole_numbers_of(*made) == whole_numbers_of(recorded);
}

std::vector<Step> PathFamily::next(const PathSteps& before, const c10::OperatorHandle& op,
                                   std::span<const TraceValue* const> taken, std::span<const int64_t> vouched) const {
  const Wanted wanted{.vouched = vouched};
  if (before.size() >= length() || samples_.front()[before.size()]->op != op) return {};
  Sizes sizes(symbols_.size());
  for (size_t step = 0; step < before.size(); ++step) {
    if (!bind(sizes, step, *before[step], wanted)) return {};
  }
  if (!bind(sizes, before.size(), taken, wanted)) return {};
  const auto terms = terms_for(sizes, wanted);
  if (!terms) return {};
  for (size_t step = 0; step < before.size(); ++step) {
    if (!is_instance(step, *before[step], sizes, *terms)) return {};
  }
  std::vector<Step> steps;
  for (size_t step = before.size(); step < length() && !depends_on_unknown(step, sizes); ++step) {
    auto made = instantiate(step, *terms);
    if (!made) return {};
    steps.push_back(std::move(*made));
  }
  if (!has_the_layouts_of_libtorch(before, steps)) return {};
  return steps;
}

/// A function that fits every recording may still not be the operator's.
bool PathFamily::has_the_layouts_of_libtorch(const PathSteps& before, std::span<const Step> steps) const {
  MetaCheck check;
  for (const Step* step : before) check.pass(*step);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!asked_[before.size() + i]) {
      check.pass(steps[i]);
    } else if (check.add(steps[i]) != MetaCheck::Answer::agrees) {
      return false;
    }
  }
  return true;
}

std::shared_ptr<const PathFamily> PathFamily::with(const PathSteps& recorded) const {
  if (recorded.size() != length()) return nullptr;
  Sizes sizes(symbols_.size());
  for (size_t step = 0; step < length(); ++step) {
    if (!bind(sizes, step, *recorded[step], Wanted{.any = true})) return nullptr;
  }
  const auto terms = terms_for(sizes, Wanted{.any = true});
  if (!terms) return nullptr;
  for (size_t step = 0; step < length(); ++step) {
    if (!is_instance(step, *recorded[step], sizes, *terms)) return nullptr;
  }
  auto family = std::make_shared<PathFamily>(*this);
  for (size_t s = 0; s < symbols_.size(); ++s) family->symbols_[s].coverage.add(*sizes[s]);
  for (size_t i = 0; i < roundings_.size(); ++i) {
    const auto& [dividend, divisor] = roundings_[i];
    family->remainders_[i].insert(remainder((*terms)[dividend.index], divisor));
  }
  return family;
}

std::vector<std::string> PathFamily::describe() const {
  std::vector<std::string> lines;
  for (size_t s = 0; s < symbols_.size(); ++s) {
    const PathDim& dim = symbols_[s].dims.front();
    lines.push_back(fmt::format("s{}: size[{}] of tensor {} of operator {}, {}", s, dim.dim, dim.value, dim.step + 1,
                                samples_.front()[dim.step]->facts->name));
  }
  return lines;
}

}  // namespace sinter::frontend
