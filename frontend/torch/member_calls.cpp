#include "frontend/torch/member_calls.h"

#include <dlfcn.h>
#include <torch/csrc/profiler/unwind/unwind.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "compiler/support/symbol_name.h"
#include "runtime/source_frames.h"

namespace sinter::frontend {
namespace {

constexpr std::string_view anonymous_namespace = "(anonymous namespace)";
constexpr std::string_view anonymous_mark = "{anonymous}";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// The function's name without return type and parameters.
std::string_view bare_name(std::string_view name) {
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '(' && depth == 0 && !name.substr(0, i).ends_with("operator")) return name.substr(start, i - start);
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
    if (c == ' ' && depth == 0) start = i + 1;
  }
  return name.substr(start);
}

/// Position of the last "::" outside of template arguments.
size_t last_scope(std::string_view name) {
  int depth = 0;
  for (size_t i = name.size(); i-- > 1;) {
    if (name[i] == '>') ++depth;
    if (name[i] == '<') --depth;
    if (depth == 0 && name[i] == ':' && name[i - 1] == ':') return i - 1;
  }
  return std::string_view::npos;
}

/// "b::C" of "a<b::C, d>".
std::string_view first_template_argument(std::string_view name) {
  const size_t open = name.find('<');
  int depth = 0;
  for (size_t i = open; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if ((name[i] == ',' && depth == 1) || depth == 0) return name.substr(open + 1, i - open - 1);
  }
  return {};
}

/// A function at an address; the class is empty for one that is no member, the line for one that is not the program's.
struct KnownFunction {
  std::string class_name;
  std::string line;
};

/// The functions at addresses, innermost first; that does not change while the program runs. Thread-safe.
class FunctionTable {
 public:
  CallSite site_of(const Stack& stack) {
    const std::lock_guard lock(mutex_);
    CallSite site;
    for (void* address : stack) {
      for (const KnownFunction& function : functions_at(address)) {
        if (site.line.empty()) site.line = function.line;
        if (!function.class_name.empty()) site.calls.push_back({function.class_name, address});
      }
    }
    std::ranges::reverse(site.calls);
    return site;
  }

 private:
  const std::vector<KnownFunction>& functions_at(void* address) {
    const auto [known, added] = functions_.try_emplace(address);
    if (added) known->second = is_programs_own(address) ? read_own(address) : read_exported(address);
    return known->second;
  }

  /// The call is the instruction before a return address.
  static std::vector<KnownFunction> read_own(void* address) {
    const auto library = torch::unwind::libraryFor(address);
    if (!library || library->second == 0) return {};
    std::vector<KnownFunction> functions;
    for (const runtime::SourceFrame& frame : runtime::source_frames(library->first, library->second - 1)) {
      functions.push_back({class_of_function(frame.function), line_of(frame.function, frame.file, frame.line)});
    }
    return functions;
  }

  /// LibTorch's modules.
  static std::vector<KnownFunction> read_exported(void* address) {
    Dl_info info{};
    if (dladdr(address, &info) == 0 || info.dli_sname == nullptr) return {};
    return {{class_of_function(demangled(info.dli_sname)), {}}};
  }

  std::mutex mutex_;
  std::unordered_map<void*, std::vector<KnownFunction>> functions_;
};

}  // namespace

std::string class_of_function(std::string_view demangled) {
  const std::string marked = replaced(std::string(demangled), anonymous_namespace, anonymous_mark);
  const std::string_view name = bare_name(marked);
  const size_t scope = last_scope(name);
  if (scope == std::string_view::npos) return {};
  std::string_view owner = name.substr(0, scope);
  if (owner.starts_with("torch::nn::AnyModuleHolder<")) owner = first_template_argument(owner);
  return replaced(std::string(owner), anonymous_mark, anonymous_namespace);
}

CallSite call_site(const Stack& stack) {
  static FunctionTable table;
  return table.site_of(stack);
}

}  // namespace sinter::frontend
