// The page in a real browser: Chromium without a window, at the widths of a desk and a phone, light and dark. What the
// screenshots show lies in page-screenshots/ of the working folder.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/compare/compile_page.h"
#include "bench/compare/page.h"
#include "bench/compare/profile_page.h"
#include "bench/compare/svg.h"
#include "tests/compare/compile_rows.h"
#include "tests/compare/profile_rows.h"
#include "tests/compare/rows.h"

namespace sinter::test {
namespace {

namespace fs = std::filesystem;

/// Runs in the page around the one under test and writes one line for everything that is wrong with it.
constexpr const char* checks = R"js(
const frame = document.getElementById('page');
function problems() {
  const page = frame.contentDocument, found = [];
  const box = (element) => element.getBoundingClientRect();
  const paint = (element) => frame.contentWindow.getComputedStyle(element);
  const shown = [...page.querySelectorAll('figure svg')].filter((svg) => box(svg).width > 0);
  for (const svg of shown) {
    const name = svg.getAttribute('aria-label');
    const marks = [...svg.querySelectorAll('.mark')];
    if (!marks.length) found.push('no marks: ' + name);
    for (const mark of marks) {
      if (box(mark).width + box(mark).height < 1) found.push('empty mark: ' + name);
      if (paint(mark).fill === 'none' && paint(mark).stroke === 'none') found.push('mark without a colour: ' + name);
    }
    const texts = [...svg.querySelectorAll('text')];
    for (const [i, text] of texts.entries()) {
      const one = box(text), all = box(svg);
      if (one.left < all.left - 4 || one.right > all.right + 4 || one.bottom > all.bottom + 2)
        found.push('text outside: ' + text.textContent + ' in ' + name);
      if (one.height < 9) found.push('text too small: ' + text.textContent + ' in ' + name);
      for (const other of texts.slice(i + 1)) {
        const two = box(other);
        const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left);
        const high = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
        if (wide > 1 && high > 4) found.push('texts overlap: ' + text.textContent + ', ' + other.textContent + ' in ' + name);
      }
    }
  }
  const root = page.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push('wider than the window: ' + root.scrollWidth);
  return ['plots ' + shown.length, 'dark ' + frame.contentWindow.matchMedia('(prefers-color-scheme: dark)').matches,
          ...found];
}
frame.addEventListener('load', () => {
  document.getElementById('result').textContent = 'BEGIN\n' + problems().join('\n') + '\nEND';
});
)js";

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    const std::string seek = std::string("command -v ") + name + " >/dev/null 2>&1";
    if (std::system(seek.c_str()) == 0) return name;
  }
  return "";
}

struct View {
  const char* name;
  int width;
  int height;
  bool dark;
};

constexpr View views[] = {{"wide-light", 1280, 2600, false},
                          {"wide-dark", 1280, 2600, true},
                          {"narrow-light", 390, 3600, false},
                          {"narrow-dark", 390, 3600, true}};

