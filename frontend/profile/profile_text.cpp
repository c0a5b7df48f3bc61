#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "frontend/profile/hints.h"
#include "frontend/profile/module_times.h"
#include "frontend/profile/operator_sums.h"
#include "sinter/profile.h"

namespace sinter {
namespace {

using frontend::FoldedModule;
using frontend::OperatorSum;

constexpr size_t most_operators = 12;  ///< in the text; JSON has all
constexpr size_t most_owners = 10;
constexpr size_t most_recomputed = 5;
constexpr size_t most_gains = 8;
constexpr size_t most_segments = 3;
constexpr size_t most_holders = 8;     ///< of a segment
constexpr double least_share = 0.001;  ///< of a step that a module's line takes

/// Three digits, never an exponent for what people wait for.
std::string short_number(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string show_bytes(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return bytes < 1 << 20 ? fmt::format("{:.1f} KiB", size / (1 << 10)) : fmt::format("{:.1f} MiB", size / (1 << 20));
}

std::string module_name(const ModeProfile& profile, int64_t module) {
  if (module < 0) return "-";
  const std::string& path = profile.modules[static_cast<size_t>(module)].path;
  return path.empty() ? "(model)" : path;
}

double time_of_operators(const ModeProfile& profile) {
  double sum = 0;
  for (const Phase phase : frontend::all_phases) sum += frontend::time_of_phase(profile, phase);
  return sum;
}

std::string phases_text(const ModeProfile& profile) {
  std::string text;
  for (const Phase phase : frontend::all_phases) {
    const double time = frontend::time_of_phase(profile, phase);
    if (time > 0) text += fmt::format("{}{} {} ms", text.empty() ? "" : ", ", name(phase), short_number(time));
  }
  const char* whose = profile.on_device() ? "device" : "host";
  return fmt::format("  {} time of operators: {}; {} ms in all\n", whose, text,
                     short_number(time_of_operators(profile)));
}

std::string shares_text(const ModeProfile& profile) {
  if (!profile.shares) return "";
  const StepShares& shares = *profile.shares;
  return fmt::format(
      "  the device is busy {:.1f} % of a step; bound by launches {:.1f} %, by the host {:.1f} %; the host waits "
      "{:.1f} "
      "%; between kernels {:.1f} %\n",
      100 * shares.busy, 100 * shares.launch, 100 * shares.host, 100 * shares.wait, 100 * shares.between);
}

/// Kernels that no operator launched, milliseconds a step; nothing where there are none.
std::string strays_text(const ModeProfile& profile) {
  double time = 0;
  for (const ProfiledKernel& kernel : profile.kernels) time += kernel.op < 0 ? kernel.time : 0;
  if (time <= 0) return "";
  return fmt::format("  kernels that no operator launched take {} ms\n",
                     short_number(time / 1e3 / static_cast<double>(profile.steps)));
}

std::string attribution_text(const ModeProfile& profile) {
  using frontend::name;
  double all = 0;
  std::vector<double> times(static_cast<size_t>(Attribution::loss) + 1);
  for (const ProfiledOperator& op : profile.operators) {
    times[static_cast<size_t>(op.how)] += profile.time_of(op);
    all += profile.time_of(op);
  }
  std::string text;
  for (size_t how = 1; how < times.size(); ++how) {
    if (times[how] <= 0) continue;
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", name(static_cast<Attribution>(how)),
                        percent(times[how], all));
  }
  return fmt::format("  module known for {:.1f} % of it ({})\n", 100 * profile.attributed(), text);
}

std::string heading(const std::string& program, const ModeProfile& profile) {
  return fmt::format("{}  {}  {}      a step takes {} ms; traced {} ms ({:+.1f} %); {} traced\n", program, profile.mode,
                     profile.device, short_number(profile.step_ms), short_number(profile.traced_step_ms),
                     percent(profile.traced_step_ms - profile.step_ms, profile.step_ms), profile.steps);
}

/// "aten::mm of MmBackward0"
std::string called_by(const OperatorSum& sum) { return sum.autograd.empty() ? sum.op : sum.op + " of " + sum.autograd; }

std::string waits_text(const ModeProfile& profile) {
  std::string text;
  for (const ProfiledWait& wait : profile.waits) {
    text += fmt::format("  wait   {} ms a step, {} times, the device idle for {:.3g} ms after: {}  {}  {}  {}  ({})\n",
                        short_number(wait.milliseconds), wait.count, wait.idle,
                        wait.op.empty() ? "the program itself" : wait.op, name(wait.phase),
                        module_name(profile, wait.module), wait.line, wait.call);
    if (!wait.hint.empty()) text += fmt::format("         try: {}\n", wait.hint);
  }
  return text;
}

/// What deterministic algorithms make slow, with what to do instead.
std::string slow_text(const ModeProfile& profile) {
  std::string text;
  for (const OperatorSum& sum : frontend::slow_sums(profile)) {
    const int64_t steps = std::max<int64_t>(profile.steps, 1);
    text +=
        fmt::format("  slow   {} ms a step, {} times, {} launches: {}  {}  {}  {}\n", short_number(sum.milliseconds),
                    sum.calls / steps, sum.launches / steps, called_by(sum), name(sum.phase),
                    module_name(profile, sum.modules.empty() ? -1 : sum.modules.front()), sum.line);
    text += fmt::format("         try: {}\n", frontend::slow_hint_for(sum.op));
  }
  return text;
}

std::string module_line(const FoldedModule& module, const std::string& program, double all) {
  std::string label(static_cast<size_t>(2 * module.depth), ' ');
  label += module.path.empty() ? program : module.name;
  if (module.repeats > 1) label += fmt::format(" x{}", module.repeats);
  if (!module.kind.empty()) label += "  " + module.kind;
  return fmt::format("  {:<46} {:>8} {:>9} {:>9} {:>9} {:>6.1f} % {:>6} {:>8} {:>12}\n", label,
                     short_number(module.forward), short_number(module.backward), short_number(module.optimizer),
                     short_number(module.compiled), percent(module.total(), all), module.operators, module.launches,
                     module.saved > 0 ? show_bytes(module.saved) : "-");
}

std::string modules_text(const ModeProfile& profile, const std::string& program) {
  const double all = time_of_operators(profile);
  std::string text = fmt::format("  {:<46} {:>8} {:>9} {:>9} {:>9} {:>8} {:>6} {:>8} {:>12}\n", "module (ms a step)",
                                 "forward", "backward", "optimizer", "compiled", "share", "calls", "launches", "saved");
  size_t left_out = 0;
  for (const FoldedModule& module : frontend::folded(profile.modules)) {
    if (module.total() < least_share * all) {
      ++left_out;
      continue;
    }
    text += module_line(module, program, all);
  }
  if (left_out > 0) text += fmt::format("  ({} lines below {} % left out)\n", left_out, 100 * least_share);
  return text;
}

std::string sum_text(const ModeProfile& profile, const OperatorSum& sum, double all) {
  std::string module = sum.modules.empty() ? "-" : module_name(profile, sum.modules.front());
  if (sum.modules.size() > 1) module += fmt::format(" and {} more", sum.modules.size() - 1);
  return fmt::format("  {:>8} {:>5.1f} % {:>6}  {:<9}  {}  [{}]  {}\n", short_number(sum.milliseconds),
                     percent(sum.milliseconds, all), sum.calls / std::max<int64_t>(profile.steps, 1), name(sum.phase),
                     called_by(sum), module, sum.line);
}

std::string operators_text(const ModeProfile& profile) {
  const auto sums = frontend::operator_sums(profile);
  const double all = time_of_operators(profile);
  std::string text = "   ms a step  share  calls  phase      operator  [module]  line\n";
  for (size_t i = 0; i < std::min(sums.size(), most_operators); ++i) text += sum_text(profile, sums[i], all);
  if (sums.size() > most_operators) text += fmt::format("  ({} more in --json)\n", sums.size() - most_operators);
  return text;
}

/// Operations a second, with a unit.
std::string flop_rate(double flops) { return fmt::format("{} TFLOP/s", short_number(flops / 1e12)); }

std::string limits_heading(const ModeProfile& profile) {
  const DeviceLimits& limits = profile.limits;
  if (limits.bandwidth <= 0) return fmt::format("  limits of {} not known: {}\n", profile.device, limits.problem);
  std::string text =
      fmt::format("  limits  measured on {}: {} GB/s", profile.device, short_number(limits.bandwidth / 1e9));
  for (const ArithmeticPeak& peak : limits.peaks) {
    text += fmt::format(", products of {} {}", peak.dtype, flop_rate(peak.flops));
  }
  return text + "\n";
}

/// A rate and its share of the limit.
std::string rate_text(double amount, double milliseconds, double limit, double unit) {
  if (milliseconds <= 0 || amount <= 0 || limit <= 0) return "-";
  const double rate = amount / (milliseconds / 1e3);
  return fmt::format("{} ({:.0f} %)", short_number(rate / unit), percent(rate, limit));
}

std::string gain_line(const ModeProfile& profile, const OperatorSum& sum) {
  const auto peak = std::ranges::find(profile.limits.peaks, sum.dtype, &ArithmeticPeak::dtype);
  const double most = peak == profile.limits.peaks.end() ? 0 : peak->flops;
  return fmt::format("  {:>8} {:>8} {:>12} {:>15} {:>15}  {:<9}  {}  {}\n", short_number(sum.gain()),
                     short_number(sum.milliseconds), show_bytes(static_cast<int64_t>(sum.bytes)),
                     rate_text(sum.bytes, sum.milliseconds, profile.limits.bandwidth, 1e9),
                     rate_text(sum.flops, sum.milliseconds, most, 1e12), name(sum.phase), called_by(sum), sum.line);
}

/// Operators whose work no rule knows, the longest first.
std::string unknown_work_text(const std::vector<OperatorSum>& sums, double all) {
  constexpr size_t most_names = 5;
  double time = 0;
  std::vector<std::string> names;
  for (const OperatorSum& sum : sums) {
    if (sum.work_known) continue;
    time += sum.milliseconds;
    if (names.size() < most_names && std::ranges::find(names, sum.op) == names.end()) names.push_back(sum.op);
  }
  if (names.empty()) return "";
  std::string text = fmt::format("  bytes and operations are not known for {:.1f} % of the time:", percent(time, all));
  for (const std::string& name : names) text += " " + name;
  return text + "\n";
}

/// Operators and kernels against the limits of the device.
std::string limits_text(const ModeProfile& profile) {
  const auto sums = frontend::operator_sums(profile);
  std::string text = limits_heading(profile);
  const auto gains = frontend::sums_by_gain(sums);
  if (!gains.empty()) {
    text += fmt::format("  {:>8} {:>8} {:>12} {:>15} {:>15}  {:<9}  {}\n", "ms gain", "ms", "bytes", "GB/s", "TFLOP/s",
                        "phase", "operator  line");
  }
  for (size_t i = 0; i < std::min(gains.size(), most_gains); ++i) text += gain_line(profile, gains[i]);
  return text + unknown_work_text(sums, time_of_operators(profile));
}

/// Bytes by kind, the largest first.
std::vector<std::pair<std::string, int64_t>> kinds_of(const ProfiledMemory& memory) {
  std::vector<std::pair<std::string, int64_t>> kinds;
  for (const MemoryOwner& owner : memory.owners) {
    const auto known = std::ranges::find(kinds, owner.kind, &std::pair<std::string, int64_t>::first);
    if (known != kinds.end()) {
      known->second += owner.bytes;
    } else {
      kinds.emplace_back(owner.kind, owner.bytes);
    }
  }
  std::ranges::stable_sort(kinds, std::greater(), &std::pair<std::string, int64_t>::second);
  return kinds;
}

/// What computing activations again, in the backward pass, would save and cost.
std::string recomputing_text(const std::vector<RecomputedActivations>& recomputed) {
  if (recomputed.empty()) return "";
  int64_t bytes = 0;
  double milliseconds = 0;
  for (const RecomputedActivations& one : recomputed) {
    bytes += one.bytes;
    milliseconds += one.milliseconds;
  }
  std::string text = fmt::format("  recomputing in the backward pass would save at most {} for {:.3g} ms a step:\n",
                                 show_bytes(bytes), milliseconds);
  for (size_t i = 0; i < std::min(recomputed.size(), most_recomputed); ++i) {
    const RecomputedActivations& one = recomputed[i];
    text +=
        fmt::format("  {:>12}  {:.3g} ms  {} x{}\n", show_bytes(one.bytes), one.milliseconds, one.op, one.operators);
  }
  return text;
}

/// What compiled segments hold themselves.
std::string segments_text(const ModeProfile& profile) {
  std::string text;
  for (size_t i = 0; i < std::min(profile.segments.size(), most_segments); ++i) {
    const ProfiledSegment& segment = profile.segments[i];
    text +=
        fmt::format("  segment {}: arena {}{}; at its fullest moment:\n", segment.signature, show_bytes(segment.arena),
                    segment.graphs > 0 ? fmt::format(", {} CUDA Graphs", segment.graphs) : "");
    for (size_t k = 0; k < std::min(segment.owners.size(), most_holders); ++k) {
      const SegmentMemory& owner = segment.owners[k];
      text += fmt::format("  {:>12}  {}  {}  {}  {}\n", show_bytes(owner.bytes), name(owner.kind), name(owner.phase),
                          module_name(profile, owner.module), owner.line);
    }
  }
  if (profile.segments.size() > most_segments) {
    text += fmt::format("  ({} more segments in --json)\n", profile.segments.size() - most_segments);
  }
  return text;
}

std::string memory_text(const ModeProfile& profile) {
  const ProfiledMemory& memory = profile.memory;
  if (memory.peak < 0) return "";
  std::string text = fmt::format("  memory  peak of a step {}, of which {} were there before it\n",
                                 show_bytes(memory.peak), show_bytes(memory.before + memory.held));
  if (memory.reserved >= 0) {
    text += fmt::format("          the allocator keeps {} of the device\n", show_bytes(memory.reserved));
  }
  for (const auto& [kind, bytes] : kinds_of(memory)) text += fmt::format("  {:>12}  {}\n", show_bytes(bytes), kind);
  text += "  the largest owners:\n";
  for (size_t i = 0; i < std::min(memory.owners.size(), most_owners); ++i) {
    const MemoryOwner& owner = memory.owners[i];
    text += fmt::format("  {:>12}  {}  {}\n", show_bytes(owner.bytes), owner.kind, module_name(profile, owner.module));
  }
  return text + recomputing_text(memory.recomputed) + segments_text(profile);
}

std::string shown_or_dash(int64_t bytes) { return bytes < 0 ? "-" : show_bytes(bytes); }

/// One row of the table of modes, what it shows first.
template <class BytesOf>
std::string memory_row(const std::vector<ModeProfile>& modes, const std::string& what, BytesOf bytes_of) {
  std::string row = fmt::format("  {:<32}", what);
  for (const ModeProfile& mode : modes) row += fmt::format("{:>17}", shown_or_dash(bytes_of(mode.memory)));
  return row + "\n";
}

/// 0 for what a mode does not have.
int64_t bytes_of_kind(const ProfiledMemory& memory, const std::string& kind) {
  int64_t sum = 0;
  for (const MemoryOwner& owner : memory.owners) sum += owner.kind == kind ? owner.bytes : 0;
  return sum;
}

/// Modes side by side; nothing for one alone.
std::string memory_of_modes(const std::vector<ModeProfile>& modes) {
  const auto is_known = [](const ModeProfile& mode) { return mode.memory.peak >= 0; };
  if (modes.size() < 2 || std::ranges::none_of(modes, is_known)) return "";
  std::string text = fmt::format("\n  {:<32}", "memory of a step");
  for (const ModeProfile& mode : modes) text += fmt::format("{:>17}", mode.mode);
  text += "\n" + memory_row(modes, "peak", [](const ProfiledMemory& memory) { return memory.peak; });
  text += memory_row(modes, "kept by the allocator", [](const ProfiledMemory& memory) { return memory.reserved; });
  std::vector<std::string> kinds;
  for (const ModeProfile& mode : modes) {
    for (const auto& [kind, bytes] : kinds_of(mode.memory)) {
      if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
    }
  }
  for (const std::string& kind : kinds) {
    text += memory_row(modes, "  " + kind, [&](const ProfiledMemory& memory) { return bytes_of_kind(memory, kind); });
  }
  return text;
}

std::string mode_text(const std::string& program, const ModeProfile& profile) {
  std::string text = heading(program, profile) + waits_text(profile) + slow_text(profile) + phases_text(profile) +
                     shares_text(profile) + strays_text(profile) + attribution_text(profile);
  for (const std::string& note : profile.notes) text += "  note   " + note + "\n";
  return text + "\n" + modules_text(profile, program) + "\n" + operators_text(profile) + "\n" + limits_text(profile) +
         "\n" + memory_text(profile);
}

}  // namespace

std::string Profile::text() const {
  std::string text;
  for (const ModeProfile& mode : modes) text += (text.empty() ? "" : "\n") + mode_text(name, mode);
  return text + memory_of_modes(modes);
}

std::ostream& operator<<(std::ostream& out, const Profile& profile) { return out << profile.text(); }

}  // namespace sinter
