#include "bench/compare/html.h"

#include <fmt/format.h>

namespace sinter::bench {

std::string scrolling(const std::string& label, const std::string& table) {
  return fmt::format("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">{}</div>", label, table);
}

std::string fill(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string filled;
  while (true) {
    const size_t open = page.find("{{");
    if (open == std::string_view::npos) return filled + std::string(page);
    const size_t close = page.find("}}", open);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    filled += page.substr(0, open);
    for (const auto& [part, text] : parts) filled += part == name ? text : "";
    page.remove_prefix(close + 2);
  }
}

}  // namespace sinter::bench
