#include <nlohmann/json.hpp>

#include "sinter/profile.h"

namespace sinter {
namespace {

using Json = nlohmann::json;

std::string path_of(const ModeProfile& profile, int64_t module) {
  return module < 0 ? std::string() : profile.modules[static_cast<size_t>(module)].path;
}

Json naming(const char* what, size_t process, const std::string& text) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", 0}, {"args", {{"name", text}}}};
}

Json event_of(const ModeProfile& profile, const ProfiledOperator& op, size_t process) {
  Json arguments = {{"phase", name(op.phase)}, {"step", op.step}};
  if (op.module >= 0) arguments["module"] = path_of(profile, op.module);
  if (!op.modules.empty()) arguments["modules"] = op.modules;
  if (!op.line.empty()) arguments["line"] = op.line;
  if (!op.autograd.empty()) arguments["autograd"] = op.autograd;
  return {{"ph", "X"},        {"name", op.op},  {"cat", name(op.phase)}, {"pid", process},
          {"tid", op.thread}, {"ts", op.start}, {"dur", op.host},        {"args", std::move(arguments)}};
}

Json event_of(const ModeProfile& profile, const ProfiledKernel& kernel, size_t process) {
  Json arguments = Json::object();
  std::string category = "kernel";
  if (kernel.op >= 0) {
    const ProfiledOperator& op = profile.operators[static_cast<size_t>(kernel.op)];
    category = name(op.phase);
    arguments = {{"operator", op.op}, {"phase", category}, {"module", path_of(profile, op.module)}, {"line", op.line}};
  }
  return {{"ph", "X"},          {"name", kernel.name},         {"cat", category},
          {"pid", process},     {"tid", kernel.stream},        {"ts", kernel.start},
          {"dur", kernel.time}, {"args", std::move(arguments)}};
}

}  // namespace

/// Two processes for each mode: its threads, and the streams of its device.
std::string Profile::chrome_trace() const {
  Json events = Json::array();
  for (size_t i = 0; i < modes.size(); ++i) {
    const ModeProfile& mode = modes[i];
    const size_t host = 2 * i;
    const size_t device = 2 * i + 1;
    events.push_back(naming("process_name", host, name + " " + mode.mode + ", operators"));
    for (const ProfiledOperator& op : mode.operators) events.push_back(event_of(mode, op, host));
    if (mode.kernels.empty()) continue;
    events.push_back(naming("process_name", device, name + " " + mode.mode + ", " + mode.device));
    for (const ProfiledKernel& kernel : mode.kernels) events.push_back(event_of(mode, kernel, device));
  }
  const Json whole = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return whole.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sinter
