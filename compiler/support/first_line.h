#pragma once

#include <string>
#include <string_view>

namespace sinter {

/// A text up to its first line break: what an error of another library says, without the frames behind it.
[[nodiscard]] inline std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace sinter
