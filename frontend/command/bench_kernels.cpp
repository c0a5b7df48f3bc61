#include "frontend/command/bench_kernels.h"

#include <fmt/format.h>

#include <optional>

#include "bench/compare/kernel_classes.h"
#include "bench/measure/kernel_table.h"
#include "bench/measure/kernel_trace.h"
#include "frontend/profile/steady.h"

namespace sinter::command {
namespace {

using Json = nlohmann::json;

/// One steady call of a compiled function, and what the function knows of its own kernels.
struct SteadyCall {
  std::vector<bench::TracedKernel> kernels;
  EntryReport entry;
};

std::optional<SteadyCall> steady_call(TargetOptions options, const Target& target, const std::string& mode) {
  options.mode = mode;
  const auto fast = sinter::compile(target.forward, steady_options(options, target));
  for (int i = 0; i < frontend::calls_until_steady; ++i) (void)fast(target.first);
  auto kernels = bench::trace_operator_kernels([&] { (void)fast(target.first); });
  if (!kernels) return std::nullopt;
  const Report report = fast.report();
  return SteadyCall{std::move(*kernels), report.entries.empty() ? EntryReport() : report.entries.back()};
}

Json to_json(const std::vector<bench::KernelTableRow>& rows) {
  Json list = Json::array();
  for (const bench::KernelTableRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"origin", bench::to_string(row.origin)},
                    {"ops", row.ops},
                    {"modules", row.modules},
                    {"count", row.count},
                    {"us", row.microseconds}});
  }
  return list;
}

}  // namespace

Json kernels_of_one_call(const TargetOptions& options, const Target& target) {
  const Json nothing = {{"compiled", nullptr}, {"eager", nullptr}, {"text", nullptr}};
  auto compiled = steady_call(options, target, options.mode);
  if (!compiled) return nothing;
  if (compiled->entry.graphs > 0) {
    const auto direct = steady_call(options, target, "default");
    if (direct) bench::attribute_like(direct->kernels, compiled->kernels);
  }
  (void)target.forward(target.first);  // what the first call alone launches
  const auto eager = bench::trace_operator_kernels([&] { (void)target.forward(target.first); });
  const auto rows = bench::kernel_table(compiled->kernels, compiled->entry);
  Json tables = {{"compiled", to_json(rows)}, {"eager", nullptr}, {"text", bench::to_text(rows)}};
  if (!eager) return tables;
  tables["eager"] = to_json(bench::kernel_table(*eager, {}));
  tables["text"] = bench::to_text(rows) + "\n" +
                   bench::kernels_side_by_side({{"eager", tables["eager"]}, {"compiled", tables["compiled"]}});
  return tables;
}

std::string kernels_text(const Json& row, const Json& traced) {
  const std::string what = fmt::format("{} {} {}", row.at("model").get<std::string>(),
                                       row.at("shape").get<std::string>(), row.at("mode").get<std::string>());
  const auto device = row.at("device").get<std::string>();
  if (!device.starts_with("cuda")) return fmt::format("no GPU kernels: {} ran on the {}\n", what, device);
  if (!traced.is_object() || traced.at("text").is_null())
    return fmt::format("no GPU kernels seen of {}: CUPTI is missing or in use\n", what);
  return fmt::format("GPU kernels of one call of {}:\n{}", what, traced.at("text").get<std::string>());
}

}  // namespace sinter::command
