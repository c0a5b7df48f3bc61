#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The little SVG and HTML that the page needs. Every text that comes from a result file goes through escape().
namespace sinter::bench {

/// `text` as HTML and SVG show it literally, in elements and in quoted attributes.
[[nodiscard]] std::string escape(std::string_view text);

/// At most `most` characters, the last an ellipsis where more were there. Never cuts a UTF-8 sequence.
[[nodiscard]] std::string shorten(const std::string& text, size_t most);

/// "1.3 MiB"
[[nodiscard]] std::string show_bytes(double bytes);
/// "40 ms"
[[nodiscard]] std::string show_seconds(double seconds);
/// "20k"
[[nodiscard]] std::string show_count(double count);

enum class Anchor { start, middle, end };

/// A picture in a coordinate system of its own, scaled to the width it gets. Colours are the style sheet's classes.
class Svg {
 public:
  /// `label` says in words what the picture shows.
  Svg(double width, double height, std::string_view label, std::string_view classes = "");

  void line(double x1, double y1, double x2, double y2, std::string_view classes);
  /// `title` is shown when the pointer rests on the mark; so for the marks below.
  void bar(double x, double y, double width, double height, const std::string& classes, const std::string& title);
  void curve(const std::vector<std::pair<double, double>>& points, const std::string& classes,
             const std::string& title);
  /// One of shape_count small shapes around a point.
  void mark(size_t shape, double x, double y, const std::string& classes, const std::string& title);
  void text(double x, double y, std::string_view content, std::string_view classes, Anchor anchor = Anchor::start);

  [[nodiscard]] std::string str() const { return body_ + "</svg>"; }

 private:
  std::string body_;
};

inline constexpr size_t shape_count = 5;

/// A line with a shape on it, or the line alone: an entry of a legend.
[[nodiscard]] std::string swatch(const std::string& classes, std::optional<size_t> shape);

/// Values to positions, by their logarithms. Both ends of the range are powers of ten or 1, 2, 5 times one.
class LogScale {
 public:
  /// Covers the values, which are above zero, from position `from` to position `to`.
  LogScale(const std::vector<double>& values, double from, double to);

  [[nodiscard]] double operator()(double value) const;
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }
  /// At most `most` round values in the range.
  [[nodiscard]] std::vector<double> ticks(size_t most) const;

 private:
  double low_;
  double high_;
  double from_;
  double to_;
};

}  // namespace sinter::bench
