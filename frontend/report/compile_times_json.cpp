#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "compiler/support/errors.h"
#include "frontend/report/compile_times_file.h"

namespace sinter {
namespace {

constexpr std::array<std::string_view, 4> kind_names{"call", "entry", "phase", "kernel"};  // by CompileEvent::Kind

nlohmann::json json_of(const CompileEvent& event) {
  return {{"kind", kind_names.at(static_cast<size_t>(event.kind))},
          {"name", event.name},
          {"origin", event.origin},
          {"function", event.function},
          {"entry", event.entry},
          {"thread", event.thread},
          {"start", event.start},
          {"duration", event.duration},
          {"counted", event.counted}};
}

nlohmann::json json_of(const CompileTimes::Row& row) {
  return {{"function", row.function}, {"phase", row.phase}, {"count", row.count}, {"seconds", row.seconds}};
}

nlohmann::json json_of(const CompileTimes::Kernels& kernels) {
  return {{"function", kernels.function},
          {"built", kernels.built},
          {"disk", kernels.disk},
          {"shared", kernels.shared},
          {"seconds", kernels.seconds}};
}

template <class Record>
nlohmann::json json_of(const std::vector<Record>& records) {
  auto all = nlohmann::json::array();
  for (const Record& record : records) all.push_back(json_of(record));
  return all;
}

std::string text_at(const nlohmann::json& from, const char* key) { return from.at(key).get<std::string>(); }

/// A count or a number of the system's, which must be whole.
int64_t whole_at(const nlohmann::json& from, const char* key) {
  const auto& value = from.at(key);
  if (!value.is_number_integer()) throw UserError(fmt::format("'{}' is no whole number", key));
  return value.get<int64_t>();
}

double seconds_at(const nlohmann::json& from, const char* key) { return from.at(key).get<double>(); }

CompileEvent::Kind kind_of(const std::string& name) {
  for (size_t i = 0; i < kind_names.size(); ++i) {
    if (kind_names[i] == name) return static_cast<CompileEvent::Kind>(i);
  }
  throw UserError(fmt::format("an event has the kind '{}'", name));
}

CompileEvent event_of(const nlohmann::json& from) {
  return {.kind = kind_of(text_at(from, "kind")),
          .name = text_at(from, "name"),
          .origin = text_at(from, "origin"),
          .function = text_at(from, "function"),
          .entry = whole_at(from, "entry"),
          .thread = whole_at(from, "thread"),
          .start = seconds_at(from, "start"),
          .duration = seconds_at(from, "duration"),
          .counted = seconds_at(from, "counted")};
}

CompileTimes times_of(const nlohmann::json& from) {
  CompileTimes times;
  times.program = text_at(from, "program");
  times.process = whole_at(from, "process");
  times.started = seconds_at(from, "started");
  times.dropped = whole_at(from, "dropped");
  for (const auto& row : from.at("rows")) {
    times.rows.push_back(
        {text_at(row, "function"), text_at(row, "phase"), whole_at(row, "count"), seconds_at(row, "seconds")});
  }
  for (const auto& kernels : from.at("kernels")) {
    times.kernels.push_back({text_at(kernels, "function"), whole_at(kernels, "built"), whole_at(kernels, "disk"),
                             whole_at(kernels, "shared"), seconds_at(kernels, "seconds")});
  }
  for (const auto& event : from.at("events")) times.events.push_back(event_of(event));
  return times;
}

}  // namespace

std::string CompileTimes::json() const {
  const nlohmann::json out = {{"program", program},        {"process", process},    {"started", started},
                              {"total_seconds", total()},  {"rows", json_of(rows)}, {"kernels", json_of(kernels)},
                              {"events", json_of(events)}, {"dropped", dropped}};
  return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<CompileTimes> frontend::read_compile_times(const std::string& json, const std::string& from) {
  try {
    const auto whole = nlohmann::json::parse(json);
    std::vector<CompileTimes> all;
    if (!whole.is_array()) return {times_of(whole)};
    for (const auto& process : whole) all.push_back(times_of(process));
    return all;
  } catch (const std::exception& error) {
    throw UserError(fmt::format("{}: no compile times: {}. Write it again with sinter::compile_times().json()", from,
                                error.what()));
  }
}

}  // namespace sinter
