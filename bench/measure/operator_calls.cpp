#include "bench/measure/operator_calls.h"

#include <ATen/record_function.h>

#include <atomic>
#include <memory>

namespace sinter::bench {
namespace {

struct Watch {
  const std::function<void(std::string)>& begin;
  const std::function<void()>& end;
};

/// LibTorch's callbacks are plain functions, which leaves no other place for what they need.
std::atomic<Watch*> watching = nullptr;
thread_local int open_calls = 0;

/// An operator that has been entered.
struct Entered : at::ObserverContext {
  explicit Entered(bool begun) : told(begun) {}
  bool told;  ///< its begin was called, so that it gets its end
};

std::unique_ptr<at::ObserverContext> entered(const at::RecordFunction& function) {
  Watch* watch = watching;
  if (watch == nullptr) return nullptr;
  if (open_calls++ > 0) return std::make_unique<Entered>(false);
  const auto name = function.operator_name();
  watch->begin(name ? c10::toString(*name) : function.name());
  return std::make_unique<Entered>(true);
}

void left(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
  if (context == nullptr) return;
  --open_calls;
  Watch* watch = watching;
  if (watch != nullptr && static_cast<Entered*>(context)->told) watch->end();
}

class Watching {
 public:
  explicit Watching(Watch& watch) {
    watching = &watch;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(entered, left).scopes({at::RecordScope::FUNCTION}));
  }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
  ~Watching() {
    at::removeCallback(handle_);
    watching = nullptr;
  }

 private:
  at::CallbackHandle handle_ = 0;
};

}  // namespace

void watch_operator_calls(const std::function<void(std::string)>& begin, const std::function<void()>& end,
                          const std::function<void()>& call) {
  Watch watch{begin, end};
  const Watching watching_now(watch);
  call();
}

}  // namespace sinter::bench
