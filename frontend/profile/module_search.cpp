#include "frontend/profile/module_search.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace sinter::frontend {
namespace {

/// An operator whose module is known, beside another one.
struct Neighbour {
  ModuleIndex module = no_module;
  size_t position = 0;
};

class Search {
 public:
  Search(const ModuleTable& modules, std::span<const SeenOperator> operators)
      : modules_(modules), operators_(operators), found_(operators.size()) {
    for (ModuleIndex i = 0; i < std::ssize(modules.rows()); ++i) by_class_[row(i).class_name].push_back(i);
    by_class_.erase("");
  }

  std::vector<FoundModule> run() {
    note_what_is_known();
    std::optional<Neighbour> before;
    for (size_t i = 0; i < operators_.size(); ++i) {
      const auto after = next_known(i);
      if (found_[i].module == no_module) found_[i] = by_stack(i, before, after);
      if (found_[i].module == no_module && before && after) {
        found_[i] = {modules_.common(before->module, after->module), Attribution::between};
      }
      if (found_[i].module != no_module && found_[i].how != Attribution::between) before = {found_[i].module, i};
    }
    return std::move(found_);
  }

 private:
  void note_what_is_known() {
    next_.resize(operators_.size() + 1, operators_.size());
    for (size_t i = operators_.size(); i-- > 0;) {
      const SeenOperator& op = operators_[i];
      if (op.stated != no_module) {
        found_[i] = {op.stated, Attribution::stated};
      } else if (op.owner != no_module) {
        found_[i] = {op.owner, Attribution::parameter};
      }
      next_[i] = found_[i].module != no_module ? i : next_[i + 1];
    }
  }

  [[nodiscard]] std::optional<Neighbour> next_known(size_t i) const {
    if (next_[i] == operators_.size()) return std::nullopt;
    return Neighbour{found_[next_[i]].module, next_[i]};
  }

  [[nodiscard]] const ModuleTable::Row& row(ModuleIndex module) const {
    return modules_.rows()[static_cast<size_t>(module)];
  }

  /// True where the modules around `module` are of the classes that `calls` ends with, in this order.
  [[nodiscard]] bool fits(ModuleIndex module, std::span<const MemberCall> calls) const {
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      while (module != no_module && row(module).class_name != call->class_name) module = row(module).parent;
      if (module == no_module) return false;
      module = row(module).parent;
    }
    return true;
  }

  /// The calls of modules' classes among those of a stack.
  [[nodiscard]] std::vector<MemberCall> module_calls(const SeenOperator& op) const {
    std::vector<MemberCall> calls;
    for (const MemberCall& call : op.calls) {
      const bool known = by_class_.contains(call.class_name);
      const bool again = !calls.empty() && calls.back().class_name == call.class_name;  // a holder, or a helper
      if (again) calls.back() = call;
      if (known && !again) calls.push_back(call);
    }
    return calls;
  }

  [[nodiscard]] std::vector<ModuleIndex> candidates(std::span<const MemberCall> calls) const {
    std::vector<ModuleIndex> fitting;
    for (const ModuleIndex module : by_class_.at(calls.back().class_name)) {
      if (fits(module, calls)) fitting.push_back(module);
    }
    return fitting;
  }

  [[nodiscard]] int64_t nearness(ModuleIndex module, const std::optional<Neighbour>& to) const {
    const ModuleIndex shared = to ? modules_.common(module, to->module) : no_module;
    return shared == no_module ? -1 : row(shared).depth;
  }

  /// The candidate next to what was called before: one that holds it, else the first after it.
  [[nodiscard]] ModuleIndex nearest_to(std::span<const ModuleIndex> candidates, const std::optional<Neighbour>& to,
                                       bool is_before) const {
    const auto rank = [&](ModuleIndex module) {
      const bool holds = to && modules_.is_inside(to->module, module);
      const bool in_order = to && (is_before ? module > to->module : module < to->module);
      const int64_t distance = to ? std::abs(module - to->module) : module;
      return std::tuple(nearness(module, to), holds, in_order, -distance);
    };
    return *std::ranges::max_element(candidates, {}, rank);
  }

  /// True where the innermost function that both were called from has moved on in between.
  [[nodiscard]] static bool has_moved_on(const SeenOperator& earlier, std::span<const MemberCall> calls) {
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      const auto same = std::ranges::find(earlier.calls, call->class_name, &MemberCall::class_name);
      if (same != earlier.calls.end()) return same->address <= call->address;
    }
    return true;
  }

  [[nodiscard]] FoundModule by_stack(size_t i, const std::optional<Neighbour>& before,
                                     const std::optional<Neighbour>& after) const {
    const std::vector<MemberCall> calls = module_calls(operators_[i]);
    if (calls.empty()) return {};
    const std::vector<ModuleIndex> fitting = candidates(calls);
    if (fitting.empty()) return {};
    const ModuleIndex first = nearest_to(fitting, before, true);
    const ModuleIndex second = nearest_to(fitting, after, false);
    const int64_t to_first = nearness(first, before);
    const int64_t to_second = nearness(second, after);
    if (to_first != to_second) return {to_first > to_second ? first : second, Attribution::stack};
    const bool stays = first == second || !before || has_moved_on(operators_[before->position], calls);
    return {stays ? first : second, Attribution::stack};
  }

  const ModuleTable& modules_;
  std::span<const SeenOperator> operators_;
  std::unordered_map<std::string_view, std::vector<ModuleIndex>> by_class_;
  std::vector<FoundModule> found_;
  std::vector<size_t> next_;  ///< position of the next operator whose module is known without a search, this included
};

}  // namespace

std::vector<FoundModule> find_modules(const ModuleTable& modules, std::span<const SeenOperator> operators) {
  return Search(modules, operators).run();
}

}  // namespace sinter::frontend
