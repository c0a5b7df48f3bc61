#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/trusted/trusted_call.h"

namespace sinter::frontend {

/// What a call was given, to be compared with what the callable has left of it.
class GivenArguments {
 public:
  explicit GivenArguments(const detail::Flat& arguments);
  /// True where the arguments hold the same tensors, numbers and texts still.
  [[nodiscard]] bool are(const detail::Flat& left) const;

 private:
  std::vector<at::Tensor> tensors_;
  c10::SmallVector<char, 64> structure_;
};

/// The calls of one function that are answered without its host code (Replay::trusted): those that two checked calls
/// in a row agreed on. The one that was found longest ago makes room. Thread-safe; looking one up takes no lock.
class TrustedCalls {
 public:
  /// Answers a call that is known. False where none is.
  [[nodiscard]] bool answer(const detail::Flat& arguments, detail::Replay& replay);
  /// False once so many checked calls have differed that the next ones need not be logged.
  [[nodiscard]] bool watches() const { return differed_.load(std::memory_order_relaxed) < max_differed; }
  /// A call has run checked, and did something new: the next two must agree.
  void forget(const detail::Flat& arguments, const Modes& modes);
  /// A call has run checked, and did nothing new.
  void note(const detail::Flat& arguments, const Modes& modes, const CallLog& log, const detail::Flat& result);
  /// A call has run checked, and is none that could be answered without the host code.
  void refuse(std::string reason);
  /// A sentence for the report.
  [[nodiscard]] std::string text() const;

 private:
  using Calls = std::vector<std::shared_ptr<const TrustedCall>>;
  static constexpr size_t max_calls = 64;
  static constexpr int64_t max_differed = 16;

  void add_refusal(std::string reason);
  void publish(std::shared_ptr<const TrustedCall> call);
  void drop(const TrustedCall* call);

  std::atomic<std::shared_ptr<const Calls>> calls_{std::make_shared<const Calls>()};
  std::atomic<int64_t> answered_{0}, differed_{0};
  mutable std::mutex mutex_;  ///< of what follows, and of changes to the calls
  Calls candidates_;          ///< that one call did
  std::string refusal_;       ///< why a call was none
};

}  // namespace sinter::frontend
