#include "frontend/torch/program_place.h"

#include <fmt/format.h>
#include <torch/csrc/profiler/unwind/unwind.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/support/symbol_name.h"

namespace sinter::frontend {
namespace {

using std::string_view;

/// What an address of the program stands for; both empty when it is not the user's code.
struct Place {
  std::string function;  ///< "Bottleneck::forward"
  std::string line;      ///< "resnet.cpp:58"; empty where the program has no line tables
};

/// Libraries that are not the user's program, by the beginning of their file names.
constexpr std::array<string_view, 14> kForeignLibraries{"libtorch", "libc10", "libsinter", "libstdc++",  "libc.so",
                                                        "libm.so",  "libgcc", "libgomp",   "libpthread", "ld-linux",
                                                        "libcu",    "libnv",  "libshm",    "[vdso]"};
/// Namespaces whose templates and inline functions end up in the user's program.
constexpr std::array<string_view, 10> kForeignNamespaces{"torch::",
                                                         "at::",
                                                         "c10::",
                                                         "std::",
                                                         "caffe2::",
                                                         "__gnu_cxx::",
                                                         "testing::",
                                                         "sinter::detail::",
                                                         "sinter::frontend::",
                                                         "sinter::Compiled<"};

string_view file_name(string_view path) { return path.substr(path.find_last_of('/') + 1); }

bool starts_with_any(string_view text, auto const& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](string_view prefix) { return text.starts_with(prefix); });
}

/// The library or program an address lies in; empty when it is not the user's.
std::string program_of(void* address) {
  const auto library = torch::unwind::libraryFor(address);
  if (!library || starts_with_any(file_name(library->first), kForeignLibraries)) return {};
  return library->first;
}

/// The name without what stands before it: "void std::foo<int>(int)" -> "std::foo<int>(int)".
string_view without_return_type(string_view name) {
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(' || name[i] == '{') ++depth;
    if (name[i] == '>' || name[i] == ')' || name[i] == '}') --depth;
    if (name[i] == ' ' && depth == 0 && !name.substr(i + 1).starts_with("const")) start = i + 1;
  }
  return name.substr(start);
}

/// "Net::forward" of "(anonymous namespace)::Net::forward(at::Tensor const&)": no parameters, template arguments or
/// leading namespaces.
std::string short_function_name(const std::string& demangled_name) {
  constexpr string_view anonymous = "(anonymous namespace)::";
  std::string name(without_return_type(demangled_name));
  for (size_t at = name.find(anonymous); at != std::string::npos; at = name.find(anonymous)) {
    name.erase(at, anonymous.size());
  }
  if (const size_t lambda = name.find("::{lambda"); lambda != std::string::npos) {
    return short_function_name(name.substr(0, lambda)) + " lambda";
  }
  std::string plain;
  int depth = 0;
  for (const char c : name) {
    if (c == '(' && depth == 0 && !plain.ends_with("operator")) break;
    if (c == '<') ++depth;
    if (depth == 0) plain += c;
    if (c == '>') --depth;
  }
  const size_t last = plain.rfind("::");
  if (last == std::string::npos || last == 0) return plain;
  const size_t before = plain.rfind("::", last - 1);
  return before == std::string::npos ? plain : plain.substr(before + 2);
}

/// True for a file of LibTorch or the C++ library: code of theirs that the compiler put into a function of the program.
bool is_foreign_header(string_view path) {
  constexpr std::array<string_view, 6> folders{"/torch/",  "/ATen/",        "/c10/",
                                               "/caffe2/", "/include/c++/", "/include/sinter/"};
  const bool header = path.find("/include/") != string_view::npos || path.ends_with(".h");
  return header && std::any_of(folders.begin(), folders.end(),
                               [&](string_view folder) { return path.find(folder) != string_view::npos; });
}

/// The place of a function at a line; of an empty file for "no line known".
Place place_in(const std::string& function, const std::string& file, uint64_t number) {
  const bool has_line = !file.empty() && !is_foreign_header(file);
  const std::string line = has_line ? fmt::format("{}:{}", file_name(file), number) : "";
  if (!starts_with_any(without_return_type(function), kForeignNamespaces)) return {short_function_name(function), line};
  // Code of the program that was inlined into a library's template: the line is the program's, the name is not.
  const bool inlined = has_line && file.find("/include/") == std::string::npos;
  return inlined ? Place{line, line} : Place{};
}

/// The place of one address. The library's own name as the file stands for "no line known".
Place place_of(const torch::unwind::Frame& frame, const std::string& program) {
  if (frame.funcname.empty() || frame.funcname == "??") return {};
  return place_in(demangled(frame.funcname), frame.filename == program ? "" : frame.filename, frame.lineno);
}

/// What addresses of this process mean. That does not change while the program runs, and reading the symbols of a
/// program takes milliseconds, so it is read once per address. Thread-safe.
class PlaceTable {
 public:
  /// The innermost place among these addresses, innermost first.
  std::string innermost(const Stack& addresses) {
    const std::lock_guard lock(mutex_);
    add(addresses);
    for (void* address : addresses) {
      const Place& place = places_.at(address);
      if (!place.function.empty()) return place.line.empty() ? place.function : place.line;
    }
    return {};
  }

 private:
  void add(const Stack& addresses) {
    std::vector<void*> wanted;
    std::vector<std::string> programs;
    for (void* address : addresses) {
      if (!places_.try_emplace(address).second) continue;
      std::string program = program_of(address);
      if (program.empty()) continue;
      wanted.push_back(address);
      programs.push_back(std::move(program));
    }
    if (wanted.empty()) return;
    try {
      const auto read = torch::unwind::symbolize(wanted, torch::unwind::Mode::fast);
      const auto exported = torch::unwind::symbolize(wanted, torch::unwind::Mode::dladdr);  // stripped programs
      for (size_t i = 0; i < wanted.size(); ++i) {
        const bool named = !read[i].funcname.empty() && read[i].funcname != "??";
        places_[wanted[i]] = place_of(named ? read[i] : exported[i], programs[i]);
      }
    } catch (const std::exception&) {
      // A program whose symbols cannot be read has places without names.
    }
  }

  std::mutex mutex_;
  std::unordered_map<void*, Place> places_;
};

}  // namespace

Stack stack_here() { return torch::unwind::unwind(); }

bool is_programs_own(void* address) { return !program_of(address).empty(); }

std::string line_of(const std::string& function, const std::string& file, uint64_t line) {
  if (is_foreign_header(file)) return {};
  const Place place = place_in(function, file, line);
  return place.line.empty() ? place.function : place.line;
}

std::string place_here() {
  static PlaceTable table;
  return table.innermost(stack_here());
}

}  // namespace sinter::frontend
