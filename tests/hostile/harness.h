#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <sinter/sinter.h>
#include <torch/nn/module.h>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "observe.h"

/// Runs a program twice from the same seed, once as it is and once with its callables compiled, and tells what differs.
namespace sinter::test::hostile {

/// What a program tells of its compiled functions.
struct Outcome {
  std::vector<bool>
      replayed;  ///< whether compiled code answered: by call, over all functions in the order of the calls
  std::vector<EntryReport> entries;
  std::string report;  ///< for the reader of a failure
};

/// Counts that tell whether a call was answered by compiled code.
struct Answers {
  int64_t replayed = 0;  ///< calls
  int64_t threw = 0;     ///< calls
  int64_t segments = 0;  ///< that ran compiled

  [[nodiscard]] static Answers of(const Stats& stats, const Report& report);
  /// True where the call between was, or where it threw and compiled segments did work until then.
  [[nodiscard]] bool show_a_replay_since(const Answers& before) const;
};

/// Where a program runs, and the mode its callables are compiled in unless they ask for another.
struct Place {
  at::Device device = at::kCPU;
  Mode mode = Mode::Default;
  Replay replay = Replay::checked;
};

/// One run of a program: where it is told the device and draws its data, and what it has shown so far.
class Session {
 public:
  Session(const Place& place, bool compiled);

  [[nodiscard]] at::Device device() const { return place_.device; }
  [[nodiscard]] bool on_cuda() const { return device().is_cuda(); }
  [[nodiscard]] at::TensorOptions options(at::ScalarType dtype = at::kFloat) const;
  /// Data on the device from a generator of the session's own: the default generators stay as they are.
  [[nodiscard]] at::Tensor randn(c10::IntArrayRef sizes, at::ScalarType dtype = at::kFloat);
  /// Integers in [0, high).
  [[nodiscard]] at::Tensor integers(int64_t high, c10::IntArrayRef sizes, at::ScalarType dtype = at::kLong);
  /// 0, 1, 2, ... in the given shape.
  [[nodiscard]] at::Tensor counting(c10::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) const;

  /// The subject of the test: called like `callable`, it runs it (eager run) or what sinter::compile made of it. Every
  /// call is observed.
  template <class Callable>
  class Subject;
  template <class Callable>
  [[nodiscard]] auto compile(Callable&& callable, Options options = {}) {
    if (options.mode == Mode::Default) options.mode = place_.mode;
    options.replay = place_.replay;
    options.compile_budget = std::numeric_limits<double>::infinity();
    return Subject<std::decay_t<Callable>>(*this, std::forward<Callable>(callable), std::move(options));
  }

  /// Looks at a tensor after every call. The variable must outlive the calls; what it holds may change.
  void watch(std::string name, const at::Tensor* variable);
  /// Looks at the parameters and buffers of a module after every call.
  void watch(const std::shared_ptr<torch::nn::Module>& module);
  /// Moves the module to the device, fills parameters and floating-point buffers from the session's generator, and
  /// watches it.
  template <class Holder>
  Holder adopt(Holder module) {
    fill(module.ptr());
    watch(module.ptr());
    return module;
  }
  /// The same without watching it: nothing but the program holds the module then.
  void fill(const std::shared_ptr<torch::nn::Module>& module);

  /// Shows a result that no call returns.
  void show(const std::string& label, const at::Tensor& tensor);
  void show(const std::string& label, const std::string& text);

  /// The state of the default generators is shown last. Call once, after the program.
  [[nodiscard]] std::vector<Observation> finish();
  [[nodiscard]] Outcome& outcome() { return outcome_; }

 private:
  [[nodiscard]] std::vector<Held> state() const;
  /// Runs `body`, adding the error it throws, if any, to `seen`.
  static void run(Observation& seen, const std::function<void()>& body);
  void note_call(Observation seen, std::vector<Held> tensors);
  void note_answer(bool replayed);
  void note_report(const Report& report);

