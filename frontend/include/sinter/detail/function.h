#pragma once

#include <memory>
#include <string>

#include "sinter/detail/flatten.h"
#include "sinter/options.h"
#include "sinter/report.h"
#include "sinter/stats.h"

/// The type-erased side of a compiled object, implemented inside the library.
namespace sinter::detail {

class Handle;

/// The user's program, and the arguments it was called with.
struct Program {
  void* context = nullptr;
  /// Runs it once, keeping its result in `context`. With `result` not null, takes the result apart too.
  void (*run)(void* context, Flat* result) = nullptr;
  void* given = nullptr;
  /// Takes the arguments apart as they are now: the program may have changed what it was given, and what pointed into
  /// it points nowhere then.
  Flat (*arguments)(void* given) = nullptr;
};

/// `kind` is "module" (then `self` is the module that will be called), "lambda" or "function".
/// Throws UserError when options contradict each other.
[[nodiscard]] std::shared_ptr<Handle> make_handle(Options options, std::shared_ptr<torch::nn::Module> self,
                                                  const char* kind);

/// False where calls are to go straight to the callable. The same for the life of the handle.
[[nodiscard]] bool is_enabled(const Handle& handle);

/// Answers one call. True: `replay` holds the result. False: `program` was run, exactly once, and holds it.
[[nodiscard]] bool call(Handle& handle, const Flat& arguments, const Program& program, Replay& replay);

[[nodiscard]] Report report(const Handle& handle);
[[nodiscard]] Stats stats(const Handle& handle);
void reset(Handle& handle);

}  // namespace sinter::detail
