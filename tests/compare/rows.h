#pragma once

#include "bench/compare/join.h"

namespace sinter::test {

using bench::Json;

/// A row as the benchmark writes it.
inline Json row(const std::string& model, const std::string& mode, double steady_ms, const std::string& peer = "") {
  Json made = {{"model", model},        {"device", "cuda:0"},
               {"dtype", "f16"},        {"shape", "f16[1,3,224,224]"},
               {"mode", mode},          {"eager_ms", 4.0},
               {"cold_s", 0.5},         {"steady_ms", steady_ms},
               {"peak_bytes", 1 << 20}, {"eager_peak_bytes", 4 << 20},
               {"eager_cold_s", 0.2}};
  if (!peer.empty()) made["peer"] = peer;
  return made;
}

inline Json document(std::vector<Json> rows, Json environment = {{"torch", "2.11.0"}, {"tf32_cudnn", true}}) {
  return {{"environment", std::move(environment)}, {"rows", std::move(rows)}};
}

/// Documents joined; the first is Sinter's.
inline bench::Comparison joined(const std::vector<Json>& documents) {
  std::vector<bench::Results> results;
  for (size_t i = 0; i < documents.size(); ++i) {
    for (bench::Results& one : bench::parse_results(documents[i], "file" + std::to_string(i) + ".json"))
      results.push_back(std::move(one));
  }
  return bench::join(std::move(results));
}

}  // namespace sinter::test
