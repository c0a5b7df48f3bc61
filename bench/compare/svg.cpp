#include "bench/compare/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sinter::bench {
namespace {

const char* name(Anchor anchor) {
  if (anchor == Anchor::start) return "start";
  return anchor == Anchor::middle ? "middle" : "end";
}

std::string title_of(const std::string& title) { return "<title>" + escape(title) + "</title>"; }

/// Circle, square, triangle, diamond, cross; as wide as they look equally large.
constexpr std::array<const char*, shape_count> shapes = {"M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z", "M-4.5 -4.5h9v9h-9z",
                                                         "M0 -6L5.6 4.2L-5.6 4.2z", "M0 -6.3L6.3 0L0 6.3L-6.3 0z",
                                                         "M-2 -6h4v4h4v4h-4v4h-4v-4h-4v-4h4z"};

constexpr std::array<double, 3> steps = {1, 2, 5};

/// The largest of 1, 2, 5 times a power of ten that is at most `value`, or with `up` the smallest that is at least it.
double round_to_step(double value, bool up) {
  const double decade = std::pow(10.0, std::floor(std::log10(value)));
  const double digit = value / decade;
  if (up) {
    for (const double step : steps) {
      if (digit <= step * (1 + 1e-9)) return step * decade;
    }
    return 10 * decade;
  }
  double best = 1;
  for (const double step : steps) best = digit >= step * (1 - 1e-9) ? step : best;
  return best * decade;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string shorten(const std::string& text, size_t most) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  size_t characters = 0;
  size_t cut = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (continues(text[i])) continue;
    if (characters + 1 == most) cut = i;
    ++characters;
  }
  return characters <= most ? text : text.substr(0, cut) + "…";
}

std::string show_bytes(double bytes) {
  constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1023.5 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

std::string show_seconds(double seconds) {
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  return seconds < 9999.5 ? fmt::format("{:.4g} s", seconds) : fmt::format("{:.2g} s", seconds);
}

std::string show_count(double count) {
  if (count >= 999.5e6) return fmt::format("{:.2g}", count);
  if (count >= 999.5e3) return fmt::format("{:.3g}M", count / 1e6);
  if (count >= 9999.5) return fmt::format("{:.3g}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

Svg::Svg(double width, double height, std::string_view label, std::string_view classes)
    : body_(fmt::format("<svg class=\"{}\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">",
                        escape(classes), width, height, escape(label))) {}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view classes) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", classes, x1, y1,
                       x2, y2);
}

void Svg::bar(double x, double y, double width, double height, const std::string& classes, const std::string& title) {
  body_ +=
      fmt::format("<rect class=\"mark bar {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">{}</rect>",
                  classes, x, y, width, height, title_of(title));
}

void Svg::curve(const std::vector<std::pair<double, double>>& points, const std::string& classes,
                const std::string& title) {
  std::string path;
  for (const auto& [x, y] : points) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
  body_ += fmt::format("<path class=\"mark curve {}\" d=\"{}\">{}</path>", classes, path, title_of(title));
}

void Svg::mark(size_t shape, double x, double y, const std::string& classes, const std::string& title) {
  body_ += fmt::format("<path class=\"mark point {}\" transform=\"translate({:.1f} {:.1f})\" d=\"{}\">{}</path>",
                       classes, x, y, shapes[shape % shape_count], title_of(title));
}

void Svg::text(double x, double y, std::string_view content, std::string_view classes, Anchor anchor) {
  body_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", classes, x, y,
                       name(anchor), escape(content));
}

std::string swatch(const std::string& classes, std::optional<size_t> shape) {
  std::string body = fmt::format("<path class=\"curve {}\" d=\"M0 7L28 7\"/>", classes);
  if (shape) {
    body += fmt::format("<path class=\"point {}\" transform=\"translate(14 7)\" d=\"{}\"/>", classes,
                        shapes[*shape % shape_count]);
  }
  return "<svg viewBox=\"0 0 28 14\" aria-hidden=\"true\">" + body + "</svg>";
}

LogScale::LogScale(const std::vector<double>& values, double from, double to) : from_(from), to_(to) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  low_ = round_to_step(*least, false);
  high_ = std::max(round_to_step(*most, true), 2 * low_);
}

double LogScale::operator()(double value) const {
  const double share = std::log(value / low_) / std::log(high_ / low_);
  return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
}

std::vector<double> LogScale::ticks(size_t most) const {
  const auto inside = [&](double value) { return value >= low_ * (1 - 1e-9) && value <= high_ * (1 + 1e-9); };
  const int first = static_cast<int>(std::floor(std::log10(low_)));
  const int last = static_cast<int>(std::ceil(std::log10(high_)));
  std::vector<double> fine;
  for (int decade = first; decade <= last; ++decade) {
    for (const double step : steps) {
      if (const double value = step * std::pow(10.0, decade); inside(value)) fine.push_back(value);
    }
  }
  if (fine.size() <= most) return fine;
  const int stride = std::max(1, (last - first + static_cast<int>(most) - 1) / static_cast<int>(most));
  std::vector<double> decades;
  for (int decade = first; decade <= last; decade += stride) {
    if (inside(std::pow(10.0, decade))) decades.push_back(std::pow(10.0, decade));
  }
  return decades;
}

}  // namespace sinter::bench
