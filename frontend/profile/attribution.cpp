#include "frontend/profile/attribution.h"

#include <algorithm>
#include <map>
#include <set>

#include "frontend/profile/module_search.h"
#include "frontend/profile/step_places.h"
#include "frontend/torch/convert.h"

namespace sinter::frontend {
namespace {

/// Operators that made nodes of autograd's graph, by thread and number.
class NodeMakers {
 public:
  explicit NodeMakers(std::span<const LoggedOperator> log) {
    for (size_t i = 0; i < log.size(); ++i) {
      if (log[i].end_node > log[i].first_node) makers_[{log[i].thread, log[i].first_node}] = {log[i].end_node, i};
    }
  }

  /// Position of the operator that made a node; nothing where it is not in the log.
  [[nodiscard]] std::optional<size_t> maker_of(const NodeNumber& node) const {
    auto after = makers_.upper_bound({node.thread, node.number});
    if (after == makers_.begin()) return std::nullopt;
    const auto& [begin, maker] = *--after;
    if (begin.first != node.thread || node.number >= maker.end) return std::nullopt;
    return maker.position;
  }

 private:
  struct Maker {
    uint64_t end = 0;
    size_t position = 0;
  };
  std::map<std::pair<uint64_t, uint64_t>, Maker> makers_;
};

class Attributor {
 public:
  Attributor(ModuleTable& modules, std::span<const LoggedOperator> log, int64_t origin)
      : modules_(modules), log_(log), origin_(origin), makers_(log), result_(log.size()) {}

