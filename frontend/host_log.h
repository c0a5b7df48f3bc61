#pragma once

#include <c10/core/Scalar.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <typeinfo>

namespace sinter::frontend {

/// The host functions that a replay ran before it was left. The callable then runs from its beginning, and asks here
/// first, so that none of them runs twice. Logs lie in each other where compiled functions do. Thread-safe; found
/// through the thread-local state that LibTorch carries to its threads.
class HostLog : public c10::DebugInfoBase, public std::enable_shared_from_this<HostLog> {
 public:
  struct Entry {
    const std::type_info* type = nullptr;
    std::optional<at::Scalar> value;  ///< that it returned
    std::exception_ptr error;         ///< that it threw
  };

  void add(Entry entry);
  [[nodiscard]] bool empty() const;

  /// Answers host functions of this thread while it lives.
  class Scope {
   public:
    explicit Scope(std::shared_ptr<HostLog> log);

   private:
    std::optional<c10::DebugInfoGuard> guard_;
  };

  /// True where a log answers on this thread.
  [[nodiscard]] static bool answers();
  /// The next thing that happened, if it was a function of this type; it is taken out. Nothing where the function has
  /// not run yet. A function of another type says that the program takes another way: the rest of the log is dropped.
  [[nodiscard]] static std::optional<Entry> take(const std::type_info& type);

 private:
  [[nodiscard]] std::optional<Entry> take_own(const std::type_info& type);

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  std::shared_ptr<HostLog> outer_;
};

}  // namespace sinter::frontend
