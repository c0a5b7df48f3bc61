#include "bench/measure/kernel_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/support/symbol_name.h"
#include "runtime/match_names.h"

namespace sinter::bench {
namespace {

constexpr size_t widest_name = 64;  ///< in the text

void add_once(std::vector<std::string>& words, const std::string& word) {
  if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
}

/// One run of a kernel as a row of its own. Generated kernels of one name (for different sizes, say) are one to a
/// trace.
KernelTableRow row_of(const TracedKernel& kernel, const EntryReport& entry) {
  KernelTableRow row{readable_symbol(kernel.name), KernelOrigin::unknown, {}, {}, 1, kernel.microseconds};
  for (const KernelRecord& record : entry.kernels) {
    if (record.name != kernel.name) continue;
    row.origin = KernelOrigin::generated;
    if (row.ops.empty()) row.ops = record.ops;
    for (const std::string& module : record.modules) add_once(row.modules, module);
  }
  if (row.origin == KernelOrigin::generated || kernel.op.empty()) return row;
  row.origin = KernelOrigin::library;
  row.ops = {kernel.op};
  const auto called = std::find_if(entry.externs.begin(), entry.externs.end(),
                                   [&](const ExternRecord& record) { return record.op == kernel.op; });
  const auto call = static_cast<size_t>(kernel.call);
  if (called != entry.externs.end() && call < called->modules.size()) add_once(row.modules, called->modules[call]);
  return row;
}

std::string shortened(const std::string& text) {
  return text.size() <= widest_name ? text : text.substr(0, widest_name - 3) + "...";
}

std::string some(const std::vector<std::string>& words) {
  if (words.size() <= 3) return fmt::format("{}", fmt::join(words, ", "));
  return fmt::format("{}, {} and {} more", words[0], words[1], words.size() - 2);
}

std::string totals(const std::vector<KernelTableRow>& rows) {
  std::string text;
  for (const KernelOrigin origin : {KernelOrigin::generated, KernelOrigin::library, KernelOrigin::unknown}) {
    int64_t count = 0;
    double microseconds = 0;
    for (const KernelTableRow& row : rows) {
      if (row.origin != origin) continue;
      count += row.count;
      microseconds += row.microseconds;
    }
    if (count == 0) continue;
    text += fmt::format("{}{} {} in {:.1f} us", text.empty() ? "  " : ", ", count, to_string(origin), microseconds);
  }
  return text + "\n";
}

}  // namespace

void attribute_like(const std::vector<TracedKernel>& direct, std::vector<TracedKernel>& kernels) {
  const auto names_of = [](const std::vector<TracedKernel>& all) {
    std::vector<std::string> names;
    for (const TracedKernel& kernel : all) names.push_back(kernel.name);
    return names;
  };
  const auto partners = runtime::match_names(names_of(kernels), names_of(direct));
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!partners[i]) continue;
    kernels[i].op = direct[*partners[i]].op;
    kernels[i].call = direct[*partners[i]].call;
  }
}

std::vector<KernelTableRow> kernel_table(const std::vector<TracedKernel>& kernels, const EntryReport& entry) {
  std::vector<KernelTableRow> rows;
  for (const TracedKernel& kernel : kernels) {
    const KernelTableRow one = row_of(kernel, entry);
    auto known = std::find_if(rows.begin(), rows.end(), [&](const KernelTableRow& row) {
      return row.name == one.name && row.origin == one.origin && row.ops == one.ops;
    });
    if (known == rows.end()) {
      rows.push_back(one);
      continue;
    }
    known->count += one.count;
    known->microseconds += one.microseconds;
    for (const std::string& module : one.modules) add_once(known->modules, module);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const KernelTableRow& a, const KernelTableRow& b) { return a.microseconds > b.microseconds; });
  return rows;
}

std::string to_string(KernelOrigin origin) {
  switch (origin) {
    case KernelOrigin::generated:
      return "generated";
    case KernelOrigin::library:
      return "library";
    case KernelOrigin::unknown:
      break;
  }
  return "unknown";
}

std::string to_text(const std::vector<KernelTableRow>& rows) {
  std::string text =
      fmt::format("  {:>9} {:>5}  {:<64}  {:<9}  {}\n", "us", "count", "kernel", "origin", "operators, modules");
  for (const KernelTableRow& row : rows) {
    text +=
        fmt::format("  {:>9.1f} {:>5}  {:<64}  {:<9}  {}{}\n", row.microseconds, row.count, shortened(row.name),
                    to_string(row.origin), some(row.ops), row.modules.empty() ? "" : "  [" + some(row.modules) + "]");
  }
  return text + totals(rows);
}

}  // namespace sinter::bench
