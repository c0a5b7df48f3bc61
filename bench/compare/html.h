#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the pages are put together with. Texts of files go through escape() before.
namespace sinter::bench {

/// The template with every {{name}} replaced. What is put in is not searched again.
[[nodiscard]] std::string fill(std::string_view page,
                               const std::vector<std::pair<std::string_view, std::string>>& parts);

/// A table in a region that scrolls on narrow windows.
[[nodiscard]] std::string scrolling(const std::string& label, const std::string& table);

/// page.html, profile_page.html, compile_page.html and page.css of this folder, as built in.
[[nodiscard]] std::string_view page_template();
[[nodiscard]] std::string_view profile_page_template();
[[nodiscard]] std::string_view compile_page_template();
[[nodiscard]] std::string_view page_style();

}  // namespace sinter::bench
