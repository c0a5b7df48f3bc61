#include "compiler/ir/text_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compiler/support/errors.h"

namespace sinter::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word_char(char c) { return is_word_start(c) || is_digit(c) || c == '.'; }
bool is_number_char(char c) { return is_word_char(c) && c != '_'; }

size_t run(std::string_view text, size_t from, bool (*accepts)(char)) {
  while (from < text.size() && accepts(text[from])) ++from;
  return from;
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void TextCursor::skip() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++position_;
    } else {
      return;
    }
  }
}

bool TextCursor::accept(std::string_view token) {
  const size_t start = position_;
  skip();
  const size_t end = position_ + token.size();
  const bool same = text_.substr(position_, token.size()) == token;
  const bool whole = !is_word_start(token[0]) || end >= text_.size() || !is_word_char(text_[end]);
  position_ = same && whole ? end : start;
  return same && whole;
}

bool TextCursor::at(std::string_view token) {
  const size_t start = position_;
  const bool comes = accept(token);
  position_ = start;
  return comes;
}

bool TextCursor::accept_adjacent(std::string_view token) {
  return text_.substr(position_, token.size()) == token && accept(token);
}

void TextCursor::expect(std::string_view token, std::string_view example) {
  if (!accept(token)) fail(fmt::format("'{}'", token), example);
}

bool TextCursor::at_end() {
  skip();
  return position_ == text_.size();
}

std::string TextCursor::word(std::string_view what, std::string_view example) {
  skip();
  if (position_ == text_.size() || !is_word_start(text_[position_])) fail(what, example);
  const size_t end = run(text_, position_, is_word_char);
  std::string word(text_.substr(position_, end - position_));
  position_ = end;
  return word;
}

std::string TextCursor::value_name(std::string_view example) {
  skip();
  const size_t end = position_ < text_.size() && text_[position_] == '%' ? run(text_, position_ + 1, is_word_char) : 0;
  if (end <= position_ + 1) fail("a value", example);
  std::string name(text_.substr(position_ + 1, end - position_ - 1));
  position_ = end;
  return name;
}

void TextCursor::escape(std::string& into, std::string_view example) {
  const char c = position_ < text_.size() ? text_[position_] : '\0';
  if (c == '"' || c == '\\') {
    into += c;
  } else if (c == 'n') {
    into += '\n';
  } else if (c == 'x' && position_ + 2 < text_.size() && hex_digit(text_[position_ + 1]) >= 0 &&
             hex_digit(text_[position_ + 2]) >= 0) {
    into += static_cast<char>(hex_digit(text_[position_ + 1]) * 16 + hex_digit(text_[position_ + 2]));
    position_ += 2;
  } else {
    fail_here("an escape (\\\", \\\\, \\n or \\x1f)", example);
  }
  ++position_;
}

std::string TextCursor::quoted(std::string_view example) {
  skip();
  if (!accept("\"")) fail("quoted text", example);
  std::string text;
  while (true) {
    if (position_ == text_.size() || text_[position_] == '\n') fail_here("a closing '\"'", example);
    const char c = text_[position_++];
    if (c == '"') return text;
    if (c == '\\') {
      escape(text, example);
    } else {
      text += c;
    }
  }
}

std::string TextCursor::word_or_quoted(std::string_view what, std::string_view example) {
  return at("\"") ? quoted(example) : word(what, example);
}

std::string_view TextCursor::number_text() {
  skip();
  size_t end = position_;
  if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
  if (end == text_.size()) return {};
  const bool named = text_.substr(end, 3) == "inf" || text_.substr(end, 3) == "nan";
  if (!named && !is_digit(text_[end])) return {};
  end = run(text_, end, is_number_char);
  if (end < text_.size() && (text_[end] == '-' || text_[end] == '+') && !named && text_[end - 1] == 'e') {
    end = run(text_, end + 1, is_digit);
  }
  const std::string_view number = text_.substr(position_, end - position_);
  position_ = end;
  return number;
}

int64_t TextCursor::integer(std::string_view what, std::string_view example) {
  const size_t start = mark();
  const std::string_view number = number_text();
  int64_t value = 0;
  const char* first = number.data() + (number.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(first, number.data() + number.size(), value);
  if (number.empty() || error != std::errc() || end != number.data() + number.size()) {
    position_ = start;
    fail(what, example);
  }
  return value;
}

int64_t TextCursor::natural(int64_t limit, std::string_view what, std::string_view example) {
  const size_t start = mark();
  const int64_t value = integer(what, example);
  if (value < 0 || value > limit) fail_at(start, fmt::format("{} must be between 0 and {}, is {}", what, limit, value));
  return value;
}

std::optional<std::string> TextCursor::line_comment() {
  size_t start = position_;
  while (start < text_.size() && (text_[start] == ' ' || text_[start] == '\t')) ++start;
  if (start == text_.size() || text_[start] != '#') return std::nullopt;
  position_ = std::min(text_.find('\n', start), text_.size());
  std::string_view comment = text_.substr(start + 1, position_ - start - 1);
  if (comment.starts_with(' ')) comment.remove_prefix(1);
  const size_t last = comment.find_last_not_of(" \t\r");
  return std::string(comment.substr(0, last == std::string_view::npos ? 0 : last + 1));
}

size_t TextCursor::mark() {
  skip();
  return position_;
}

std::string TextCursor::found() const {
  if (position_ >= text_.size()) return "the end of the text";
  if (text_[position_] == '\n') return "the end of the line";
  const auto byte = static_cast<unsigned char>(text_[position_]);
  if (byte < 0x20 || byte >= 0x7f) return fmt::format("byte 0x{:02x}", byte);
  const size_t end = std::min(run(text_, position_ + 1, is_word_char), position_ + 40);
  const bool word = is_word_char(text_[position_]) || byte == '%';
  return fmt::format("'{}'", text_.substr(position_, word ? end - position_ : 1));
}

void TextCursor::fail(std::string_view expected, std::string_view example) {
  skip();
  fail_here(expected, example);
}

void TextCursor::fail_here(std::string_view expected, std::string_view example) const {
  const std::string sample = example.empty() ? "" : fmt::format(". Example: {}", example);
  fail_at(position_, fmt::format("expected {}, found {}{}", expected, found(), sample));
}

void TextCursor::fail_at(size_t position, std::string_view problem) const {
  const std::string_view before = text_.substr(0, position);
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  throw UserError(fmt::format("{}:{}:{}: {}", origin_, line, position - line_start + 1, problem));
}

}  // namespace sinter::ir
