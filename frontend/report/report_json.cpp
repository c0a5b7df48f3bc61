#include <nlohmann/json.hpp>

#include "sinter/report.h"

namespace sinter {

using nlohmann::json;

// Found by argument-dependent lookup: nlohmann-json turns records into objects through these.
static void to_json(json& out, const PhaseTime& phase) { out = {{"name", phase.name}, {"seconds", phase.seconds}}; }

static void to_json(json& out, const KernelRecord& kernel) {
  out = {{"name", kernel.name},
         {"ops", kernel.ops},
         {"modules", kernel.modules},
         {"sources", kernel.sources},
         {"launches", kernel.launches},
         {"bytes", kernel.bytes},
         {"registers", kernel.registers},
         {"spill_bytes", kernel.spill_bytes},
         {"shared_bytes", kernel.shared_bytes},
         {"build_seconds", kernel.build_seconds},
         {"origin", kernel.origin},
         {"cache", kernel.cache}};
}

static void to_json(json& out, const KernelOrigins& origins) {
  out = {{"built", origins.built}, {"shared", origins.shared}, {"disk", origins.disk}, {"misses", origins.misses}};
}

static void to_json(json& out, const ExternRecord& call) {
  out = {{"op", call.op}, {"calls", call.calls}, {"modules", call.modules}};
}

static void to_json(json& out, const ChoiceRecord::Alternative& way) {
  out = {{"name", way.name}, {"microseconds", way.microseconds}};
}

static void to_json(json& out, const ChoiceRecord& choice) {
  out = {{"problem", choice.problem},
         {"chosen", choice.chosen},
         {"origin", choice.origin},
         {"calls", choice.calls},
         {"measured", choice.measured}};
}

static void to_json(json& out, const GraphBreak& found) {
  out = {{"code", name(found.code)},
         {"op", found.op},
         {"where", found.where},
         {"reason", found.reason},
         {"hint", found.hint}};
}

static void to_json(json& out, const SegmentOwner& owner) {
  out = {{"kind", name(owner.kind)}, {"module", owner.module}, {"source", owner.source}, {"bytes", owner.bytes}};
}

static void to_json(json& out, const MemoryRecord& memory) {
  out = {{"arena_bytes", memory.arena_bytes},
         {"peak_bytes", memory.peak_bytes},
         {"eager_peak_bytes", memory.eager_peak_bytes},
         {"owners", memory.owners}};
}

static void to_json(json& out, const EntryReport& entry) {
  out = {{"signature", entry.signature},
         {"device", entry.device},
         {"compiled", entry.compiled},
         {"phases", entry.phases},
         {"kernels", entry.kernels},
         {"kernel_origins", entry.kernel_origins()},
         {"externs", entry.externs},
         {"choices", entry.choices},
         {"breaks", entry.breaks},
         {"notes", entry.notes},
         {"internal_error", entry.internal_error},
         {"memory", entry.memory},
         {"dynamic", entry.dynamic},
         {"instantiations", entry.instantiations},
         {"instantiation_seconds", entry.instantiation_seconds},
         {"built_for_instantiations", entry.built_for_instantiations},
         {"recorded_instantiations", entry.recorded_instantiations},
         {"graphs", entry.graphs},
         {"captured_calls", entry.captured_calls},
         {"replays", entry.replays},
         {"early", entry.early}};
}

std::string Report::json() const {
  const nlohmann::json out = {
      {"function", function}, {"mode", mode}, {"entries", entries}, {"failed_at", failed_at}, {"notes", notes}};
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sinter