/// A page shown at a width in a folder of its own.
class Shown {
 public:
  Shown(const std::string& page, const View& view) : view_(view) {
    std::string name = (fs::temp_directory_path() / "sinter-page-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + " cannot be made");
    folder_ = name;
    std::ofstream(folder_ / "shown.html")
        << "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><link rel=\"icon\" href=\"data:,\"></head>"
        << "<body style=\"margin:0\"><iframe id=\"page\" style=\"border:0;width:" << view.width
        << "px;height:" << view.height << "px\" srcdoc=\"" << bench::escape(page) << "\"></iframe>"
        << "<pre id=\"result\" hidden></pre><script>" << checks << "</script></body></html>";
  }
  ~Shown() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  /// Standard output and error of the browser, started with one more option.
  [[nodiscard]] std::string open(const std::string& option) const {
    std::ostringstream command;
    command << "cd '" << folder_.string() << "' && timeout 60 " << browser()
            << " --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --enable-logging=stderr"
            << " --user-data-dir=profile --window-size=" << std::max(view_.width, 500) << "," << view_.height
            << (view_.dark ? " --force-dark-mode " : " ") << option << " shown.html 2>&1";
    std::string said;
    FILE* pipe = popen(command.str().c_str(), "r");
    char buffer[4096];
    while (const size_t read = fread(buffer, 1, sizeof buffer, pipe)) said.append(buffer, read);
    pclose(pipe);
    return said;
  }

 private:
  View view_;
  fs::path folder_;
};

/// What the checks wrote; "none" where the browser did not get that far.
std::string result_of(const std::string& said) {
  const size_t begin = said.find(">BEGIN\n");
  const size_t end = said.find("\nEND<");
  return begin == std::string::npos || end == std::string::npos ? "none" : said.substr(begin + 7, end - begin - 7);
}

/// Many contenders close together, long names, one far away.
bench::Comparison crowded() {
  std::vector<Json> own;
  std::vector<Json> theirs;
  for (int model = 0; model < 7; ++model) {
    const std::string name = model == 3 ? "a_model_with_a_rather_long_name_indeed" : "model" + std::to_string(model);
    for (const char* mode : {"default", "reduce-overhead", "max-autotune"})
      own.push_back(row(name, mode, 1.0 + 0.01 * model));
    for (const char* mode : {"default", "reduce-overhead"}) {
      theirs.push_back(row(name, mode, model == 6 ? 90.0 : 1.4, "torch.compile"));
      theirs.back()["cold_s"] = 40.0;
    }
    theirs.push_back(row(name, "frozen", 2.0, "torchscript"));
    theirs.back()["peak_bytes"] = nullptr;
  }
  for (Json& one : own) one["break_even_calls"] = 120;
  return joined({document(own), document(theirs, {{"torch", "2.10.0"}})});
}

/// Opens a page in every view, with so many plots, and keeps pictures of it.
void expect_no_faults(const std::string& page, int plots, const std::string& name) {
  fs::create_directories("page-screenshots");
  for (const View& view : views) {
    const Shown shown(page, view);
    const std::string said = shown.open("--dump-dom");
    EXPECT_EQ(said.find("CONSOLE"), std::string::npos) << said.substr(0, 2000);
    EXPECT_EQ(result_of(said), "plots " + std::to_string(plots) + "\ndark " + (view.dark ? "true" : "false"))
        << view.name;
    const fs::path picture = fs::absolute("page-screenshots") / (name + view.name + ".png");
    fs::remove(picture);
    (void)shown.open("--screenshot='" + picture.string() + "'");
    ASSERT_TRUE(fs::exists(picture)) << picture;
    EXPECT_GT(fs::file_size(picture), 40000U) << "an empty page is smaller";
  }
}

TEST(Browser, the_page_is_drawn_without_faults_in_every_view) {
  if (browser().empty()) GTEST_SKIP() << "no chromium here (./dev setup installs it where it may)";
  expect_no_faults(to_html(crowded()), 22, "");  // seven cases in three plots each and one of all
}

TEST(Browser, the_page_of_a_profile_is_drawn_without_faults_in_every_view) {
  if (browser().empty()) GTEST_SKIP() << "no chromium here (./dev setup installs it where it may)";
  const std::string name = "a_module_with_a_rather_long_name_indeed_that_goes_on_and_on_beyond_what_fits.cpp:";
  expect_no_faults(bench::profile_page(small_profile(name, 40)), 8, "profile-");  // four plots of two modes
}

TEST(Browser, the_page_of_compile_times_is_drawn_without_faults_in_every_view) {
  if (browser().empty()) GTEST_SKIP() << "no chromium here (./dev setup installs it where it may)";
  const std::string name = "a_function_with_a_rather_long_name_indeed_that_goes_on_and_on_beyond_what_fits";
  expect_no_faults(bench::compile_page(two_processes(name, 30)), 4, "compile-");  // two plots of two processes
}

TEST(Browser, the_checks_notice_a_page_that_is_at_fault) {
  if (browser().empty()) GTEST_SKIP() << "no chromium here (./dev setup installs it where it may)";
  const std::string page =
      "<!DOCTYPE html><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\"><script>1</script>"
      "<figure><svg width=\"200\" height=\"50\" aria-label=\"bare\"><text y=\"20\">one</text><text y=\"20\">two</text>"
      "</svg></figure>";
  const std::string said = Shown(page, views[0]).open("--dump-dom");
  EXPECT_NE(said.find("CONSOLE"), std::string::npos);
  EXPECT_EQ(result_of(said), "plots 1\ndark false\nno marks: bare\ntexts overlap: one, two in bare");
}

}  // namespace
}  // namespace sinter::test
