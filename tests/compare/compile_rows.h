#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sinter::test {

/// What `functions` functions of one process tell of their compile time, every text of it made of `text`.
inline nlohmann::json small_compile_times(const std::string& text, int functions = 2) {
  using nlohmann::json;
  json rows = json::array(), kernels = json::array(), events = json::array();
  const auto event = [&](const char* kind, const std::string& function, double start, double duration) {
    events.push_back({{"kind", kind},
                      {"name", text},
                      {"origin", "built"},
                      {"function", function},
                      {"entry", 1},
                      {"thread", 17},
                      {"start", start},
                      {"duration", duration},
                      {"counted", duration / 2}});
  };
  for (int i = 0; i < functions; ++i) {
    const std::string function = text + std::to_string(i);
    for (const char* phase : {"capture", "pass fuse", "pass cse", "codegen", "kernels", "record", "other"}) {
      rows.push_back({{"function", function}, {"phase", phase}, {"count", 1}, {"seconds", 0.25 * (i + 1)}});
    }
    kernels.push_back({{"function", function}, {"built", 3}, {"disk", 2}, {"shared", 1}, {"seconds", 0.5}});
    event("entry", function, i, 0.5);
    event("kernel", function, i + 0.125, 0.25);
    event("call", function, i, 0.75);
    event("phase", function, i, 0.125);
  }
  return {{"program", text},    {"process", 4711},  {"started", 1e9},  {"rows", rows},
          {"kernels", kernels}, {"events", events}, {"dropped", 12345}};
}

/// Two processes, of which the second began half a second later and was measured.
inline nlohmann::json two_processes(const std::string& text, int functions = 2) {
  nlohmann::json later = small_compile_times(text, functions);
  later["started"] = 1e9 + 0.5;
  later["measured"] = {{"name", text + " default"}, {"eager_ms", 3.0}, {"compiled_ms", 1.0}};
  return nlohmann::json::array({small_compile_times(text, functions), later});
}

}  // namespace sinter::test
