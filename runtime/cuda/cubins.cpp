#include "runtime/cuda/cubins.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/nvrtc.h"

namespace sinter::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// More in one program gain little, and the thread that has it works on after all others have ended.
constexpr size_t most_in_a_program = 8;

/// Begins the text of a program of several kernels. On disk such a kernel's entry is that text, under which the code of
/// all of them is found.
constexpr std::string_view program_mark = "// several kernels\n";

std::string key_of(const std::string& text, int sm) { return fmt::format("{}\n{}", sm, text); }

CacheKey kernel_key(const std::string& text, int sm) { return {"cuda", nvrtc::identity(), nvrtc::options(sm), text}; }
CacheKey program_key(const std::string& text, int sm) {
  return {"cuda program", nvrtc::identity(), nvrtc::options(sm), text};
}

/// What a text declares beside its kernel is its own.
std::string program_of(std::span<const KernelSource* const> sources) {
  std::string text(program_mark);
  for (size_t i = 0; i < sources.size(); ++i) {
    text += fmt::format("namespace kernel_{} {{\n{}\n}}\n", i, sources[i]->text);
  }
  return text;
}

std::shared_ptr<const CubinCode> as_code(std::vector<char> bytes) {
  return std::make_shared<const CubinCode>(std::move(bytes));
}

}  // namespace

std::vector<std::vector<size_t>> group_kernels(std::span<const std::string> names, size_t most) {
  std::map<std::string_view, size_t> counts;
  size_t of_one_name = 0;
  for (const std::string& name : names) of_one_name = std::max(of_one_name, ++counts[name]);
  const size_t wanted = (names.size() + most - 1) / most;
  std::vector<std::vector<size_t>> groups(std::max(wanted, of_one_name));
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) -> std::string_view { return names[i]; });
  // Kernels of one name stand in a row, so that dealing them out gives each group at most one.
  for (size_t i = 0; i < order.size(); ++i) groups[i % groups.size()].push_back(order[i]);
  return groups;
}

/// One request for several kernels.
class CubinBuilder::Build {
 public:
  Build(CubinBuilder& builder, std::span<const KernelSource* const> sources, int sm, const Told& told)
      : builder_(builder), sources_(sources), sm_(sm), told_(told), misses_(sources.size()), results_(sources.size()) {
    for (const KernelSource* source : sources) requests_.push_back(builder.built_.request(key_of(source->text, sm)));
  }

  std::vector<Cached<Cubin>> run() {
    std::vector<size_t> own, others;
    for (size_t i = 0; i < requests_.size(); ++i) (requests_[i].is_first() ? own : others).push_back(i);
    run_in_parallel(own.size(), builder_.cores_, [&](size_t i) { look_up(own[i]); });
    std::erase_if(own, [&](size_t i) { return misses_[i].empty(); });
    const auto groups = grouped(own);
    run_in_parallel(groups.size(), builder_.cores_, [&](size_t i) { compile(groups[i]); });
    for (const size_t i : others) {
      const auto begin = Clock::now();
      results_[i] = {requests_[i].future.get(), 0, true};
      told_(i, results_[i], begin, Clock::now());
    }
    for (const auto& request : requests_) static_cast<void>(request.future.get());  // throws what a build has thrown
    return std::move(results_);
  }

 private:
  [[nodiscard]] std::vector<std::vector<size_t>> grouped(const std::vector<size_t>& absent) const {
    if (absent.empty()) return {};
    std::vector<std::string> names;
    for (const size_t i : absent) names.push_back(sources_[i]->name);
    auto groups = group_kernels(names, std::clamp<size_t>(absent.size() / builder_.cores_, 1, most_in_a_program));
    for (auto& group : groups) {
      for (size_t& i : group) i = absent[i];
    }
    return groups;
  }

