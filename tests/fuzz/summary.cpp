#include "summary.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "generate.h"
#include "print.h"
#include "shrink.h"

namespace sinter::test::fuzz {
namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double Summary::replayed_percent() const {
  return std::min(share(programs_replayed, programs), share(calls_replayed, calls));
}

void Summary::add(const Finding& finding) {
  ++programs;
  calls += finding.calls;
  calls_replayed += finding.replayed;
  programs_replayed += finding.replayed > 0 ? 1 : 0;
  entries += finding.entries;
  breaks_free += finding.breaks.empty() ? 1 : 0;
  rounding += finding.verdict == Verdict::rounding ? 1 : 0;
  effects += finding.effects ? 1 : 0;
  throws += finding.throws ? 1 : 0;
  for (const auto& found : finding.breaks) ++breaks[found];
}

void Summary::add(const Summary& other) {
  programs += other.programs;
  calls += other.calls;
  calls_replayed += other.calls_replayed;
  programs_replayed += other.programs_replayed;
  entries += other.entries;
  breaks_free += other.breaks_free;
  rounding += other.rounding;
  effects += other.effects;
  throws += other.throws;
  for (const auto& [found, count] : other.breaks) breaks[found] += count;
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
}

std::string Summary::text() const {
  std::string out = fmt::format("{} programs on {} ({}) from seed {}, {} calls, {:.0f} s\n", programs, device, mode,
                                first_seed, calls, seconds);
  out += fmt::format("differences        {}\n", failures.size());
  out += fmt::format("programs replayed  {} ({:.1f} %)\n", programs_replayed, share(programs_replayed, programs));
  out += fmt::format("calls replayed     {} ({:.1f} %), {} entries\n", calls_replayed, share(calls_replayed, calls),
                     entries);
  out += fmt::format("without breaks     {} ({:.1f} %)\n", breaks_free, share(breaks_free, programs));
  out += fmt::format("rounding only      {}\n", rounding);
  out += fmt::format("with host effects  {}\n", effects);
  out += fmt::format("with exceptions    {}\n", throws);
  for (const auto& [found, count] : breaks) out += fmt::format("break {}: {}\n", found, count);
  for (const auto& failure : failures)
    out += fmt::format("\nseed {}: {}\n{}", failure.seed, failure.difference, failure.program);
  return out;
}

std::string Summary::json() const {
  nlohmann::ordered_json out{{"device", device},
                             {"mode", mode},
                             {"first_seed", first_seed},
                             {"programs", programs},
                             {"calls", calls},
                             {"programs_replayed", programs_replayed},
                             {"calls_replayed", calls_replayed},
                             {"replayed_percent", replayed_percent()},
                             {"breaks_free", breaks_free},
                             {"entries", entries},
                             {"rounding", rounding},
                             {"host_effects", effects},
                             {"throws", throws},
                             {"breaks", breaks},
                             {"seconds", seconds},
                             {"differences", failures.size()}};
  auto& list = out["failures"] = nlohmann::ordered_json::array();
  for (const auto& failure : failures) {
    list.push_back({{"seed", failure.seed}, {"difference", failure.difference}, {"program", failure.program}});
  }
  return out.dump(1);
}

Summary Summary::from_json(const std::string& text) {
  const auto in = nlohmann::json::parse(text);
  Summary out;
  out.programs = in.at("programs");
  out.calls = in.at("calls");
  out.programs_replayed = in.at("programs_replayed");
  out.calls_replayed = in.at("calls_replayed");
  out.breaks_free = in.at("breaks_free");
  out.entries = in.at("entries");
  out.rounding = in.at("rounding");
  out.effects = in.at("host_effects");
  out.throws = in.at("throws");
  out.breaks = in.at("breaks").get<std::map<std::string, int64_t>>();
  for (const auto& failure : in.at("failures")) {
    out.failures.push_back({failure.at("seed"), failure.at("difference"), failure.at("program")});
  }
  return out;
}

void run_seed(uint64_t seed, const hostile::Place& place, Summary& summary, bool shrinks) {
  at::globalContext().setAllowTF32CuDNN(false);
  const auto program = generate(seed, place);
  const auto finding = check(program, place);
  summary.add(finding);
  if (finding.verdict != Verdict::different) return;
  const auto fails = [&place](const Program& smaller) {
    try {
      return check(smaller, place).verdict == Verdict::different;
    } catch (const std::exception&) {
      return false;  // names what was left out
    }
  };
  const auto small = shrinks ? shrink(program, fails) : program;
  summary.failures.push_back({seed, shrinks ? check(small, place).difference : finding.difference, to_cpp(small)});
}

}  // namespace sinter::test::fuzz
