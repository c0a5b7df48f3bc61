#include "frontend/torch/member_calls.h"

#include <torch/csrc/profiler/unwind/unwind.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "compiler/support/symbol_name.h"

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

/// The classes of the functions at addresses; that does not change while the program runs. Thread-safe.
class ClassTable {
 public:
  std::vector<MemberCall> calls_in(const Stack& stack) {
    const std::lock_guard lock(mutex_);
    add(stack);
    std::vector<MemberCall> calls;
    for (auto address = stack.rbegin(); address != stack.rend(); ++address) {
      const std::string& name = classes_.at(*address);
      if (!name.empty()) calls.push_back({name, *address});
    }
    return calls;
  }

 private:
  void add(const Stack& stack) {
    std::vector<void*> wanted;
    for (void* address : stack) {
      if (classes_.try_emplace(address).second) wanted.push_back(address);
    }
    if (!wanted.empty()) read(wanted);
  }

  /// Exported symbols come first: they are read fast, also those of LibTorch.
  void read(std::vector<void*>& wanted) {
    using torch::unwind::Mode;
    keep(wanted, Mode::dladdr);
    std::erase_if(wanted, [this](void* address) { return !classes_.at(address).empty() || !is_programs_own(address); });
    if (!wanted.empty()) keep(wanted, Mode::fast);
  }

  void keep(const std::vector<void*>& addresses, torch::unwind::Mode mode) {
    try {
      const auto frames = torch::unwind::symbolize(addresses, mode);
      for (size_t i = 0; i < addresses.size(); ++i) {
        classes_[addresses[i]] = class_of_function(demangled(frames[i].funcname));
      }
    } catch (const std::exception&) {
      // A program whose symbols cannot be read has no classes that are known.
    }
  }

  std::mutex mutex_;
  std::unordered_map<void*, std::string> classes_;
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

std::vector<MemberCall> member_calls_in(const Stack& stack) {
  static ClassTable table;
  return table.calls_in(stack);
}

}  // namespace sinter::frontend
