#include "frontend/torch/script_place.h"

#include <fmt/format.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <string_view>

namespace sinter::frontend {
namespace {

/// "a.l" of {"TOP(Net)::forward", "a(In)::forward", "l(Linear)::forward"}.
std::string path_of(const std::vector<std::string>& hierarchy) {
  std::string path;
  for (size_t i = 1; i < hierarchy.size(); ++i) {
    const std::string name = hierarchy[i].substr(0, hierarchy[i].find('('));
    path += (path.empty() ? "" : ".") + name;
  }
  return path;
}

/// The innermost line outside PyTorch's own Python.
std::string line_of(const std::vector<torch::jit::StackEntry>& stack) {
  for (const torch::jit::StackEntry& entry : stack) {
    const auto original = entry.range.source() ? entry.range.findSourceRangeThatGenerated() : std::nullopt;
    const auto place = (original ? *original : entry.range).file_line_col();
    if (!place) continue;
    const auto& [file, line, column] = *place;
    const bool python = file.ends_with(".py") && file.find("/torch/") == std::string::npos;
    if (python && !file.starts_with("code/")) return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line);
  }
  return {};
}

}  // namespace

std::optional<StatedPlace> script_place() {
  const auto hierarchy = torch::jit::currentModuleHierarchy();
  if (hierarchy.empty()) return std::nullopt;
  return StatedPlace{path_of(hierarchy), line_of(torch::jit::currentCallstack())};
}

}  // namespace sinter::frontend
