#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/counters.h"
#include "frontend/entry.h"
#include "sinter/detail/function.h"

namespace sinter::frontend {

/// One run of the user's program under capture.
struct Captured {
  Trace trace;
  std::vector<at::Tensor> results;
  std::string structure;                      ///< of the result
  std::shared_ptr<OptimizerLink> optimizers;  ///< that it used
  std::string unknown_type;  ///< readable name of a part of the result that cannot be described; or empty
};

/// Builds entries for one function, whose compile time it counts. Not thread-safe; the function takes turns.
class Builder {
 public:
  Builder(const Options& options, const std::vector<NamedModule>& modules, std::string function, Counters& counters)
      : options_(options), modules_(modules), function_(std::move(function)), counters_(counters) {}

  /// Told of a capture that can be compiled, before it is; true when other calls will differ from it in sizes only, so
  /// that its kernels had better take sizes as parameters.
  using Join = std::function<bool(const Captured&)>;

  /// Runs the program, which keeps its result, and makes an entry of what it did: one that replays, or an eager one
  /// whose report holds the reason.
  /// Exceptions of the program pass through. Throws InternalError under Options::strict when compiling fails.
  [[nodiscard]] std::shared_ptr<Entry> build(const detail::Flat& arguments, const Modes& modes,
                                             const detail::Program& program, std::vector<GuardMiss> because,
                                             const Join& join);

  /// Makes an entry of what a capture under these arguments would be, without running the program: `trace` differs from
  /// the capture of `head`, which replays, in sizes only.
  [[nodiscard]] std::shared_ptr<Entry> instantiate(const Entry& head, Trace trace, const detail::Flat& arguments,
                                                   const Modes& modes) const;

  /// Runs the program again and compares it with the entry's capture. Equal: arguments that lie elsewhere are free from
  /// here on. Different because an argument is also a tensor that the program closes over: the other case gets an
  /// entry of its own, returned, if the arguments had moved. Different otherwise: the entry turns eager.
  [[nodiscard]] std::shared_ptr<Entry> verify(Entry& entry, int64_t call, Fit fit, const detail::Flat& arguments,
                                              const Modes& modes, const detail::Program& program);

  /// Runs the program again for an entry of paths, which a call left: compares what it does with the recorded course
  /// that read the same, or adds a course. The entry turns eager where the program contradicts itself or breaks. Throws
  /// InternalError under Options::strict when compiling fails. Gives how the call left the nearest course where it
  /// became one beside others, else nothing.
  std::vector<GuardMiss> extend(Entry& entry, int64_t call, const detail::Flat& arguments, const Modes& modes,
                                const detail::Program& program);

  /// Where the program threw when it ran last: module path and source place; empty when it did not.
  [[nodiscard]] const std::string& failed_at() const { return failed_at_; }

 private:
  [[nodiscard]] std::vector<NamedModule> modules_of(const detail::Program& program) const;
  void remember(const Trace& trace);
  [[nodiscard]] Captured capture_program(const detail::Flat& arguments, const detail::Program& program);
  /// `like`: the head, where a capture is only thought.
  void finish(Entry& entry, Captured captured, const detail::Flat& arguments, const Join& join,
              const Entry* like) const;
  void compile(Entry& entry, Captured captured, const detail::Flat& arguments, bool generic_sizes,
               const Entry* like) const;
  [[nodiscard]] std::shared_ptr<Course> make_course(Captured& captured, const detail::Flat& arguments,
                                                    const Modes& modes) const;
  void compile_paths(Entry& entry, Captured captured, const detail::Flat& arguments) const;
  void keep_failure(Entry& entry, const std::exception& error) const;
  [[nodiscard]] std::optional<std::string> difference_of(Entry& entry, const Captured& again,
                                                         const detail::Flat& arguments) const;

  const Options& options_;
  const std::vector<NamedModule>& modules_;
  std::string function_;
  Counters& counters_;
  std::string failed_at_;
  std::vector<WeakTensor> leaves_;         ///< closed-over tensors that earlier recordings took gradients of
  std::vector<at::Generator> generators_;  ///< of the program's own that earlier recordings drew from
};

}  // namespace sinter::frontend
