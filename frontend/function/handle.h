#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "frontend/function/function.h"

namespace sinter::detail {

/// What copies of a compiled object share: a function, which a reset replaces by one that has learnt nothing. Calls
/// keep the function they began with alive. Thread-safe.
class Handle {
 public:
  Handle(Options options, std::vector<frontend::NamedModule> modules, std::string name);

  [[nodiscard]] bool is_enabled() const { return disabled_.empty(); }
  bool call(const Flat& arguments, const Program& program, Replay& replay);
  [[nodiscard]] Report report() const;
  [[nodiscard]] Stats stats() const { return function()->stats(); }
  void reset();

 private:
  [[nodiscard]] std::shared_ptr<Function> make() const;
  [[nodiscard]] std::shared_ptr<Function> function() const { return function_.load(std::memory_order_acquire); }

  const Options options_;
  const std::vector<frontend::NamedModule> modules_;
  const std::string name_;
  const std::string disabled_;  ///< by what; or empty
  std::atomic<std::shared_ptr<Function>> function_;
};

}  // namespace sinter::detail
