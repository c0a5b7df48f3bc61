#include "frontend/report/compile_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <ostream>

#include "sinter/report.h"

namespace sinter {
namespace {

struct Table {
  std::mutex mutex;
  CompileTimes times;

  static Table& get() {
    static Table table;
    return table;
  }
};

/// Distinct values of one column, in the order in which they first appear.
std::vector<std::string> distinct(const CompileTimes& times, std::string CompileTimes::Row::* column) {
  std::vector<std::string> values;
  for (const auto& row : times.rows) {
    if (std::find(values.begin(), values.end(), row.*column) == values.end()) values.push_back(row.*column);
  }
  return values;
}

double seconds(const CompileTimes& times, const std::string& function, const std::string& phase) {
  for (const auto& row : times.rows) {
    if (row.function == function && row.phase == phase) return row.seconds;
  }
  return 0;
}

}  // namespace

namespace frontend {

void add_compile_times(const std::string& function, std::span<const PhaseTime> phases) {
  auto& table = Table::get();
  const std::lock_guard lock(table.mutex);
  auto& rows = table.times.rows;
  for (const auto& phase : phases) {
    const auto same = [&](const auto& row) { return row.function == function && row.phase == phase.name; };
    auto row = std::find_if(rows.begin(), rows.end(), same);
    if (row == rows.end()) row = rows.insert(rows.end(), {function, phase.name, 0, 0});
    ++row->count;
    row->seconds += phase.seconds;
  }
}

}  // namespace frontend

CompileTimes compile_times() {
  auto& table = Table::get();
  const std::lock_guard lock(table.mutex);
  return table.times;
}

double CompileTimes::total() const {
  double sum = 0;
  for (const auto& row : rows) sum += row.seconds;
  return sum;
}

std::string CompileTimes::text() const {
  if (rows.empty()) return "nothing compiled yet\n";
  const auto functions = distinct(*this, &Row::function);
  std::string out = fmt::format("{:<24}", "phase (seconds)");
  for (const auto& function : functions) out += fmt::format(" {:>14.14}", function);
  out += '\n';
  for (const auto& phase : distinct(*this, &Row::phase)) {
    out += fmt::format("{:<24}", phase);
    for (const auto& function : functions) out += fmt::format(" {:>14.4f}", seconds(*this, function, phase));
    out += '\n';
  }
  return out + fmt::format("{:<24} {:>14.4f}\n", "total", total());
}

std::ostream& operator<<(std::ostream& out, const CompileTimes& times) { return out << times.text(); }

}  // namespace sinter
