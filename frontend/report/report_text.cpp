#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "compiler/support/compile_phases.h"
#include "sinter/report.h"

namespace sinter {
namespace {

constexpr size_t max_listed = 12;  ///< kernels and library calls a report lists; the JSON has all of them

std::string bytes(int64_t count) {
  if (count >= int64_t{1} << 20) return fmt::format("{:.1f} MiB", static_cast<double>(count) / (1 << 20));
  if (count >= 1 << 10) return fmt::format("{:.1f} KiB", static_cast<double>(count) / (1 << 10));
  return fmt::format("{} B", count);
}

std::string plural(int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// "layer1.0.bn3, layer1.0.relu and 14 more"
std::string some(const std::vector<std::string>& words) {
  std::vector<std::string> shown;
  for (const auto& word : words) {
    if (!word.empty() && std::find(shown.begin(), shown.end(), word) == shown.end()) shown.push_back(word);
  }
  if (shown.size() <= 3) return fmt::format("{}", fmt::join(shown, ", "));
  return fmt::format("{}, {}, {} and {} more", shown[0], shown[1], shown[2], shown.size() - 3);
}

/// Passes are summed up; everything else is named.
std::string compile_line(const EntryReport& entry) {
  double total = 0;
  double passes = 0;
  std::string parts;
  for (const auto& phase : entry.phases) {
    total += phase.seconds;
    if (pass_of(phase.name)) {
      passes += phase.seconds;
    } else {
      parts += fmt::format("  {} {:.3f}", phase.name, phase.seconds);
    }
  }
  if (passes > 0) parts += fmt::format("  passes {:.3f}", passes);
  return fmt::format("  compile   {:.3f} s:{}\n", total, parts);
}

/// How the kernels were come by, and why the cache on disk did not have those that were built.
std::string cache_line(const EntryReport& entry) {
  const KernelOrigins origins = entry.kernel_origins();
  std::vector<std::string> misses;
  for (const auto& [reason, count] : origins.misses) misses.push_back(fmt::format("{} {}", count, reason));
  return fmt::format("  kernels   {} built{}, {} shared, {} from disk\n", origins.built,
                     misses.empty() ? "" : fmt::format(" ({})", fmt::join(misses, ", ")), origins.shared, origins.disk);
}

std::string work_line(const EntryReport& entry) {
  int64_t launches = 0;
  int64_t calls = 0;
  for (const auto& kernel : entry.kernels) launches += kernel.launches;
  for (const auto& call : entry.externs) calls += call.calls;
  auto line = fmt::format("  work      {} of {}, {} a call", plural(launches, "launch", "launches"),
                          plural(static_cast<int64_t>(entry.kernels.size()), "kernel", "kernels"),
                          plural(calls, "library call", "library calls"));
  if (entry.graphs > 0) line += fmt::format(", in {}", plural(entry.graphs, "CUDA Graph", "CUDA Graphs"));
  return line + "\n";
}

std::string dynamic_lines(const EntryReport& entry) {
  std::string lines;
  for (const auto& symbol : entry.dynamic) lines += fmt::format("  dynamic   {}\n", symbol);
  if (entry.instantiations == 0) return lines;
  return lines + fmt::format("  shapes    {} without a recording, {:.2f} ms each, {} built for them\n",
                             entry.instantiations,
                             1e3 * entry.instantiation_seconds / static_cast<double>(entry.instantiations),
                             plural(entry.built_for_instantiations, "kernel", "kernels"));
}

std::string memory_line(const EntryReport& entry) {
  const auto& memory = entry.memory;
  auto line = fmt::format("  memory    arena {}", bytes(memory.arena_bytes));
  if (memory.peak_bytes >= 0) line += fmt::format(", peak {}", bytes(memory.peak_bytes));
  if (memory.eager_peak_bytes >= 0) line += fmt::format(" (eager {})", bytes(memory.eager_peak_bytes));
  return line + "\n";
}

std::string kernel_lines(const EntryReport& entry) {
  std::string lines;
  for (size_t i = 0; i < std::min(entry.kernels.size(), max_listed); ++i) {
    const auto& kernel = entry.kernels[i];
    lines += fmt::format("  kernel    {} x{}  {}", kernel.name, kernel.launches, bytes(kernel.bytes));
    if (kernel.registers >= 0) lines += fmt::format("  {} registers", kernel.registers);
    if (kernel.spill_bytes > 0) lines += fmt::format("  {} spilled", bytes(kernel.spill_bytes));
    if (const auto modules = some(kernel.modules); !modules.empty()) lines += "  " + modules;
    if (const auto sources = some(kernel.sources); !sources.empty()) lines += "  [" + sources + "]";
    lines += '\n';
  }
  if (entry.kernels.size() > max_listed) {
    lines += fmt::format("            and {} more kernels\n", entry.kernels.size() - max_listed);
  }
  return lines;
}

std::string extern_lines(const EntryReport& entry) {
  std::string lines;
  for (size_t i = 0; i < std::min(entry.externs.size(), max_listed); ++i) {
    const auto& call = entry.externs[i];
    lines += fmt::format("  library   {} x{}", call.op, call.calls);
    if (const auto modules = some(call.modules); !modules.empty()) lines += "  " + modules;
    lines += '\n';
  }
  if (entry.externs.size() > max_listed) {
    lines += fmt::format("            and {} more operators\n", entry.externs.size() - max_listed);
  }
  return lines;
}

/// "  choice    f16[64,512] x f16[512,512] + bias x12: cuBLASLt 3, measured (LibTorch 5.1 us, cuBLASLt 0 5.2, ...)"
std::string choice_lines(const EntryReport& entry) {
  std::string lines;
  for (size_t i = 0; i < std::min(entry.choices.size(), max_listed); ++i) {
    const ChoiceRecord& choice = entry.choices[i];
    lines += fmt::format("  choice    {} x{}: {}, {}", choice.problem, choice.calls, choice.chosen, choice.origin);
    std::string times;
    for (const auto& [way, microseconds] : choice.measured) {
      times += fmt::format("{}{} {:.1f}{}", times.empty() ? "" : ", ", way, microseconds, times.empty() ? " us" : "");
    }
    lines += times.empty() ? "\n" : fmt::format(" ({})\n", times);
  }
  if (entry.choices.size() > max_listed) {
    lines += fmt::format("            and {} more choices\n", entry.choices.size() - max_listed);
  }
  return lines;
}

std::string break_lines(const GraphBreak& found) {
  auto line = fmt::format("  break     {}", name(found.code));
  if (!found.op.empty()) line += "  " + found.op;
  if (!found.where.empty()) line += "  " + found.where;
  line += "\n            " + found.reason + "\n";
  if (!found.hint.empty()) line += "            try: " + found.hint + "\n";
  return line;
}

std::string entry_text(const EntryReport& entry, size_t number) {
  auto text =
      fmt::format("entry {}  {}{}{}  {}\n", number, entry.signature.empty() ? "no tensors" : entry.signature,
                  entry.device.empty() ? "" : "  ", entry.device, entry.compiled ? "compiled" : "runs as eager");
  const std::string early =
      entry.early == 0 ? "" : fmt::format(", {} begun before all operators were called", entry.early);
  text += fmt::format("  calls     {} replayed{}\n", entry.replays, early);
  text += dynamic_lines(entry);
  if (!entry.phases.empty()) text += compile_line(entry);
  if (!entry.kernels.empty()) text += cache_line(entry);
  if (entry.compiled) text += work_line(entry) + memory_line(entry);
  text += kernel_lines(entry) + extern_lines(entry) + choice_lines(entry);
  for (const auto& found : entry.breaks) text += break_lines(found);
  if (!entry.internal_error.empty()) text += fmt::format("  error     {}\n", entry.internal_error);
  for (const auto& note : entry.notes) text += fmt::format("  note      {}\n", note);
  return text;
}

}  // namespace

std::string Report::text() const {
  int64_t breaks = 0;
  for (const auto& entry : entries) breaks += static_cast<int64_t>(entry.breaks.size());
  auto text =
      fmt::format("{}  {}  {}, {}\n", function, mode, plural(static_cast<int64_t>(entries.size()), "entry", "entries"),
                  plural(breaks, "break", "breaks"));
  for (const auto& note : notes) text += fmt::format("note  {}\n", note);
  if (!failed_at.empty()) text += fmt::format("threw  {}\n", failed_at);
  for (size_t i = 0; i < entries.size(); ++i) text += entry_text(entries[i], i + 1);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Report& report) { return out << report.text(); }

}  // namespace sinter
