#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sinter::test {

/// A profile of two modes with `modules` modules below the model, every text of it made of `text`.
inline nlohmann::json small_profile(const std::string& text, int modules = 2) {
  using nlohmann::json;
  json rows = json::array({{{"path", ""}, {"kind", text}, {"parent", -1}}});
  json tree = json::array();
  json sums = json::array();
  for (int i = 0; i < modules; ++i) {
    const std::string name = text + std::to_string(i);
    rows.push_back({{"path", name}, {"kind", text}, {"parent", 0}});
    tree.push_back({{"name", name},
                    {"path", name},
                    {"kind", text},
                    {"depth", 1 + i % 4},
                    {"repeats", 1 + i % 3},
                    {"forward_ms", 1.0 + i},
                    {"backward_ms", 1234.5},
                    {"optimizer_ms", 0.0},
                    {"compiled_ms", 0.25},
                    {"operators", 12},
                    {"launches", 3},
                    {"saved", i % 2 == 0 ? 5 << 20 : 0}});
    sums.push_back({{"phase", "backward"},
                    {"op", text},
                    {"autograd", text},
                    {"line", name},
                    {"modules", {1, 0}},
                    {"ms", 1000.0 / (1 + i)},
                    {"calls", 2.0},
                    {"bytes", 3e9},
                    {"flops", i % 2 == 0 ? 4e12 : 0.0},
                    {"dtype", i % 2 == 0 ? "f16" : ""},
                    {"least_ms", 1.0},
                    {"gain_ms", 1000.0 / (1 + i) - 1}});
  }
  json mode = {
      {"mode", "eager"},
      {"device", text},
      {"steps", 3},
      {"step_ms", 1500.0},
      {"traced_step_ms", 1600.0},
      {"attributed", 0.99},
      {"shares", {{"busy", 0.5}, {"between", 0.0}, {"launch", 0.125}, {"wait", 0.125}, {"host", 0.25}}},
      {"limits", {{"bytes_per_s", 3e12}, {"peaks", {{{"dtype", "f16"}, {"flops_per_s", 7e14}}}}, {"problem", ""}}},
      {"phases_ms", {{"forward", 600.0}, {"backward", 1234.0}, {"loss", 0.0}}},
      {"tree", tree},
      {"sums", sums},
      {"modules", rows},
      {"notes", {text}},
      {"memory",
       {{"before", 1},
        {"held", 0},
        {"peak", 3 << 20},
        {"reserved", -1},
        {"owners", {{{"kind", "gradients"}, {"module", 1}, {"bytes", 3 << 20}}}},
        {"recomputed", {{{"op", text}, {"operators", 2}, {"bytes", 2 << 20}, {"ms", 0.5}}}}}},
      {"segments", json::array()},
      {"slow",
       {{{"op", text},
         {"autograd", text},
         {"phase", "backward"},
         {"module", 1},
         {"line", text},
         {"hint", text},
         {"count", 1.0},
         {"launches", 97.0},
         {"ms", 5.0}}}},
      {"waits",
       {{{"call", "cudaStreamSynchronize"},
         {"op", text},
         {"phase", "backward"},
         {"module", 1},
         {"line", text},
         {"hint", text},
         {"count", 1},
         {"ms", 8.0},
         {"idle_ms", 0.5}}}}};
  json compiled = mode;
  compiled["mode"] = "default";
  compiled["memory"]["recomputed"] = json::array();
  compiled["segments"] = {
      {{"signature", text},
       {"arena", 7 << 20},
       {"graphs", 1},
       {"owners",
        {{{"kind", "temporaries"}, {"phase", "forward"}, {"module", 1}, {"line", text}, {"bytes", 6 << 20}}}}}};
  return {{"name", text}, {"modes", {mode, compiled}}};
}

}  // namespace sinter::test
