#include "compiler/ir/expression.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>

#include "compiler/support/errors.h"

namespace sinter::ir {

namespace {

struct OperatorName {
  std::string_view symbol;
  std::string_view row;
};
// Longer symbols first.
constexpr std::array comparisons =
    std::to_array<OperatorName>({{"==", "eq"}, {"!=", "ne"}, {"<=", "le"}, {">=", "ge"}, {"<", "lt"}, {">", "gt"}});
constexpr std::array sums = std::to_array<OperatorName>({{"+", "add"}, {"-", "sub"}});
constexpr std::array products = std::to_array<OperatorName>({{"*", "mul"}, {"/", "div"}});
constexpr std::array logics = std::to_array<OperatorName>({{"&", "bitwise_and"}, {"|", "bitwise_or"}});

struct GuardName {
  std::string_view name;
  Guard::Kind kind;
};
constexpr std::array guard_names = std::to_array<GuardName>({{"floating", Guard::Kind::floating},
                                                             {"half", Guard::Kind::half},
                                                             {"integer", Guard::Kind::integer},
                                                             {"boolean", Guard::Kind::boolean},
                                                             {"unsigned", Guard::Kind::is_unsigned},
                                                             {"f16", Guard::Kind::f16},
                                                             {"bf16", Guard::Kind::bf16},
                                                             {"cuda", Guard::Kind::cuda},
                                                             {"cpu", Guard::Kind::cpu}});

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

Expression make_number(Scalar number) {
  Expression made;
  made.kind = Expression::Kind::number;
  made.number = number;
  return made;
}

Expression make_call(OpId op, std::vector<Expression> operands) {
  Expression made;
  made.kind = Expression::Kind::call;
  made.op = op;
  made.operands = std::move(operands);
  return made;
}

/// Recursive descent, one function for each rule of the grammar.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Alternative> decomposition() {
    std::vector<Alternative> alternatives;
    do {
      alternatives.push_back(alternative());
    } while (take(";"));
    skip_space();
    if (at_ < text_.size()) fail("text after the end");
    return alternatives;
  }

 private:
  Alternative alternative() {
    Alternative made;
    const size_t end = std::min(text_.find(';', at_), text_.size());
    if (text_.find(':', at_) < end) {
      do {
        made.guards.push_back(guard());
      } while (take(","));
      expect(":");
    }
    if (take_word("refuse")) {
      made.expression.kind = Expression::Kind::refuse;
    } else {
      made.expression = logic();
    }
    return made;
  }

  Guard guard() {
    Guard made;
    for (const GuardName& known : guard_names) {
      if (!take_word(known.name)) continue;
      made.kind = known.kind;
      return made;
    }
    made.index = arg();
    expect("=");
    if (take_word("none")) return made;
    if (take("'")) {
      made.kind = Guard::Kind::text;
      made.text = quoted();
      return made;
    }
    const double sign = take("-") ? -1.0 : 1.0;
    const Scalar number = literal();
    const auto* whole = std::get_if<int64_t>(&number);
    made.kind = Guard::Kind::number;
    made.number = sign * (whole != nullptr ? static_cast<double>(*whole) : std::get<double>(number));
    return made;
  }

  Expression logic() {
    Expression left = comparison();
    while (const auto op = take_operator(logics)) {
      left = make_call(*op, {std::move(left), comparison()});
      left.logical = true;
    }
    return left;
  }

  Expression comparison() {
    Expression left = sum();
    if (const auto op = take_operator(comparisons)) return make_call(*op, {std::move(left), sum()});
    return left;
  }

  Expression sum() {
    Expression left = product();
    while (const auto op = take_operator(sums)) left = make_call(*op, {std::move(left), product()});
    return left;
  }

  Expression product() {
    Expression left = factor();
    while (const auto op = take_operator(products)) left = make_call(*op, {std::move(left), factor()});
    return left;
  }

  Expression factor() {
    skip_space();
    if (take("-")) return make_call(op_named("neg"), {factor()});
    if (take("(")) {
      Expression inner = logic();
      expect(")");
      return inner;
    }
    Expression made;
    if (take("'")) {
      made.kind = Expression::Kind::text;
      made.text = quoted();
      return made;
    }
    if (peek() == '{') {
      made.kind = Expression::Kind::arg;
      made.index = arg();
      return made;
    }
    if (is_digit(peek())) return make_number(literal());
    return named();
  }

  /// A constant or a call.
  Expression named() {
    const size_t begin = at_;
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "inf") return make_number(std::numeric_limits<double>::infinity());
    if (name == "nan") return make_number(std::numeric_limits<double>::quiet_NaN());
    if (name == "pi") return make_number(std::numbers::pi);
    Expression made;
    if (name == "none") return made;
    if (name == "highest") made.kind = Expression::Kind::highest;
    if (name == "lowest") made.kind = Expression::Kind::lowest;
    if (name == "bits") made.kind = Expression::Kind::bits;
    if (made.kind != Expression::Kind::none) return made;
    if (name == "rounded") return rounded();
    const auto op = find_op(name);
    if (!op) fail(fmt::format("no row is named '{}'", name));
    expect("(");
    std::vector<Expression> operands;
    do {
      operands.push_back(logic());
    } while (take(","));
    expect(")");
    if (operands.size() < row(*op).arity || (row(*op).is_native() && operands.size() > row(*op).arity)) {
      fail(fmt::format("{} takes {} operands", name, row(*op).arity));
    }
    return make_call(*op, std::move(operands));
  }

  Expression rounded() {
    Expression made;
    made.kind = Expression::Kind::rounded;
    expect("(");
    made.operands.push_back(logic());
    expect(")");
    return made;
  }

  uint32_t arg() {
    expect("{");
    if (!is_digit(peek())) fail("an arg is {0}, {1}, ...");
    const auto index = static_cast<uint32_t>(text_[at_++] - '0');
    expect("}");
    return index;
  }

  Scalar literal() {
    skip_space();
    double number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc()) fail("a number is missing");
    const std::string_view digits(begin, end);
    at_ += digits.size();
    if (digits.find_first_of(".e") != std::string_view::npos) return number;
    return static_cast<int64_t>(number);
  }

  std::string quoted() {
    const size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) fail("a quote is not closed");
    const std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return std::string(inside);
  }

  template <size_t Count>
  std::optional<OpId> take_operator(const std::array<OperatorName, Count>& operators) {
    for (const OperatorName& known : operators) {
      if (take(known.symbol)) return op_named(known.row);
    }
    return std::nullopt;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view symbol) {
    skip_space();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }
  bool take_word(std::string_view word) {
    const size_t before = at_;
    if (take(word) && !is_letter(peek()) && peek() != '(') return true;
    at_ = before;
    return false;
  }
  void expect(std::string_view symbol) {
    if (!take(symbol)) fail(fmt::format("'{}' is missing", symbol));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError("op table", fmt::format("{} at column {} of \"{}\"", what, at_ + 1, text_));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<Alternative> parse_decomposition(std::string_view text) { return Parser(text).decomposition(); }

const std::vector<Alternative>& alternatives(OpId op) {
  static const std::vector<std::vector<Alternative>> parsed = [] {
    std::vector<std::vector<Alternative>> all;
    for (const OpRow& entry : op_table()) {
      all.push_back(entry.is_native() ? std::vector<Alternative>()
                                      : parse_decomposition(entry.decomposition().expression));
    }
    return all;
  }();
  return parsed[op.index];
}

}  // namespace sinter::ir
