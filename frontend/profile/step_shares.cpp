#include "frontend/profile/step_shares.h"

#include <algorithm>
#include <set>

namespace sinter::frontend {
namespace {

/// Spans as a set of points: sorted, none touches another.
class SpanUnion {
 public:
  explicit SpanUnion(std::vector<Span> spans) {
    std::ranges::sort(spans, {}, &Span::begin);
    for (const Span& span : spans) {
      if (span.end <= span.begin) continue;
      if (!spans_.empty() && span.begin <= spans_.back().end) {
        spans_.back().end = std::max(spans_.back().end, span.end);
      } else {
        spans_.push_back(span);
      }
    }
  }

  /// How much of a span they cover.
  [[nodiscard]] uint64_t covered(const Span& whole) const {
    uint64_t sum = 0;
    auto next = std::ranges::upper_bound(spans_, whole.begin, {}, &Span::end);
    for (; next != spans_.end() && next->begin < whole.end; ++next) {
      sum += std::min(next->end, whole.end) - std::max(next->begin, whole.begin);
    }
    return sum;
  }

 private:
  std::vector<Span> spans_;
};

/// Nanoseconds by what they went to.
struct Nanoseconds {
  uint64_t busy = 0;
  uint64_t between = 0;
  uint64_t launch = 0;
  uint64_t wait = 0;
  uint64_t host = 0;
};

class ShareCount {
 public:
  explicit ShareCount(const StepTimeline& timeline)
      : timeline_(timeline),
        work_(timeline.work),
        waits_(timeline.waits),
        calls_(both(timeline.waits, timeline.launches)) {
    std::ranges::stable_sort(work_, {}, [](const LaunchedWork& work) { return work.ran.begin; });
  }

  Nanoseconds run() {
    for (const Span& step : timeline_.steps) count(step);
    return sums_;
  }

 private:
  static std::vector<Span> both(std::vector<Span> some, const std::vector<Span>& others) {
    some.insert(some.end(), others.begin(), others.end());
    return some;
  }

  void count(const Span& step) {
    uint64_t reached = step.begin;
    for (; next_ < work_.size() && work_[next_].ran.begin < step.end; ++next_) {
      const LaunchedWork& work = work_[next_];
      const uint64_t begin = std::max(work.ran.begin, step.begin);
      const uint64_t end = std::min(work.ran.end, step.end);
      if (begin > reached) count_gap({reached, begin}, work);
      if (work.launch) begun_.insert(*work.launch);
      if (end <= reached) continue;
      sums_.busy += end - std::max(begin, reached);
      reached = end;
    }
    if (step.end > reached) count_host({reached, step.end});
  }

  /// Idle time that ends with `next`.
  void count_gap(const Span& gap, const LaunchedWork& next) {
    if (!next.launch) return count_host(gap);
    const Span& launch = timeline_.launches[*next.launch];
    if (launch.end <= gap.begin || begun_.contains(*next.launch)) {
      sums_.between += gap.end - gap.begin;
      return;
    }
    const uint64_t asked = std::clamp(launch.begin, gap.begin, gap.end);
    count_host({gap.begin, asked});
    sums_.launch += gap.end - asked;
  }

  /// Idle time for which nothing was launched.
  void count_host(const Span& idle) {
    const uint64_t wait = waits_.covered(idle);
    const uint64_t calls = calls_.covered(idle);
    sums_.wait += wait;
    sums_.launch += calls - wait;
    sums_.host += idle.end - idle.begin - calls;
  }

  const StepTimeline& timeline_;
  std::vector<LaunchedWork> work_;  ///< as it began
  SpanUnion waits_;
  SpanUnion calls_;         ///< waits and launches
  std::set<size_t> begun_;  ///< launches of which work has begun
  size_t next_ = 0;         ///< of work_, that no step has counted
  Nanoseconds sums_;
};

}  // namespace

std::optional<StepShares> step_shares(const StepTimeline& timeline) {
  uint64_t whole = 0;
  for (const Span& step : timeline.steps) whole += step.end > step.begin ? step.end - step.begin : 0;
  if (whole == 0) return std::nullopt;
  const Nanoseconds sums = ShareCount(timeline).run();
  const auto share = [whole](uint64_t part) { return static_cast<double>(part) / static_cast<double>(whole); };
  return StepShares{.busy = share(sums.busy),
                    .between = share(sums.between),
                    .launch = share(sums.launch),
                    .wait = share(sums.wait),
                    .host = share(sums.host)};
}

}  // namespace sinter::frontend
