#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/compare/plots.h"

namespace sinter::bench {
namespace {

constexpr double left = 44;
constexpr double top = 22;
constexpr double foot = 36;
constexpr double mark_radius = 6;

struct Point {
  double x = 0;
  double y = 0;
};

/// Finds room for small labels beside marks.
class Labels {
 public:
  /// Labels stay right of `leftmost`, where the axis has its own, and left of `rightmost`.
  Labels(std::vector<Point> marks, double leftmost, double rightmost)
      : marks_(std::move(marks)), leftmost_(leftmost), rightmost_(rightmost) {}

  /// The centre of a label of this width near `mark`, or nothing where every place is taken.
  std::optional<Point> place(Point mark, double width) {
    const double side = mark_radius + 3 + width / 2;
    const std::array<Point, 6> offsets = {{{side, 0}, {-side, 0}, {0, -12}, {0, 12}, {side - 2, -9}, {-side + 2, -9}}};
    for (const Point& offset : offsets) {
      const Point centre{mark.x + offset.x, mark.y + offset.y};
      const bool inside = centre.x - width / 2 > leftmost_ && centre.x + width / 2 < rightmost_;
      if (!inside || !free(centre, width)) continue;
      labels_.push_back(centre);
      return centre;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool free(Point centre, double width) const {
    const auto near = [&](Point other, double apart_x, double apart_y) {
      return std::abs(centre.x - other.x) < apart_x && std::abs(centre.y - other.y) < apart_y;
    };
    const auto hits_mark = [&](Point mark) { return near(mark, mark_radius + width / 2, mark_radius + 3); };
    const auto hits_label = [&](Point label) { return near(label, width + 2, 11); };
    return std::none_of(marks_.begin(), marks_.end(), hits_mark) &&
           std::none_of(labels_.begin(), labels_.end(), hits_label);
  }

  std::vector<Point> marks_;
  std::vector<Point> labels_;
  double leftmost_;
  double rightmost_;
};

struct Mark {
  size_t number = 0;  ///< of the case
  const Case* one = nullptr;
  const Contender* contender = nullptr;
  double cold_s = 0;
};

std::string words(const Mark& mark) {
  return fmt::format("{}. {} {}, {}: {:.2f}× after {}", mark.number, mark.one->model, mark.one->shape,
                     mark.contender->name, mark.contender->speedup, show_seconds(mark.cold_s));
}

std::vector<Mark> marks_of(const Comparison& comparison) {
  std::vector<Mark> marks;
  for (size_t i = 0; i < comparison.cases.size(); ++i) {
    for (const Contender& contender : comparison.cases[i].contenders) {
      if (contender.row.cold_s) marks.push_back({i + 1, &comparison.cases[i], &contender, *contender.row.cold_s});
    }
  }
  return marks;
}

}  // namespace

std::string gain_scatter(const Comparison& comparison, const Looks& looks, double width, double height,
                         const std::string& classes) {
  const std::vector<Mark> marks = marks_of(comparison);
  if (marks.empty()) return "<p>No first call was measured.</p>";
  std::vector<double> times;
  std::vector<double> gains = {1};
  for (const Mark& mark : marks) {
    times.push_back(mark.cold_s);
    gains.push_back(mark.contender->speedup);
  }
  const double right = width - 16;
  const double bottom = height - foot;
  const LogScale x(times, left, right);
  const LogScale y(gains, bottom, top);
  Svg svg(width, height, "First call of a process against speed-over-eager of later calls; the table has all numbers",
          "scatter " + classes);
  for (const double tick : y.ticks(8)) {
    svg.line(left, y(tick), right, y(tick), tick == 1 ? "reference" : "grid");
    svg.text(left - 6, y(tick) + 4, fmt::format("{:.3g}×", tick), "tick", Anchor::end);
  }
  for (const double tick : x.ticks(width > 500 ? 12 : 6)) {
    svg.line(x(tick), top, x(tick), bottom, "grid");
    svg.text(x(tick), bottom + 15, show_seconds(tick), "tick", Anchor::middle);
  }
  svg.text(left, 12, "speed-up over eager", "tick");
  svg.text(right, height - 4, "first call in a fresh process (cold_s)", "tick", Anchor::end);
  std::vector<Point> points;
  for (const Mark& mark : marks) points.push_back({x(mark.cold_s), y(mark.contender->speedup)});
  for (size_t i = 0; i < marks.size(); ++i) {
    const Look& look = looks.of(marks[i].contender->name);
    svg.mark(look.shape, points[i].x, points[i].y, look.classes, words(marks[i]));
  }
  Labels labels(points, left + 1, width);
  for (size_t i = 0; i < marks.size(); ++i) {
    const std::string number = std::to_string(marks[i].number);
    const auto centre = labels.place(points[i], 6.5 * static_cast<double>(number.size()));
    if (centre) svg.text(centre->x, centre->y + 4, number, "number", Anchor::middle);
  }
  return svg.str();
}

}  // namespace sinter::bench
