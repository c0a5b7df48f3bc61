#include "runtime/graph_parts.h"

#include <algorithm>
#include <array>

namespace sinter::runtime {
namespace {

using Kind = Program::Instruction::Kind;

/// Of the way. The first comes soon, so that the device begins; the last leaves little to do once the host has ended.
constexpr std::array<double, 4> shares{0.1, 0.3, 0.6, 0.85};
constexpr uint32_t fewest_steps = 16;  ///< between two starts: launching a graph takes as long as some ten steps
constexpr int fewest_works = 6;        ///< launches and library calls of a part

class Cutter {
 public:
  Cutter(const Plan& plan, const Program& program, const Arrivals& arrivals)
      : plan_(plan), program_(program), arrivals_(arrivals) {}

  std::vector<GraphPart> run() {
    for (const double share : shares) {
      const auto due = static_cast<uint32_t>(share * arrivals_.end);
      if (due < last_due_ + fewest_steps) continue;
      advance_to(due);
      if (works_ < fewest_works) continue;
      parts_.push_back({next_, due});
      last_due_ = due;
      works_ = 0;
    }
    const size_t end = program_.instructions.size();
    if (!parts_.empty() && works_from(next_) == 0) parts_.pop_back();
    parts_.push_back({end, arrivals_.end});
    return std::move(parts_);
  }

 private:
  /// Over all instructions that need nothing later.
  void advance_to(uint32_t due) {
    for (; next_ < program_.instructions.size(); ++next_) {
      const Program::Instruction& instruction = program_.instructions[next_];
      if (time_of(instruction) > due) return;
      works_ += is_work(instruction) ? 1 : 0;
    }
  }

  [[nodiscard]] static bool is_work(const Program::Instruction& instruction) {
    return instruction.kind == Kind::launch || instruction.kind == Kind::call;
  }
  [[nodiscard]] int works_from(size_t begin) const {
    return static_cast<int>(std::count_if(program_.instructions.begin() + static_cast<std::ptrdiff_t>(begin),
                                          program_.instructions.end(), is_work));
  }

  /// When what an instruction reads itself is there.
  [[nodiscard]] uint32_t time_of(const Program::Instruction& instruction) const {
    uint32_t time = 0;
    const auto reads = [&](BufferId buffer) {
      const Buffer& root = plan_.buffers[root_of(plan_, buffer).buffer.index];
      if (root.kind == BufferKind::input) time = std::max(time, arrivals_.inputs[root.index]);
    };
    if (instruction.kind == Kind::call) {
      time = arrivals_.calls[instruction.index];
      for_each_argument(plan_.calls[instruction.index], reads);
    } else if (instruction.kind == Kind::launch) {
      const Program::Launch& launch = program_.launches[instruction.index];
      for (uint32_t i = 0; i < launch.param_count; ++i) {
        const Program::Param& param = program_.params[launch.first_param + i];
        if (param.pass != KernelArg::Pass::size) reads(param.buffer);
      }
    }
    return time;
  }

  const Plan& plan_;
  const Program& program_;
  const Arrivals& arrivals_;
  std::vector<GraphPart> parts_;
  size_t next_ = 0;
  uint32_t last_due_ = 0;
  int works_ = 0;  ///< since the last cut
};

}  // namespace

std::vector<GraphPart> cut_in_parts(const Plan& plan, const Program& program, const Arrivals& arrivals) {
  if (arrivals.empty() || !plan.written.empty()) return {{program.instructions.size(), arrivals.end}};
  return Cutter(plan, program, arrivals).run();
}

}  // namespace sinter::runtime
