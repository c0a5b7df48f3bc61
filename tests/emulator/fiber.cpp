#include "tests/emulator/fiber.h"

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>

#include <cstdint>
#include <new>

#if !defined(__x86_64__)
#error "fibers of the emulator: sinter_switch_stack is written for x86-64 only"
#endif

/// Saves the registers that a call preserves and the stack pointer in *from, and goes on where `to` was saved.
extern "C" void sinter_switch_stack(void** from, void* to);
asm(R"(
.text
.type sinter_switch_stack, @function
sinter_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sinter_switch_stack, .-sinter_switch_stack
)");

namespace sinter::test {
namespace {

constexpr size_t stack_bytes = size_t{256} << 10;
constexpr size_t saved_registers = 6;

thread_local Fiber* running = nullptr;

}  // namespace

Fiber::Fiber() : stack_(mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (stack_ == MAP_FAILED) throw std::bad_alloc();
}

Fiber::~Fiber() {
  if (!done()) ASAN_UNPOISON_MEMORY_REGION(stack_, stack_bytes);
  munmap(stack_, stack_bytes);
}

/// The stack looks as if enter() had been about to start when it was left: zero registers below its address.
void Fiber::start(Body body, void* context) {
  body_ = body;
  context_ = context;
  auto** top = reinterpret_cast<void**>(static_cast<std::byte*>(stack_) + stack_bytes);
  *--top = nullptr;  // enter() has no caller, and a function starts 8 bytes beside a multiple of 16.
  *--top = reinterpret_cast<void*>(&Fiber::enter);
  for (size_t i = 0; i < saved_registers; ++i) *--top = nullptr;
  inside_ = top;
}

void Fiber::resume() {
  running = this;
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, stack_bytes);
  sinter_switch_stack(&outside_, inside_);
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
  running = nullptr;
}

void Fiber::enter() {
  Fiber* self = running;
  self->arrived(nullptr);
  self->body_(self->context_);
  self->body_ = nullptr;
  self->leave(nullptr);
}

void Fiber::suspend() {
  Fiber* self = running;
  void* fake_stack = nullptr;
  self->leave(&fake_stack);
  self->arrived(fake_stack);
}

void Fiber::leave(void** fake_stack) {
  __sanitizer_start_switch_fiber(fake_stack, caller_stack_, caller_bytes_);
  sinter_switch_stack(&inside_, outside_);
}

void Fiber::arrived(void* fake_stack) { __sanitizer_finish_switch_fiber(fake_stack, &caller_stack_, &caller_bytes_); }

}  // namespace sinter::test
