#include "bench/measure/operator_calls.h"

#include <ATen/record_function.h>

#include <memory>

namespace sinter::bench {
namespace {

struct Watch {
  const std::function<void(std::string)>& begin;
  const std::function<void()>& end;
  int depth = 0;
};

/// LibTorch's callbacks are plain functions, which leaves no other place for what they need.
thread_local Watch* watching = nullptr;

std::unique_ptr<at::ObserverContext> entered(const at::RecordFunction& function) {
  if (watching != nullptr && watching->depth++ == 0) {
    const auto name = function.operator_name();
    watching->begin(name ? c10::toString(*name) : function.name());
  }
  return nullptr;
}

void left(const at::RecordFunction& /*function*/, at::ObserverContext* /*context*/) {
  if (watching != nullptr && --watching->depth == 0) watching->end();
}

class Watching {
 public:
  explicit Watching(Watch& watch)
      : handle_(
            at::addThreadLocalCallback(at::RecordFunctionCallback(entered, left).scopes({at::RecordScope::FUNCTION}))) {
    watching = &watch;
  }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
  ~Watching() {
    at::removeCallback(handle_);
    watching = nullptr;
  }

 private:
  at::CallbackHandle handle_;
};

}  // namespace

void watch_operator_calls(const std::function<void(std::string)>& begin, const std::function<void()>& end,
                          const std::function<void()>& call) {
  Watch watch{begin, end};
  const Watching watching_now(watch);
  call();
}

}  // namespace sinter::bench
