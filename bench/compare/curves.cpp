#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/compare/plots.h"

namespace sinter::bench {
namespace {

constexpr double width = 360;
constexpr double height = 250;
constexpr double left = 52;
constexpr double right = width - 10;
constexpr double top = 8;
constexpr double bottom = height - 34;
constexpr int samples = 160;
constexpr double shortest = 1e-9;  // a logarithm needs more than zero
constexpr double fewest_calls = 100;
constexpr double most_calls = 1e7;

/// Those whose first call was measured.
std::vector<const Contender*> started(const Case& one) {
  std::vector<const Contender*> all;
  for (const Contender& contender : one.contenders) {
    if (contender.row.cold_s) all.push_back(&contender);
  }
  return all;
}

std::string show_break_even(const Contender& contender) {
  return contender.row.break_even_calls ? fmt::format("pays off after {:.0f} calls", *contender.row.break_even_calls)
                                        : "never pays off";
}

/// Where the axis of calls ends: past the last break-even.
double last_call(const Case& one) {
  double last = fewest_calls;
  for (const Contender& contender : one.contenders)
    last = std::max(last, 5 * contender.row.break_even_calls.value_or(0));
  return std::min(most_calls, std::pow(10.0, std::ceil(std::log10(last) - 1e-9)));
}

std::vector<double> calls_up_to(double last) {
  std::vector<double> calls;
  for (int i = 0; i < samples; ++i) calls.push_back(std::pow(last, static_cast<double>(i) / (samples - 1)));
  return calls;
}

void draw_axes(Svg& svg, const LogScale& x, const LogScale& y) {
  for (const double tick : y.ticks(7)) {
    svg.line(left, y(tick), right, y(tick), "grid");
    svg.text(left - 6, y(tick) + 4, show_seconds(tick), "tick", Anchor::end);
  }
  for (const double tick : x.ticks(8)) {
    svg.line(x(tick), top, x(tick), bottom, "grid");
    svg.text(x(tick), bottom + 15, show_count(tick), "tick", tick == x.high() ? Anchor::end : Anchor::middle);
  }
  svg.text((left + right) / 2, height - 4, "calls", "tick", Anchor::middle);
}

}  // namespace

std::string break_even_curves(const Case& one, const Looks& looks) {
  const std::vector<const Contender*> contenders = started(one);
  const double last = last_call(one);
  const std::vector<double> calls = calls_up_to(last);
  const auto eager = [&own = one.contenders.front().row](double n) {
    return std::max(shortest, eager_total_seconds(own, n));
  };
  std::vector<double> totals = {eager(1), eager(last)};
  std::string label = fmt::format("Total time after up to {} calls, {} {}", show_count(last), one.model, one.shape);
  const auto total_of = [](const Contender& contender, double n) { return total_seconds(contender.row, n).value(); };
  for (const Contender* contender : contenders) {
    totals.insert(totals.end(), {total_of(*contender, 1), total_of(*contender, last)});
    label += fmt::format("; {} {}", contender->name, show_break_even(*contender));
  }
  const LogScale x({1, last}, left, right);
  const LogScale y(totals, bottom, top);
  Svg svg(width, height, label, "curves");
  draw_axes(svg, x, y);
  const auto curve = [&](const auto& total) {
    std::vector<std::pair<double, double>> points;
    for (const double n : calls) points.emplace_back(x(n), y(total(n)));
    return points;
  };
  svg.curve(curve(eager), "eager", "eager");
  for (const Contender* contender : contenders) {
    const auto total = [&](double n) { return total_of(*contender, n); };
    svg.curve(curve(total), looks.of(contender->name).classes, contender->name + ": " + show_break_even(*contender));
  }
  for (const Contender* contender : contenders) {
    const auto paid = [&](double n) { return total_of(*contender, n) <= eager(n); };
    const auto crossing = std::find_if(calls.begin(), calls.end(), paid);
    if (crossing == calls.end() || crossing == calls.begin()) continue;
    const Look& look = looks.of(contender->name);
    svg.mark(look.shape, x(*crossing), y(total_of(*contender, *crossing)), look.classes,
             contender->name + ": " + show_break_even(*contender));
  }
  return svg.str();
}

}  // namespace sinter::bench
