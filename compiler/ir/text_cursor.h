#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sinter::ir {

/// Reads tokens of the IR's text form. White space and comments between tokens are skipped. Every failure is a
/// UserError that names line, column, what was expected, what was found and an example.
class TextCursor {
 public:
  /// `origin` opens messages: a file name, or "ir".
  TextCursor(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  /// Consumes `token` (punctuation, or a whole word) if it comes next; otherwise moves nowhere, so that a comment
  /// before it is still there for `line_comment`.
  bool accept(std::string_view token);
  /// The same, with no white space before it.
  bool accept_adjacent(std::string_view token);
  void expect(std::string_view token, std::string_view example);
  [[nodiscard]] bool at(std::string_view token);
  [[nodiscard]] bool at_end();

  /// A name of letters, digits, `_` and `.`, not opening with a digit. `what` describes it in the message.
  std::string word(std::string_view what, std::string_view example);
  /// A value's name, `%h.1`, without the percent sign.
  std::string value_name(std::string_view example);
  /// Text in double quotes.
  std::string quoted(std::string_view example);
  std::string word_or_quoted(std::string_view what, std::string_view example);
  int64_t integer(std::string_view what, std::string_view example);
  /// An integer in [0, limit].
  int64_t natural(int64_t limit, std::string_view what, std::string_view example);
  /// The characters of a number, sign included; empty when no number comes next.
  std::string_view number_text();
  /// A comment between here and the end of this line, without "#" and one space; consumed.
  std::optional<std::string> line_comment();

  /// Where the next token starts.
  [[nodiscard]] size_t mark();
  [[noreturn]] void fail(std::string_view expected, std::string_view example);
  /// A failure at a place marked before: `problem` is the whole sentence.
  [[noreturn]] void fail_at(size_t position, std::string_view problem) const;

 private:
  void skip();
  [[noreturn]] void fail_here(std::string_view expected, std::string_view example) const;
  [[nodiscard]] std::string found() const;
  void escape(std::string& into, std::string_view example);

  std::string_view text_;
  std::string_view origin_;
  size_t position_ = 0;
};

}  // namespace sinter::ir
