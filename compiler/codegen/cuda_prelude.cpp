#include "compiler/codegen/cuda_prelude.h"

#include <cctype>
#include <set>
#include <vector>

namespace sinter::codegen {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Calls `visit(word, depth of braces and parentheses, next character that is no space)` for every identifier outside
/// comments.
template <class Visit>
void for_each_word(std::string_view text, Visit&& visit) {
  int depth = 0;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    const char c = text[at];
    if (!is_word(c)) {
      if (c == '{' || c == '(') ++depth;
      if (c == '}' || c == ')') --depth;
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    const size_t next = text.find_first_not_of(" \n", end);
    visit(word, depth, next == std::string_view::npos ? '\0' : text[next]);
    at = end;
  }
}

/// Helpers that stand together in a file, between blank lines. What is named before a brace, a parenthesis or template
/// arguments outside of all braces is defined here.
struct Chunk {
  std::string_view text;
  std::set<std::string_view> defines;
  std::set<std::string_view> mentions;
};

Chunk chunk_from(std::string_view text) {
  Chunk chunk{.text = text, .defines = {}, .mentions = {}};
  for_each_word(text, [&](std::string_view word, int depth, char next) {
    const bool opens_type_or_function = next == '{' || next == '(' || next == '<';
    if (depth == 0 && opens_type_or_function && word != "template") chunk.defines.insert(word);
    chunk.mentions.insert(word);
  });
  return chunk;
}

std::vector<Chunk> chunks_of(std::string_view text) {
  std::vector<Chunk> chunks;
  while (!text.empty()) {
    const size_t end = std::min(text.find("\n\n"), text.size());
    if (end > 0) chunks.push_back(chunk_from(text.substr(0, end)));
    text.remove_prefix(std::min(text.size(), end + 1));
    while (!text.empty() && text.front() == '\n') text.remove_prefix(1);
  }
  return chunks;
}

bool defines_any(const Chunk& chunk, const std::set<std::string_view>& wanted) {
  for (const auto name : chunk.defines) {
    if (wanted.contains(name)) return true;
  }
  return false;
}

}  // namespace

std::string cuda_prelude(std::string_view text) {
  static const std::vector<Chunk> helpers = chunks_of(cuda_helpers());
  std::vector<bool> used(helpers.size(), false);
  std::set<std::string_view> wanted = chunk_from(text).mentions;
  for (bool grew = true; grew;) {
    grew = false;
    for (size_t i = 0; i < helpers.size(); ++i) {
      if (used[i] || !defines_any(helpers[i], wanted)) continue;
      used[i] = grew = true;
      wanted.insert(helpers[i].mentions.begin(), helpers[i].mentions.end());
    }
  }
  std::string out;
  for (size_t i = 0; i < helpers.size(); ++i) {
    if (used[i]) out.append(helpers[i].text).append("\n\n");
  }
  return out;
}

}  // namespace sinter::codegen
