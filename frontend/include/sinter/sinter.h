#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "sinter/control.h"
#include "sinter/detail/flatten.h"
#include "sinter/detail/function.h"
#include "sinter/events.h"
#include "sinter/materialize.h"
#include "sinter/model.h"
#include "sinter/options.h"
#include "sinter/report.h"
#include "sinter/stats.h"

namespace sinter {

namespace detail {

/// A torch::nn module holder (`ResNet50`, which is a ModuleHolder<ResNet50Impl>).
template <class T>
concept IsModuleHolder = requires(const T& holder) {
  { holder.ptr() } -> std::convertible_to<std::shared_ptr<const torch::nn::Module>>;
};

/// A shared pointer to a module.
template <class T>
inline constexpr bool is_module_pointer = false;
template <class Impl>
inline constexpr bool is_module_pointer<std::shared_ptr<Impl>> = std::is_base_of_v<torch::nn::Module, Impl>;

template <class T>
concept IsModule = IsModuleHolder<T> || is_module_pointer<T>;

/// What compile reads a model from, instead of calling it.
template <class T>
concept IsPath = std::convertible_to<T, std::filesystem::path>;
template <class T>
concept IsScript = std::same_as<std::remove_cvref_t<T>, torch::jit::Module>;
template <class T>
concept IsModel = std::same_as<std::remove_cvref_t<T>, Model>;

/// Calls a module's forward, or the function itself.
template <class Callable, class... Args>
decltype(auto) invoke(Callable& callable, Args&&... args) {
  if constexpr (IsModule<Callable>) {
    return callable->forward(std::forward<Args>(args)...);
  } else {
    return std::invoke(callable, std::forward<Args>(args)...);
  }
}

/// An argument as it is handed on to the callable: what the caller would move is copied, so that it can still be looked
/// at afterwards.
template <class T>
decltype(auto) pass(std::remove_reference_t<T>& argument) {
  if constexpr (std::is_lvalue_reference_v<T> || !std::is_copy_constructible_v<std::remove_const_t<T>>) {
    return std::forward<T>(argument);
  } else {
    return std::remove_const_t<T>(argument);
  }
}

template <class Callable>
std::shared_ptr<torch::nn::Module> module_of(const Callable& callable) {
  if constexpr (IsModuleHolder<Callable>) {
    return callable.ptr();
  } else if constexpr (IsModule<Callable>) {
    return callable;
  } else if constexpr (IsModel<Callable>) {
    return callable.module();
  } else {
    return nullptr;
  }
}

}  // namespace detail

/// What sinter::compile returns: called like the callable it was made from, with the same results.
///
/// The callable's host code runs on every call. Operators that were recorded are answered with tensors without data,
/// which compiled segments compute when it is needed; others run, and are recorded (docs/calls.md). What cannot be
/// compiled runs as it is, and report() says why. With Replay::trusted the host code is left out where guards hold
/// (docs/trusted-replay.md).
///
/// Copies share what was recorded. Calls from several threads are correct as long as the callable itself may be called
/// from several threads.
template <class Callable>
class Compiled {
 public:
  Compiled(Callable callable, Options options)
      : state_(std::make_shared<State>(
            State{.handle = detail::make_handle(std::move(options), detail::module_of(callable), kind()),
                  .callable = std::move(callable)})),
        enabled_(detail::is_enabled(*state_->handle)) {}

  /// Tensors of any shape, scalars (bool, integers, float, double), strings, and optionals, tuples, pairs, arrays,
  /// vectors and string-keyed maps of them; the result likewise. Other types work too, but not without the host code.
  ///
  /// Exceptions of the callable and of LibTorch pass unchanged. Throws UserError on a graph break under
  /// Options::fullgraph, InternalError under Options::strict.
  template <class... Args>
  auto operator()(Args&&... args) const {
    using Result = std::decay_t<decltype(detail::invoke(std::declval<Callable&>(), std::forward<Args>(args)...))>;
    if (!enabled_) return static_cast<Result>(detail::invoke(state_->callable, std::forward<Args>(args)...));
    auto take_apart = [&] {
      detail::Flat flat;
      flat.count(detail::Tag::tuple, sizeof...(args));
      (detail::flatten(flat, args), ...);
      return flat;
    };
    const detail::Flat flat = take_apart();

    std::optional<std::conditional_t<std::is_void_v<Result>, std::monostate, Result>> result;
    auto run = [&](detail::Flat* taken_apart) {
      if constexpr (std::is_void_v<Result>) {
        detail::invoke(state_->callable, detail::pass<Args>(args)...);
        result.emplace();
        if (taken_apart != nullptr) taken_apart->count(detail::Tag::tuple, 0);
      } else {
        result.emplace(detail::invoke(state_->callable, detail::pass<Args>(args)...));
        if (taken_apart != nullptr) describe(*taken_apart, *result);
      }
    };
    const detail::Program program{
        &run, [](void* context, detail::Flat* taken_apart) { (*static_cast<decltype(run)*>(context))(taken_apart); },
        &take_apart, [](void* given) { return (*static_cast<decltype(take_apart)*>(given))(); }};
    detail::Replay replay;
    const bool replayed = detail::call(*state_->handle, flat, program, replay);
    if constexpr (std::is_void_v<Result>) {
      return;
    } else {
      if constexpr (detail::is_result<Result>) {
        if (replayed) {
          detail::Reader reader(replay);
          return detail::read<Result>(reader);
        }
      }
      return std::move(*result);
    }
  }

