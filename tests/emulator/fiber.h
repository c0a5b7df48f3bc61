#pragma once

#include <cstddef>

namespace sinter::test {

/// A function with a stack of its own, which runs until it suspends itself and goes on when it is resumed. The address
/// sanitizer is told of every switch. A fiber may be abandoned where it stands: what is on its stack is not destroyed.
class Fiber {
 public:
  using Body = void (*)(void* context);

  Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// The next resume() calls body(context). The fiber is new, or done.
  void start(Body body, void* context);

  /// Runs the fiber until it suspends or is done. Not for use within a fiber.
  void resume();

  /// Goes back to who resumed the fiber that runs.
  static void suspend();

  [[nodiscard]] bool done() const { return body_ == nullptr; }

 private:
  static void enter();
  void leave(void** fake_stack);
  void arrived(void* fake_stack);

  void* stack_;
  void* inside_ = nullptr;   ///< where the fiber stands
  void* outside_ = nullptr;  ///< where its caller stands
  const void* caller_stack_ = nullptr;
  size_t caller_bytes_ = 0;
  Body body_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace sinter::test