  Place place_;
  bool compiled_;
  at::Generator generator_;
  std::vector<std::pair<std::string, const at::Tensor*>> variables_;
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<Observation> observations_;
  Outcome outcome_;
  int calls_ = 0;
};

template <class Callable>
class Session::Subject {
 public:
  Subject(Session& session, Callable callable, Options options) : session_(session) {
    if (session.compiled_) {
      compiled_.emplace(std::move(callable), std::move(options));
    } else {
      callable_.emplace(std::move(callable));
    }
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  ~Subject() {
    if (compiled_) session_.note_report(compiled_->report());
  }

  /// The result, or nothing when the call threw.
  template <class... Args>
  auto operator()(Args&&... args) {
    using Result = std::decay_t<decltype(detail::invoke(std::declval<Callable&>(), std::forward<Args>(args)...))>;
    detail::Flat arguments;
    (detail::flatten(arguments, args), ...);
    std::vector<Held> tensors;
    for (const at::Tensor* tensor : arguments.tensors) {
      tensors.push_back({"argument " + std::to_string(tensors.size()), *tensor});
    }
    Observation seen;
    std::optional<std::conditional_t<std::is_void_v<Result>, std::monostate, Result>> result;
    const Answers before = answers();
    Session::run(seen, [&] { call(result, std::forward<Args>(args)...); });
    if (compiled_) session_.note_answer(answers().show_a_replay_since(before));
    if constexpr (!std::is_void_v<Result>) {
      if (result) add_results(*result, seen, tensors);
    }
    session_.note_call(std::move(seen), std::move(tensors));
    return result;
  }

  /// Calls without observing: for threads, and for calls whose arguments the harness must not hold.
  template <class... Args>
  decltype(auto) quietly(Args&&... args) {
    using Result = std::decay_t<decltype(detail::invoke(std::declval<Callable&>(), std::forward<Args>(args)...))>;
    if (compiled_) return static_cast<Result>((*compiled_)(std::forward<Args>(args)...));
    return static_cast<Result>(detail::invoke(*callable_, std::forward<Args>(args)...));
  }

 private:
  [[nodiscard]] Answers answers() const {
    return compiled_ ? Answers::of(compiled_->stats(), compiled_->report()) : Answers{};
  }

  template <class Result, class... Args>
  void call(std::optional<Result>& result, Args&&... args) {
    if constexpr (std::is_same_v<Result, std::monostate>) {
      if (compiled_) {
        (*compiled_)(std::forward<Args>(args)...);
      } else {
        detail::invoke(*callable_, std::forward<Args>(args)...);
      }
      result.emplace();
    } else if (compiled_) {
      result.emplace((*compiled_)(std::forward<Args>(args)...));
    } else {
      result.emplace(detail::invoke(*callable_, std::forward<Args>(args)...));
    }
  }

  template <class Result>
  static void add_results(const Result& result, Observation& seen, std::vector<Held>& tensors) {
    if constexpr (std::is_floating_point_v<Result>) {
      tensors.push_back({"result 0", as_read(result)});
      return;
    }
    detail::Flat flat;
    detail::flatten(flat, result);
    seen.facts += "result " + printable({flat.structure.data(), flat.structure.size()}) + "\n";
    for (size_t i = 0; i < flat.tensors.size(); ++i) {
      tensors.push_back({"result " + std::to_string(i), *flat.tensors[i]});
    }
  }

  Session& session_;
  std::optional<Callable> callable_;
  std::optional<Compiled<Callable>> compiled_;
};

/// One trap.
struct Program {
  const char* name;
  void (*run)(Session& session);
  Numbers numbers = Numbers::rounded;
};

/// Programs about one matter.
struct Group {
  const char* name;
  std::span<const Program> programs;
};

/// A program and the name of its group.
struct Case {
  const char* group;
  const Program* program;
};

/// Every program of the suite.
[[nodiscard]] std::vector<Group> groups();
[[nodiscard]] std::vector<Case> cases();
[[nodiscard]] std::vector<Case> cases(std::span<const Group> groups);
/// The name of its tests: "inputs_zero_dim_inputs".
[[nodiscard]] std::string name_of(const Case& one);

/// Runs a program eager and compiled and reports what differs, and failures of Sinter itself, as failures of the
/// running test. Grad mode is off unless the program turns it on. Gives the number of the first call that was answered
/// compiled; 0 where none was.
[[nodiscard]] int check(const Program& program, const Place& place);

}  // namespace sinter::test::hostile
