#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <vector>

#include "frontend/torch/call_argument.h"
#include "frontend/trace/step.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

struct PathNode;

/// A call of a composite operator whose steps are known: its kernel, which is LibTorch's and looks at nothing but
/// sizes, numbers and settings, need not run to call them one by one.
struct Shortcut {
  c10::OperatorHandle op;
  CallKey key{};
  bool inference = false;                ///< whether inference mode is on
  bool tracked = false;                  ///< views and versions are noted
  SettingSet settings{};                 ///< that decide what its kernel calls, and what its steps compute
  std::vector<const PathNode*> steps{};  ///< in order
  std::vector<Returned> returns{};
  std::vector<size_t> raised{};        ///< results, once for each write that steps make into them
  std::vector<TraceMemoryId> given{};  ///< memories that steps make and the results lie in
  const Shortcut* next = nullptr;      ///< at the same place
};

/// The key of a call all of whose tensors the table knows; nothing where it does not, or something cannot be compared.
[[nodiscard]] std::optional<CallKey> key_of(c10::ArrayRef<c10::IValue> arguments, const TensorTable& table);

/// True where a call is that of a shortcut: everything is the same. What its steps take and make is added to the table
/// then, memory that is made without storage; else the table may hold a part of it, to be taken back by forget_added().
[[nodiscard]] bool take(const Shortcut& shortcut, CallArguments arguments, TensorTable& table);

}  // namespace sinter::frontend
