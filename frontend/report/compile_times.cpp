#include "sinter/compile_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>

#include "compiler/support/compile_phases.h"

namespace sinter {
namespace {

constexpr size_t most_columns = 4;  ///< of functions
constexpr size_t most_passes = 4;   ///< lines

/// Seconds by function.
using PhaseLine = std::map<std::string, double>;

double sum_of(const PhaseLine& line) {
  double sum = 0;
  for (const auto& [function, seconds] : line) sum += seconds;
  return sum;
}

using NamedLine = std::pair<std::string, PhaseLine>;

void sort_by_time(std::vector<NamedLine>& lines) {
  std::ranges::stable_sort(lines, std::greater(), [](const NamedLine& line) { return sum_of(line.second); });
}

void add_to(PhaseLine& line, const PhaseLine& other) {
  for (const auto& [function, seconds] : other) line[function] += seconds;
}

/// Lines of a table; those of passes apart.
struct PhaseLines {
  std::map<std::string, PhaseLine> phases;
  std::vector<NamedLine> passes;  ///< the longest first
  PhaseLine functions;            ///< totals

  explicit PhaseLines(const CompileTimes& times) {
    std::map<std::string, PhaseLine> by_pass;
    for (const auto& row : times.rows) {
      const auto pass = pass_of(row.phase);
      if (pass) by_pass[std::string(*pass)][row.function] += row.seconds;
      phases[pass ? "passes" : row.phase][row.function] += row.seconds;
      functions[row.function] += row.seconds;
    }
    passes.assign(by_pass.begin(), by_pass.end());
    sort_by_time(passes);
  }

  /// In the order of a compilation, unknown ones last.
  [[nodiscard]] std::vector<NamedLine> in_order() const {
    std::vector<NamedLine> lines;
    for (const std::string_view phase : compile_phases) {
      if (const auto found = phases.find(std::string(phase)); found != phases.end()) lines.emplace_back(*found);
    }
    for (const auto& line : phases) {
      if (!is_compile_phase(line.first)) lines.emplace_back(line);
    }
    return lines;
  }
};

/// The functions that take longest, as columns beside all.
std::vector<std::string> columns_of(const PhaseLine& functions) {
  std::vector<std::pair<std::string, double>> sorted(functions.begin(), functions.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, double>::second);
  std::vector<std::string> columns;
  for (const auto& [function, seconds] : sorted) {
    if (columns.size() < most_columns) columns.push_back(function);
  }
  return columns;
}

std::string line_of(const std::string& label, const PhaseLine& line, const std::vector<std::string>& columns) {
  std::string text = fmt::format("{:<24} {:>12.4f}", label, sum_of(line));
  for (const std::string& column : columns) {
    const auto found = line.find(column);
    text += fmt::format(" {:>16.4f}", found == line.end() ? 0 : found->second);
  }
  return text + '\n';
}

std::string pass_lines(const std::vector<NamedLine>& passes, const std::vector<std::string>& columns) {
  std::string text;
  PhaseLine rest;
  for (size_t i = 0; i < passes.size(); ++i) {
    if (i < most_passes) {
      text += line_of("  " + passes[i].first, passes[i].second, columns);
    } else {
      add_to(rest, passes[i].second);
    }
  }
  if (passes.size() > most_passes)
    text += line_of(fmt::format("  {} more", passes.size() - most_passes), rest, columns);
  return text;
}

std::string kernel_line(const CompileTimes& times) {
  CompileTimes::Kernels all;
  for (const auto& kernels : times.kernels) {
    all.built += kernels.built;
    all.disk += kernels.disk;
    all.shared += kernels.shared;
    all.seconds += kernels.seconds;
  }
  return fmt::format(
      "kernels: {} built, {} from the cache on disk, {} shared with earlier ones; {:.4f} s of all threads together, "
      "within 'kernels'\n",
      all.built, all.disk, all.shared, all.seconds);
}

int64_t entries_of(const CompileTimes& times) {
  int64_t entries = 0;
  for (const auto& row : times.rows) entries += row.phase == "other" ? row.count : 0;
  return entries;
}

}  // namespace

double CompileTimes::total() const {
  double sum = 0;
  for (const auto& row : rows) sum += row.seconds;
  return sum;
}

std::string CompileTimes::text() const {
  if (rows.empty()) return "nothing compiled yet\n";
  const PhaseLines lines(*this);
  const auto columns = columns_of(lines.functions);
  std::string out = fmt::format("{:<24} {:>12}", "phase (seconds)", "all");
  for (const std::string& column : columns) out += fmt::format(" {:>16.16}", column);
  out += '\n';
  for (const auto& [phase, line] : lines.in_order()) {
    out += line_of(phase, line, columns);
    if (phase == "passes") out += pass_lines(lines.passes, columns);
  }
  out += line_of("total", lines.functions, columns);
  out += "the total is the sum of the lines that are not indented";
  const size_t more = lines.functions.size() - columns.size();
  out += more == 0 ? "\n" : fmt::format("; {} more functions are in 'all'\n", more);
  out += fmt::format("functions: {}; entries: {}\n", lines.functions.size(), entries_of(*this));
  return out + kernel_line(*this) + "library plans: none are built; tuning: none is done\n";
}

std::ostream& operator<<(std::ostream& out, const CompileTimes& times) { return out << times.text(); }

}  // namespace sinter
