#include <charconv>
#include <optional>
#include <string_view>

#include "frontend/model_file/exported_graph.h"

namespace sinter::frontend {
namespace {

/// Reads sympy's printed form by recursive descent.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  std::optional<AffineSize> parse() {
    const auto value = expression(0);
    return rest_.empty() ? value : std::nullopt;
  }

 private:
  static constexpr int kDeepest = 64;

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  std::optional<AffineSize> expression(int depth) {
    if (depth > kDeepest) return std::nullopt;
    if (take("Symbol('")) return symbol();
    if (take("Integer(")) return integer();
    if (take("Mul(")) return fold(depth, times);
    if (take("Add(")) return fold(depth, plus);
    return std::nullopt;
  }

  std::optional<AffineSize> symbol() {
    const size_t quote = rest_.find('\'');
    const size_t end = rest_.find(')');
    if (quote == std::string_view::npos || end == std::string_view::npos || quote > end) return std::nullopt;
    AffineSize value{std::string(rest_.substr(0, quote)), 1, 0};
    rest_.remove_prefix(end + 1);
    return value;
  }

  std::optional<AffineSize> integer() {
    AffineSize value;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value.offset);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return take(")") ? std::optional(value) : std::nullopt;
  }

  template <class Join>
  std::optional<AffineSize> fold(int depth, const Join& join) {
    auto value = expression(depth + 1);
    while (value && take(", ")) {
      const auto next = expression(depth + 1);
      value = next ? join(*value, *next) : std::nullopt;
    }
    return value && take(")") ? value : std::nullopt;
  }

  static std::optional<AffineSize> times(AffineSize a, AffineSize b) {
    if (!a.symbol.empty() && !b.symbol.empty()) return std::nullopt;
    if (!b.symbol.empty()) std::swap(a, b);
    return AffineSize{a.symbol, a.factor * b.offset, a.offset * b.offset};
  }

  static std::optional<AffineSize> plus(const AffineSize& a, const AffineSize& b) {
    if (!a.symbol.empty() && !b.symbol.empty() && a.symbol != b.symbol) return std::nullopt;
    return AffineSize{a.symbol.empty() ? b.symbol : a.symbol, a.factor + b.factor, a.offset + b.offset};
  }

  std::string_view rest_;
};

}  // namespace

std::optional<AffineSize> parse_affine(std::string_view text) { return Parser(text).parse(); }

}  // namespace sinter::frontend
