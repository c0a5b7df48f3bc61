#include "bench/compare/compile_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace sinter::bench {
namespace {

using Json = nlohmann::json;

constexpr double microseconds = 1e6;  ///< of a second

Json name_event(const char* what, size_t process, int64_t thread, const std::string& text) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", text}}}};
}

std::string title_of(const Json& event) {
  const auto kind = event.at("kind").get<std::string>();
  const auto name = event.at("name").get<std::string>();
  const auto function = event.at("function").get<std::string>();
  if (kind == "call") return "call of " + function;
  if (kind == "entry") return fmt::format("{}, entry {}", function, event.at("entry").get<int64_t>());
  return name;
}

Json trace_event(const Json& event, size_t process, double ahead) {
  Json arguments = {{"function", event.at("function")}, {"entry", event.at("entry")}};
  if (event.at("kind") == "entry") arguments["inputs"] = event.at("name");
  if (event.at("kind") == "kernel") arguments["origin"] = event.at("origin");
  if (event.at("counted").get<double>() > 0) arguments["counted_ms"] = event.at("counted").get<double>() * 1e3;
  return {{"ph", "X"},
          {"name", title_of(event)},
          {"cat", event.at("kind")},
          {"pid", process},
          {"tid", event.at("thread")},
          {"ts", (ahead + event.at("start").get<double>()) * microseconds},
          {"dur", event.at("duration").get<double>() * microseconds},
          {"args", std::move(arguments)}};
}

/// Seconds since 1970 at which the first of them began.
double first_start(const Json& processes) {
  double first = std::numeric_limits<double>::max();
  for (const Json& process : processes) first = std::min(first, process.at("started").get<double>());
  return first;
}

}  // namespace

std::string name_of_process(const Json& process) {
  if (process.contains("measured")) return process.at("measured").at("name").get<std::string>();
  return fmt::format("{} {}", process.at("program").get<std::string>(), process.at("process").get<int64_t>());
}

/// Processes of two machines may have one number, so that they are counted here.
std::string compile_trace(const Json& processes) {
  const double first = first_start(processes);
  Json events = Json::array();
  for (size_t i = 0; i < processes.size(); ++i) {
    const Json& process = processes[i];
    const double ahead = process.at("started").get<double>() - first;
    std::set<int64_t> threads;
    events.push_back(name_event("process_name", i, 0, name_of_process(process)));
    for (const Json& event : process.at("events")) {
      events.push_back(trace_event(event, i, ahead));
      threads.insert(event.at("thread").get<int64_t>());
    }
    for (const int64_t thread : threads) {
      events.push_back(name_event("thread_name", i, thread, fmt::format("thread {}", thread)));
    }
  }
  const Json whole = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return whole.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sinter::bench