  std::vector<ProfiledOperator> run() {
    for (size_t i = 0; i < log_.size(); ++i) copy_facts(i);
    find_forward_modules();
    for (size_t i = 0; i < log_.size(); ++i) {
      if (log_[i].node) join_backward(i);
    }
    find_losses();
    for (const auto& [position, maker] : from_) {
      if (result_[maker].how == Attribution::loss) result_[position].how = Attribution::loss;
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] static bool is_searched(const LoggedOperator& op) { return !op.node && !op.updates && !op.compiled; }

  void copy_facts(size_t i) {
    const LoggedOperator& op = log_[i];
    ProfiledOperator& out = result_[i];
    out.op = op.name;
    out.step = op.step;
    out.thread = op.thread;
    out.start = static_cast<double>(op.start - origin_) / 1e3;
    out.host = static_cast<double>(op.end - op.start - op.nested) / 1e3;
    copy_work(op.work, out);
    if (op.compiled) return copy_compiled(op, out);
    if (op.node) {
      out.phase = Phase::backward;
      out.autograd = op.node->name;
    } else if (op.updates) {
      out.phase = Phase::optimizer;
      set_module(out, {op.owner.module, Attribution::parameter});
    }
  }

  static void copy_work(const OperatorWork& work, ProfiledOperator& out) {
    if (!work.known) return;
    out.bytes = work.bytes;
    out.flops = work.flops;
    if (work.dtype) out.dtype = std::string(ir::name(dtype_of(*work.dtype)));
  }

  /// A step of a compiled segment knows the modules of all that went in. The path of a model itself is empty.
  void copy_compiled(const LoggedOperator& op, ProfiledOperator& out) {
    copy_sources(op, out);
    ModuleIndex shared = no_module;
    for (const std::string& path : op.modules) {
      if (path.empty() || std::ranges::find(out.modules, path) != out.modules.end()) continue;
      const ModuleIndex module = modules_.intern(path);
      shared = out.modules.empty() ? module : modules_.common(shared, module);
      out.modules.push_back(path);
    }
    const auto in_module = [](const std::string& source) { return read_planned(source).in_module; };
    if (out.modules.empty() && std::ranges::any_of(op.sources, in_module)) shared = modules_.intern("");
    set_module(out, {shared, Attribution::stated});
    const auto of_loss = [](const std::string& source) { return read_planned(source).of_loss; };
    if (shared == no_module && std::ranges::any_of(op.sources, of_loss)) out.how = Attribution::loss;
  }

  /// The phase of all that went in, where it is one, and their first line.
  static void copy_sources(const LoggedOperator& op, ProfiledOperator& out) {
    std::optional<Phase> shared;
    for (const std::string& source : op.sources) {
      const PlannedLine planned = read_planned(source);
      if (out.line.empty()) out.line = planned.line;
      const Phase phase = planned.phase.value_or(Phase::compiled);
      shared = !shared || *shared == phase ? phase : Phase::compiled;
    }
    out.phase = shared.value_or(Phase::compiled);
  }

  static void set_module(ProfiledOperator& out, const FoundModule& found) {
    out.module = found.module;
    out.how = found.module == no_module ? Attribution::none : found.how;
  }

  /// Searches step by step and thread by thread: neighbours are neighbours in time.
  void find_forward_modules() {
    std::map<std::pair<int64_t, uint64_t>, std::vector<size_t>> sequences;
    for (size_t i = 0; i < log_.size(); ++i) {
      if (is_searched(log_[i])) sequences[{log_[i].step, log_[i].thread}].push_back(i);
    }
    for (const auto& [key, positions] : sequences) {
      std::vector<SeenOperator> seen;
      for (const size_t i : positions) seen.push_back(seen_operator(i));
      const std::vector<FoundModule> found = find_modules(modules_, seen);
      for (size_t k = 0; k < positions.size(); ++k) set_module(result_[positions[k]], found[k]);
    }
  }

  SeenOperator seen_operator(size_t i) {
    const LoggedOperator& op = log_[i];
    result_[i].phase = Phase::forward;
    SeenOperator seen{.owner = op.owner.module};
    if (op.stated) {
      seen.stated = modules_.intern(op.stated->module);
      result_[i].line = op.stated->line;
    } else {
      CallSite site = call_site(op.stack);
      seen.calls = std::move(site.calls);
      result_[i].line = std::move(site.line);
    }
    return seen;
  }

  /// Module and line of the forward operator whose node calls this one; of the parameter, where gradients add up.
  void join_backward(size_t i) {
    const RunningNode& node = *log_[i].node;
    if (node.accumulates != no_module) return set_module(result_[i], {node.accumulates, Attribution::parameter});
    const auto maker = node.made_as ? makers_.maker_of(*node.made_as) : std::nullopt;
    if (maker && *maker < i) {
      set_module(result_[i], {result_[*maker].module, result_[*maker].how});
      result_[i].line = result_[*maker].line;
      from_[i] = *maker;
    } else if (log_[i].owner.module != no_module) {
      set_module(result_[i], {log_[i].owner.module, Attribution::parameter});
    }
  }

  /// Operators after the last one of a module and before the backward pass of their step make up its loss. What comes
  /// after the backward pass, and belongs to no module, is neither.
  void find_losses() {
    enum class Behind : uint8_t { nothing, backward, module };  // what the step goes on with
    std::map<int64_t, Behind> behind;
    std::set<int64_t> trains;
    for (const LoggedOperator& op : log_) {
      if (op.node) trains.insert(op.step);
    }
    for (size_t i = log_.size(); i-- > 0;) {
      ProfiledOperator& out = result_[i];
      Behind& next = behind[out.step];
      if (log_[i].node) next = Behind::backward;
      if (out.phase != Phase::forward) continue;
      if (out.module != no_module) {
        next = Behind::module;
      } else if (next == Behind::backward && log_[i].gradients) {
        out.phase = Phase::loss;
        out.how = Attribution::loss;
      } else if (next == Behind::nothing && trains.contains(out.step)) {
        out.phase = Phase::other;
      }
    }
  }

  ModuleTable& modules_;
  std::span<const LoggedOperator> log_;
  int64_t origin_;
  NodeMakers makers_;
  std::vector<ProfiledOperator> result_;
  std::map<size_t, size_t> from_;  ///< backward operators to the forward ones they belong to
};

}  // namespace

std::vector<ProfiledOperator> attribute(ModuleTable& modules, std::span<const LoggedOperator> log, int64_t origin) {
  return Attributor(modules, log, origin).run();
}

}  // namespace sinter::frontend
