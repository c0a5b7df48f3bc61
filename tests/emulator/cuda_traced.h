// What code compiled by GCC for its thread sanitizer calls before each access. These functions stand in for the
// sanitizer and tell the machine.
#pragma once

#include "cuda_together.h"

#define SINTER_HOOK extern "C" __attribute__((visibility("hidden"), no_sanitize("thread"))) void

namespace sinter::test {

__attribute__((no_sanitize("thread"))) inline void report(const void* address, size_t bytes, Access access) {
  if (machine != nullptr) machine->touch(address, bytes, access);
}

}  // namespace sinter::test

SINTER_HOOK __tsan_init() {}
SINTER_HOOK __tsan_func_entry(void*) {}
SINTER_HOOK __tsan_func_exit() {}

SINTER_HOOK __tsan_read1(void* at) { sinter::test::report(at, 1, sinter::test::Access::read); }
SINTER_HOOK __tsan_read2(void* at) { sinter::test::report(at, 2, sinter::test::Access::read); }
SINTER_HOOK __tsan_read4(void* at) { sinter::test::report(at, 4, sinter::test::Access::read); }
SINTER_HOOK __tsan_read8(void* at) { sinter::test::report(at, 8, sinter::test::Access::read); }
SINTER_HOOK __tsan_read16(void* at) { sinter::test::report(at, 16, sinter::test::Access::read); }
SINTER_HOOK __tsan_read_range(void* at, long bytes) {
  sinter::test::report(at, static_cast<size_t>(bytes), sinter::test::Access::read);
}

SINTER_HOOK __tsan_write1(void* at) { sinter::test::report(at, 1, sinter::test::Access::write); }
SINTER_HOOK __tsan_write2(void* at) { sinter::test::report(at, 2, sinter::test::Access::write); }
SINTER_HOOK __tsan_write4(void* at) { sinter::test::report(at, 4, sinter::test::Access::write); }
SINTER_HOOK __tsan_write8(void* at) { sinter::test::report(at, 8, sinter::test::Access::write); }
SINTER_HOOK __tsan_write16(void* at) { sinter::test::report(at, 16, sinter::test::Access::write); }
SINTER_HOOK __tsan_write_range(void* at, long bytes) {
  sinter::test::report(at, static_cast<size_t>(bytes), sinter::test::Access::write);
}

#undef SINTER_HOOK