  /// What was captured, what broke, what it cost. A snapshot; thread-safe.
  [[nodiscard]] Report report() const { return detail::report(*state_->handle); }

  /// Counts of calls, entries and breaks, and the time that compiling took: cheap enough to be read after every call
  /// (no lock, some tens of nanoseconds). Thread-safe.
  [[nodiscard]] Stats stats() const { return detail::stats(*state_->handle); }

  /// Forgets everything: entries, plans, recorded graphs, what was learnt of sizes, counts, and what report() tells.
  /// The next call is recorded anew. Calls that are under way end as they began, and what they record is dropped with
  /// them. Kernels stay in the process and on disk, so that nothing is built again. For all copies. Thread-safe; the
  /// callable and Options::on_event may call it.
  void reset() const { detail::reset(*state_->handle); }

 private:
  struct State {
    std::shared_ptr<detail::Handle> handle;
    Callable callable;
  };

  static constexpr const char* kind() {
    if (detail::IsModule<Callable> || detail::IsModel<Callable>) return "module";
    return std::is_class_v<Callable> ? "lambda" : "function";
  }

  template <class Result>
  static void describe(detail::Flat& flat, const Result& result) {
    if constexpr (detail::is_result<Result>) {
      detail::flatten(flat, result);
    } else {
      flat.unknown = &typeid(Result);
    }
  }

  std::shared_ptr<State> state_;
  bool enabled_;
};

/// Promises that a size of the arguments in this tensor's place changes from call to call within [min, max], and that
/// the program does the same for all of these sizes: they are compiled together as soon as a second size was seen, and
/// no size in the range is looked into first. A call outside of the range throws UserError when it would be compiled.
/// Negative dims count from the end. Throws UserError when the tensor has no such dim, its size is not in the range, or
/// the range holds less than two sizes from 2 on. The mark goes with the tensor, not with its copies. Thread-safe for
/// different tensors.
void mark_dynamic(const at::Tensor& tensor, int64_t dim, int64_t min = 2,
                  int64_t max = std::numeric_limits<int64_t>::max());

/// Compiles a `torch::nn` module (a holder or a shared pointer to one), a lambda or a function. Nothing is compiled
/// before the first call.
///
///     torch::NoGradGuard no_grad;
///     auto fast = sinter::compile(model, {.mode = sinter::Mode::ReduceOverhead});
///     torch::Tensor y = fast(x);
///     std::cout << fast.report();
///
/// Modules are shared with the caller, lambdas are moved in. Throws UserError when options contradict each other.
template <class Callable>
  requires(!detail::IsPath<Callable> && !detail::IsScript<Callable> && !detail::IsModel<Callable>)
[[nodiscard]] Compiled<std::decay_t<Callable>> compile(Callable&& callable, Options options = {}) {
  return Compiled<std::decay_t<Callable>>(std::forward<Callable>(callable), std::move(options));
}

/// Compiles a model that was read from a file or wrapped.
[[nodiscard]] inline Compiled<Model> compile(Model model, Options options = {}) {
  if (options.name.empty()) options.name = model.name();
  return {std::move(model), std::move(options)};
}

/// Compiles a `.pt2` file of torch.export or a TorchScript `.pt` file. Nobody else holds its tensors, so that what
/// depends on them alone is computed once (Options::freeze), and it has no host code to run (Replay::trusted).
/// Arguments and result: see Model. Throws UserError as Model's constructor does.
///
///     auto fast = sinter::compile("model.pt2");
///     at::Tensor y = fast(x).toTensor();
[[nodiscard]] inline Compiled<Model> compile(const std::filesystem::path& file, Options options = {}) {
  options.freeze = true;
  options.replay = Replay::trusted;
  return compile(Model(file), std::move(options));
}

/// Compiles a TorchScript module, shared with the caller.
template <detail::IsScript Script>
[[nodiscard]] Compiled<Model> compile(const Script& module, Options options = {}) {
  return compile(Model(module), std::move(options));
}

}  // namespace sinter
