#include <nlohmann/json.hpp>

#include "frontend/profile/hints.h"
#include "frontend/profile/module_times.h"
#include "frontend/profile/operator_sums.h"
#include "sinter/profile.h"

namespace sinter {

using nlohmann::json;

// Found by argument-dependent lookup: nlohmann-json turns records into objects through these.
static void to_json(json& out, const ProfiledOperator& op) {
  out = {{"op", op.op},
         {"autograd", op.autograd},
         {"phase", name(op.phase)},
         {"how", frontend::name(op.how)},
         {"module", op.module},
         {"modules", op.modules},
         {"line", op.line},
         {"step", op.step},
         {"thread", op.thread},
         {"start_us", op.start},
         {"host_us", op.host},
         {"device_us", op.device},
         {"launches", op.launches},
         {"allocated", op.allocated},
         {"bytes", op.bytes},
         {"flops", op.flops},
         {"dtype", op.dtype}};
}

static void to_json(json& out, const ProfiledKernel& kernel) {
  out = {{"name", kernel.name},      {"op", kernel.op},   {"stream", kernel.stream},
         {"start_us", kernel.start}, {"us", kernel.time}, {"in_graph", kernel.in_graph}};
}

static void to_json(json& out, const ProfiledModule& module) {
  out = {{"path", module.path},
         {"kind", module.kind},
         {"parent", module.parent},
         {"forward_ms", module.forward},
         {"backward_ms", module.backward},
         {"optimizer_ms", module.optimizer},
         {"compiled_ms", module.compiled},
         {"operators", module.operators},
         {"launches", module.launches},
         {"saved", module.saved}};
}

static void to_json(json& out, const ProfiledWait& wait) {
  out = {{"call", wait.call},     {"op", wait.op},           {"phase", name(wait.phase)},
         {"module", wait.module}, {"line", wait.line},       {"hint", wait.hint},
         {"count", wait.count},   {"ms", wait.milliseconds}, {"idle_ms", wait.idle}};
}

static void to_json(json& out, const StepShares& shares) {
  out = {{"busy", shares.busy},
         {"between", shares.between},
         {"launch", shares.launch},
         {"wait", shares.wait},
         {"host", shares.host}};
}

static void to_json(json& out, const ArithmeticPeak& peak) {
  out = {{"dtype", peak.dtype}, {"flops_per_s", peak.flops}};
}

static void to_json(json& out, const DeviceLimits& limits) {
  out = {{"bytes_per_s", limits.bandwidth > 0 ? json(limits.bandwidth) : json()},
         {"peaks", limits.peaks},
         {"problem", limits.problem}};
}

static void to_json(json& out, const MemoryOwner& owner) {
  out = {{"kind", owner.kind}, {"module", owner.module}, {"bytes", owner.bytes}};
}

static void to_json(json& out, const RecomputedActivations& one) {
  out = {{"op", one.op}, {"operators", one.operators}, {"bytes", one.bytes}, {"ms", one.milliseconds}};
}

static void to_json(json& out, const ProfiledMemory& memory) {
  out = {{"before", memory.before},        {"held", memory.held},     {"peak", memory.peak},
         {"reserved", memory.reserved},    {"owners", memory.owners}, {"saved", memory.saved},
         {"recomputed", memory.recomputed}};
}

static void to_json(json& out, const SegmentMemory& owner) {
  out = {{"kind", name(owner.kind)},
         {"phase", name(owner.phase)},
         {"module", owner.module},
         {"line", owner.line},
         {"bytes", owner.bytes}};
}

static void to_json(json& out, const ProfiledSegment& segment) {
  out = {{"signature", segment.signature},
         {"arena", segment.arena},
         {"graphs", segment.graphs},
         {"owners", segment.owners}};
}

/// What deterministic algorithms make slow: rows as those of sums, with what to do instead.
static json slow_of(const ModeProfile& profile) {
  json slow = json::array();
  const auto steps = static_cast<double>(profile.steps);
  for (const frontend::OperatorSum& sum : frontend::slow_sums(profile)) {
    slow.push_back({{"op", sum.op},
                    {"autograd", sum.autograd},
                    {"phase", name(sum.phase)},
                    {"module", sum.modules.empty() ? int64_t{-1} : sum.modules.front()},
                    {"line", sum.line},
                    {"hint", frontend::slow_hint_for(sum.op)},
                    {"count", static_cast<double>(sum.calls) / steps},
                    {"launches", static_cast<double>(sum.launches) / steps},
                    {"ms", sum.milliseconds}});
  }
  return slow;
}

/// Tables that people read, ready made; the times are milliseconds a step.
static json tree_of(const ModeProfile& profile) {
  json lines = json::array();
  for (const frontend::FoldedModule& module : frontend::folded(profile.modules)) {
    lines.push_back({{"name", module.name},
                     {"path", module.path},
                     {"kind", module.kind},
                     {"depth", module.depth},
                     {"repeats", module.repeats},
                     {"forward_ms", module.forward},
                     {"backward_ms", module.backward},
                     {"optimizer_ms", module.optimizer},
                     {"compiled_ms", module.compiled},
                     {"operators", module.operators},
                     {"launches", module.launches},
                     {"saved", module.saved}});
  }
  return lines;
}

static json sums_of(const ModeProfile& profile) {
  json sums = json::array();
  for (const frontend::OperatorSum& sum : frontend::operator_sums(profile)) {
    sums.push_back({{"phase", name(sum.phase)},
                    {"op", sum.op},
                    {"autograd", sum.autograd},
                    {"line", sum.line},
                    {"modules", sum.modules},
                    {"ms", sum.milliseconds},
                    {"calls", static_cast<double>(sum.calls) / static_cast<double>(profile.steps)},
                    {"bytes", sum.work_known ? json(sum.bytes) : json()},
                    {"flops", sum.work_known ? json(sum.flops) : json()},
                    {"dtype", sum.dtype},
                    {"least_ms", sum.least ? json(*sum.least) : json()},
                    {"gain_ms", sum.least ? json(sum.gain()) : json()}});
  }
  return sums;
}

static void to_json(json& out, const ModeProfile& profile) {
  json phases = json::object();
  for (const Phase phase : frontend::all_phases) phases[name(phase)] = frontend::time_of_phase(profile, phase);
  out = {{"mode", profile.mode},
         {"device", profile.device},
         {"steps", profile.steps},
         {"deterministic", profile.deterministic},
         {"step_ms", profile.step_ms},
         {"traced_step_ms", profile.traced_step_ms},
         {"times_of", profile.on_device() ? "device" : "host"},
         {"attributed", profile.attributed()},
         {"shares", profile.shares ? json(*profile.shares) : json()},
         {"limits", profile.limits},
         {"phases_ms", std::move(phases)},
         {"tree", tree_of(profile)},
         {"sums", sums_of(profile)},
         {"modules", profile.modules},
         {"waits", profile.waits},
         {"slow", slow_of(profile)},
         {"segments", profile.segments},
         {"memory", profile.memory},
         {"notes", profile.notes},
         {"operators", profile.operators},
         {"kernels", profile.kernels}};
}

std::string Profile::json() const {
  const nlohmann::json whole = {{"name", name}, {"modes", modes}};
  return whole.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sinter
