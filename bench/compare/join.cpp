#include "bench/compare/join.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/errors.h"

namespace sinter::bench {
namespace {

/// More than this between two measurements of eager is said.
constexpr double eager_tolerance = 1.15;

std::string device_kind(const std::string& device) { return device.substr(0, device.find(':')); }

/// Without blanks and without the bounds of integer inputs ("i64[1,128]<30000").
std::string plain_shape(const std::string& shape) {
  std::string plain;
  bool in_bound = false;
  for (const char c : shape) {
    in_bound = c == '<' || (in_bound && c >= '0' && c <= '9');
    if (!in_bound && c != ' ') plain += c;
  }
  return plain;
}

bool is_for(const Case& one, const Row& row) {
  return one.model == row.model && one.device == device_kind(row.device) && one.dtype == row.dtype &&
         plain_shape(one.shape) == plain_shape(row.shape);
}

std::string contender_name(const Row& row) {
  const std::string peer = row.peer.empty() ? "sinter" : row.peer;
  return row.mode == peer || row.mode.starts_with(peer + " ") ? row.mode : peer + " " + row.mode;
}

std::string who(const Results& results) { return results.peer.empty() ? "sinter" : results.peer; }

/// A setting as it is compared and shown; of a version, what stands before its build ("2.11.0+cu130").
std::string setting(const std::string& key, const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return key == "torch" ? text.substr(0, text.find('+')) : text;
}

void warn_of_environment(const Results& own, const Results& peer, std::vector<std::string>& warnings) {
  if (peer.environment.empty() || own.environment.empty()) {
    const Results& silent = own.environment.empty() ? own : peer;
    warnings.push_back(fmt::format("{} does not say versions, device and flags ({})", who(silent), silent.file));
    return;
  }
  for (const auto& [key, value] : own.environment.items()) {
    const auto theirs = peer.environment.find(key);
    if (theirs == peer.environment.end() || setting(key, value) == setting(key, *theirs)) continue;
    warnings.push_back(fmt::format("{} differs: {} for sinter, {} for {} ({})", key, setting(key, value),
                                   setting(key, *theirs), who(peer), peer.file));
  }
}

/// Eager is measured in every contender's process; where it differs, so may the machines.
void warn_of_eager(const Case& one, std::vector<std::string>& warnings) {
  for (const Contender& contender : one.contenders) {
    if (contender.row.peer.empty()) continue;
    if (!eager_differs(one, contender.row)) continue;
    warnings.push_back(
        fmt::format("{} {}: eager took {:.4g} ms beside {}, {:.4g} ms in sinter's own run, which "
                    "speed-ups are against",
                    one.model, one.shape, contender.row.eager_ms, contender.name, one.eager_ms));
  }
}

/// The cases of Sinter's own rows, each with the mean of what eager took beside them.
std::vector<Case> cases_of(const Results& own) {
  std::vector<Case> cases;
  for (const Row& row : own.rows) {
    if (std::any_of(cases.begin(), cases.end(), [&](const Case& one) { return is_for(one, row); })) continue;
    Case one{row.model, device_kind(row.device), row.dtype, row.shape, 0, {}};
    double sum = 0;
    int64_t count = 0;
    for (const Row& other : own.rows) {
      if (!is_for(one, other)) continue;
      sum += other.eager_ms;
      ++count;
    }
    one.eager_ms = sum / static_cast<double>(count);
    cases.push_back(std::move(one));
  }
  return cases;
}

void place(Comparison& comparison, size_t index) {
  const Results& results = comparison.results[index];
  for (const Row& row : results.rows) {
    const auto found = std::find_if(comparison.cases.begin(), comparison.cases.end(),
                                    [&](const Case& one) { return is_for(one, row); });
    if (found == comparison.cases.end()) {
      comparison.unmatched.push_back({contender_name(row), index, row, 0});
    } else {
      found->contenders.push_back({contender_name(row), index, row, found->eager_ms / row.steady_ms});
    }
  }
}

}  // namespace

Comparison join(std::vector<Results> results) {
  std::stable_partition(results.begin(), results.end(), [](const Results& one) { return one.peer.empty(); });
  if (results.empty() || !results.front().peer.empty())
    throw UserError("no row is sinter's own. Name a file of sinter bench --json with --from, peers' with --peer");
  Comparison comparison;
  comparison.results = std::move(results);
  comparison.cases = cases_of(comparison.results.front());
  for (size_t i = 0; i < comparison.results.size(); ++i) {
    place(comparison, i);
    if (i > 0) warn_of_environment(comparison.results.front(), comparison.results[i], comparison.warnings);
  }
  for (const Case& one : comparison.cases) warn_of_eager(one, comparison.warnings);
  return comparison;
}

bool eager_differs(const Case& one, const Row& row) {
  const double ratio = row.eager_ms / one.eager_ms;
  return ratio > eager_tolerance || ratio < 1 / eager_tolerance;
}

}  // namespace sinter::bench
