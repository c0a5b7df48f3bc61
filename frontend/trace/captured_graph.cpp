#include "frontend/trace/captured_graph.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace sinter::frontend {

std::string identifier(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

std::string value_hint(const std::string& op) {
  std::string base = op.substr(op.find("::") + 2);
  base.resize(std::min(base.size(), base.find('.')));
  while (base.ends_with('_')) base.pop_back();
  return base;
}

std::vector<ir::Arg> as_strided_args(ir::ValueId base, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                     int64_t offset) {
  const auto list_of = [](c10::IntArrayRef numbers) {
    ir::ArgList list;
    for (const int64_t number : numbers) list.push_back({number});
    return list;
  };
  return {{base}, {list_of(sizes)}, {list_of(strides)}, {offset}};
}

ir::Device device_of_most_values(const ir::Graph& graph) {
  std::vector<std::pair<ir::Device, size_t>> counts;
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const ir::Device device = graph.value({i}).type.device;
    const auto found = std::ranges::find(counts, device, [](const auto& row) { return row.first; });
    if (found == counts.end()) {
      counts.emplace_back(device, 1);
    } else {
      ++found->second;
    }
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& row) { return row.second; });
  return most == counts.end() ? graph.device : most->first;
}

}  // namespace sinter::frontend
