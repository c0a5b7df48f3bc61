#include "frontend/profile/module_times.h"

#include <algorithm>
#include <map>

namespace sinter::frontend {
namespace {

/// "Linear" of "torch::nn::LinearImpl"; nothing for a part of a model file, whose class is not known.
std::string short_class(const std::string& class_name) {
  if (class_name.starts_with("sinter::frontend::")) return {};
  const size_t arguments = class_name.find('<');
  const size_t scope = class_name.rfind("::", arguments);
  std::string name = scope == std::string::npos ? class_name : class_name.substr(scope + 2);
  if (name.size() > 4 && name.ends_with("Impl")) name.erase(name.size() - 4);
  return name;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

double& column(ProfiledModule& module, Phase phase) {
  switch (phase) {
    case Phase::backward:
      return module.backward;
    case Phase::optimizer:
      return module.optimizer;
    case Phase::compiled:
      return module.compiled;
    default:
      return module.forward;
  }
}

using Members = std::vector<size_t>;

class Folding {
 public:
  explicit Folding(const std::vector<ProfiledModule>& modules)
      : modules_(modules), parts_(modules.size()), alike_(modules.size()) {
    for (size_t i = modules.size(); i-- > 0;) {
      // Parts stand behind their whole, so theirs are complete.
      std::reverse(parts_[i].begin(), parts_[i].end());
      alike_[i] = description(i);
      if (modules[i].parent >= 0) parts_[static_cast<size_t>(modules[i].parent)].push_back(i);
    }
  }

  std::vector<FoldedModule> run() {
    Members roots;
    for (size_t i = 0; i < modules_.size(); ++i) {
      if (modules_[i].parent < 0) roots.push_back(i);
    }
    for (const size_t root : roots) add({root}, 0);
    return std::move(lines_);
  }

 private:
  [[nodiscard]] std::string description(size_t i) const {
    std::string text = modules_[i].kind + "(";
    for (const size_t part : parts_[i]) text += last_part(modules_[part].path) + alike_[part] + ",";
    return text + ")";
  }

  void add(const Members& same, int64_t depth) {
    const size_t line = lines_.size();
    lines_.push_back({.name = name_of(same),
                      .path = modules_[same.front()].path,
                      .kind = modules_[same.front()].kind,
                      .depth = depth,
                      .repeats = std::ssize(same)});
    for (const size_t module : same) add_times(line, modules_[module]);
    for (const Members& group : groups_of(same)) {
      const size_t part = lines_.size();
      add(group, depth + 1);
      add_times(line, lines_[part]);
    }
  }

  template <class Times>
  void add_times(size_t to, const Times& times) {
    FoldedModule& line = lines_[to];
    line.forward += times.forward;
    line.backward += times.backward;
    line.optimizer += times.optimizer;
    line.compiled += times.compiled;
    line.operators += times.operators;
    line.launches += times.launches;
    line.saved += times.saved;
  }

  /// "0", "1, 3, 7" or "layer_0..11".
  [[nodiscard]] std::string name_of(const Members& same) const {
    const std::string first = last_part(modules_[same.front()].path);
    if (same.size() == 1 || has_many_parents(same)) return first;
    const auto number_of = [](const std::string& name) {
      return name.substr(std::min(name.find_last_not_of("0123456789") + 1, name.size()));
    };
    if (same.size() > 4) return first + ".." + number_of(last_part(modules_[same.back()].path));
    std::string name = first;
    for (size_t i = 1; i < same.size(); ++i) name += ", " + number_of(last_part(modules_[same[i]].path));
    return name;
  }

  /// True for one part of several wholes that were folded.
  [[nodiscard]] bool has_many_parents(const Members& same) const {
    return modules_[same.front()].parent != modules_[same.back()].parent;
  }

  /// Parts of modules that are alike, the same part of each together, with parts beside each other that are alike; by
  /// time.
  [[nodiscard]] std::vector<Members> groups_of(const Members& wholes) const {
    std::vector<Members> groups;
    std::map<std::string, size_t> group_of;
    const Members& first = parts_[wholes.front()];
    for (size_t place = 0; place < first.size(); ++place) {
      const std::string key = is_block(first[place]) ? alike_[first[place]] : std::to_string(place);
      const auto [known, added] = group_of.try_emplace(key, groups.size());
      if (added) groups.emplace_back();
      for (const size_t whole : wholes) groups[known->second].push_back(parts_[whole].at(place));
    }
    for (Members& group : groups) std::ranges::sort(group);
    std::ranges::stable_sort(groups, std::greater(), [this](const Members& group) { return time_of(group); });
    return groups;
  }

  /// What is folded with others: numbered, and more than a single layer.
  [[nodiscard]] bool is_block(size_t i) const {
    const bool numbered = last_part(modules_[i].path).find_first_of("0123456789") != std::string::npos;
    return numbered && !parts_[i].empty();
  }

  [[nodiscard]] double time_of(const Members& group) const {
    double sum = 0;
    for (const size_t i : group) {
      const ProfiledModule& one = modules_[i];
      sum += one.forward + one.backward + one.optimizer + one.compiled + time_of(parts_[i]);
    }
    return sum;
  }

  const std::vector<ProfiledModule>& modules_;
  std::vector<Members> parts_;
  std::vector<std::string> alike_;  ///< class and parts in words; the same for modules that are built alike
  std::vector<FoldedModule> lines_;
};

}  // namespace

std::vector<ProfiledModule> module_times(const ModuleTable& modules, const ModeProfile& profile) {
  std::vector<ProfiledModule> times;
  for (const ModuleTable::Row& row : modules.rows()) {
    times.push_back({.path = row.path, .kind = short_class(row.class_name), .parent = row.parent});
  }
  for (const ProfiledOperator& op : profile.operators) {
    if (op.module < 0) continue;
    ProfiledModule& module = times[static_cast<size_t>(op.module)];
    column(module, op.phase) += profile.time_of(op) / 1e3;
    ++module.operators;
    module.launches += op.launches;
  }
  const auto steps = static_cast<double>(std::max<int64_t>(profile.steps, 1));
  for (ProfiledModule& module : times) {
    module.forward /= steps;
    module.backward /= steps;
    module.optimizer /= steps;
    module.compiled /= steps;
    module.operators /= std::max<int64_t>(profile.steps, 1);
    module.launches /= std::max<int64_t>(profile.steps, 1);
  }
  return times;
}

void add_saved(ModeProfile& profile) {
  const auto add = [&](int64_t module, int64_t bytes) {
    if (module >= 0) profile.modules[static_cast<size_t>(module)].saved += bytes;
  };
  for (const MemoryOwner& owner : profile.memory.saved) add(owner.module, owner.bytes);
  for (const ProfiledSegment& segment : profile.segments) {
    for (const SegmentMemory& owner : segment.owners) {
      // Without a graph the allocator has told of what library calls take.
      const bool is_known = segment.graphs == 0 && owner.kind == SegmentOwner::Kind::library_result;
      if (owner.phase == Phase::forward && !is_known) add(owner.module, owner.bytes);
    }
  }
}

std::vector<FoldedModule> folded(const std::vector<ProfiledModule>& modules) { return Folding(modules).run(); }

}  // namespace sinter::frontend
