#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <span>
#include <utility>
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
  std::vector<TraceMemoryId> given{};  ///< memories that steps make and the results lie in
  const Shortcut* next = nullptr;      ///< at the same place
};

/// Writes the key of a call down whose tensors the table knows, each in the one memory over its storage.
class KnownKeyWriter {
 public:
  KnownKeyWriter(const TensorTable& table, CallKey& key) : table_(table), key_(key) {}

  bool word(uint64_t word) { return key_.push_back(word), true; }
  bool number(uint64_t bits) { return word(bits); }
  bool tensor(const at::Tensor& tensor);

 private:
  const TensorTable& table_;
  CallKey& key_;
};

/// Follows such a key. Tensors that the steps behind the call are the first to take are put aside.
class KnownKeyReader {
 public:
  KnownKeyReader(const CallKey& key, const TensorTable& table) : key_(key), table_(table) {}

  [[nodiscard]] bool at_end() const { return next_ == key_.size(); }

  bool word(uint64_t word) { return next_ < key_.size() && key_[next_++] == word; }
  bool number(uint64_t bits);
  bool tensor(const at::Tensor& tensor);

  /// The tensor that is this value; null where none was put aside.
  [[nodiscard]] const at::Tensor* arrival(TraceValueId value) const;
  /// True where the table has all that were put aside as the values that they are in the key.
  [[nodiscard]] bool are_all(const TensorTable& table) const;

 private:
  const CallKey& key_;
  const TensorTable& table_;
  size_t next_ = 0;
  c10::SmallVector<std::pair<TraceValueId, const at::Tensor*>, 4> arrivals_;
};

/// Adds what known steps take and make to the table, memory that is made without storage. False where they take what
/// the key does not tell, or a number of theirs differs from call to call; the table may hold a part of it then.
[[nodiscard]] bool take(std::span<const PathNode* const> steps, const KnownKeyReader& arguments, TensorTable& table);

/// The key of a call all of whose tensors the table knows, each in the one memory over its storage; nothing where it
/// does not, or something cannot be compared.
[[nodiscard]] std::optional<CallKey> key_of(c10::ArrayRef<c10::IValue> arguments, const TensorTable& table);

/// True where a call is that of a shortcut: everything is the same. What its steps take and make is added to the table
/// then, memory that is made without storage; else the table may hold a part of it, to be taken back by forget_added().
[[nodiscard]] bool take(const Shortcut& shortcut, CallArguments arguments, TensorTable& table);

}  // namespace sinter::frontend