  /// Keeps what is on disk; else remembers why it is not.
  void look_up(size_t i) {
    const auto begin = Clock::now();
    try {
      CacheLookup found = builder_.disk_.find(kernel_key(sources_[i]->text, sm_));
      std::string answer = found.reason();
      std::shared_ptr<const CubinCode> code;
      if (found.hit() && std::string_view(found.payload.data(), found.payload.size()).starts_with(program_mark)) {
        code = builder_.code_of_program({found.payload.data(), found.payload.size()}, sm_);
        if (code == nullptr) answer = "absent";  // evicted before its kernels
      } else if (found.hit()) {
        code = as_code(std::move(found.payload));
      }
      if (code != nullptr) return keep(i, {code, {true, std::move(answer), {}}}, begin, Clock::now());
      misses_[i] = std::move(answer);
    } catch (...) {
      builder_.built_.fail(requests_[i], std::current_exception());
    }
  }

  void compile(const std::vector<size_t>& group) {
    try {
      if (group.size() > 1 && compile_together(group)) return;
    } catch (const std::exception&) {
      // Each of them alone says what is wrong with it.
    }
    for (const size_t i : group) {
      if (results_[i].built == nullptr) compile_alone(i);
    }
  }

  /// False where they do not compile together, and nothing has been kept.
  bool compile_together(const std::vector<size_t>& group) {
    std::vector<const KernelSource*> members;
    for (const size_t i : group) members.push_back(sources_[i]);
    const auto begin = Clock::now();
    const std::string text = program_of(members);
    auto bytes = nvrtc::try_compile(text, sm_);
    if (!bytes) return false;
    const auto code = as_code(*std::move(bytes));
    const std::string problem = builder_.disk_.store(program_key(text, sm_), *code);
    const auto share = (Clock::now() - begin) / static_cast<int64_t>(group.size());
    for (size_t k = 0; k < group.size(); ++k) {
      const size_t i = group[k];
      Cubin cubin{code, {false, misses_[i], problem}};
      if (problem.empty()) cubin.provenance.problem = builder_.disk_.store(kernel_key(sources_[i]->text, sm_), text);
      const auto from = begin + share * static_cast<int64_t>(k);
      keep(i, std::move(cubin), from, from + share);
    }
    return true;
  }

  void compile_alone(size_t i) {
    const auto begin = Clock::now();
    try {
      const auto code = as_code(nvrtc::compile(*sources_[i], sm_));
      std::string problem = builder_.disk_.store(kernel_key(sources_[i]->text, sm_), *code);
      keep(i, {code, {false, misses_[i], std::move(problem)}}, begin, Clock::now());
    } catch (...) {
      builder_.built_.fail(requests_[i], std::current_exception());
    }
  }

  void keep(size_t i, Cubin cubin, Clock::time_point begin, Clock::time_point end) {
    results_[i] = {std::make_shared<Cubin>(std::move(cubin)), std::chrono::duration<double>(end - begin).count(),
                   false};
    requests_[i].promise->set_value(results_[i].built);
    told_(i, results_[i], begin, end);
  }

  CubinBuilder& builder_;
  std::span<const KernelSource* const> sources_;
  int sm_;
  const Told& told_;
  std::vector<BuildCache<Cubin>::Request> requests_;
  std::vector<std::string> misses_;  ///< the disk cache's answer for those to be built; empty for others
  std::vector<Cached<Cubin>> results_;
};

std::vector<Cached<Cubin>> CubinBuilder::build(std::span<const KernelSource* const> sources, int sm, const Told& told) {
  return Build(*this, sources, sm, told).run();
}

/// That of a program on disk, read once for all of its kernels; null where it is not there.
std::shared_ptr<const CubinCode> CubinBuilder::code_of_program(const std::string& text, int sm) {
  const std::string key = key_of(text, sm);
  {
    const std::lock_guard lock(mutex_);
    const auto known = programs_.find(key);
    if (auto code = known == programs_.end() ? nullptr : known->second.lock()) return code;
  }
  CacheLookup found = disk_.find(program_key(text, sm));
  if (!found.hit()) return nullptr;
  auto code = as_code(std::move(found.payload));
  const std::lock_guard lock(mutex_);
  auto& known = programs_[key];
  if (auto first = known.lock()) return first;
  known = code;
  return code;
}

CubinBuilder& CubinBuilder::process() {
  static auto& builder =
      *new CubinBuilder(DiskCache::process(), std::max<size_t>(1, std::thread::hardware_concurrency()));
  return builder;
}

}  // namespace sinter::runtime
