#include "compiler/support/symbol_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace sinter {
namespace {

void erase_all(std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
}

/// Where the parameters' parenthesis opens that closes at the end of the text; its size where there is none.
size_t start_of_parameters(const std::string& text) {
  if (!text.ends_with(')')) return text.size();
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return text.size();
}

/// Where the name begins behind a return type: after the last blank outside of brackets.
size_t end_of_type(const std::string& text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == '>' || text[i] == ')') ++depth;
    if (text[i] == '<' || text[i] == '(') --depth;
    if (text[i] == ' ' && depth == 0) return i + 1;
  }
  return 0;
}

}  // namespace

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

std::string readable_symbol(const std::string& name) {
  std::string text = demangled(name);
  if (text == name) return text;
  erase_all(text, "(anonymous namespace)::");
  text.erase(start_of_parameters(text));
  text.erase(0, end_of_type(text));
  return text;
}

}  // namespace sinter
