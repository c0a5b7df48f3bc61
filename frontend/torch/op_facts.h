#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sinter::frontend {

/// What an operator's schema, tags and name say about every call of it.
struct OpFacts {
  std::string name;                 ///< "aten::add.Tensor"
  std::vector<uint32_t> mutates;    ///< positions of the arguments a call writes, by the schema
  std::string functional;           ///< the overload that takes the same other arguments and writes none; or empty
  bool composite = false;           ///< has a kernel that calls other operators
  bool random = false;              ///< draws from a generator
  std::optional<uint32_t> dropout;  ///< position of the probability at zero of which a random one draws nothing
  std::optional<uint32_t> train;    ///< position of the flag without which a random one draws nothing
  /// Position of an offset that counts from the beginning of the first argument's storage.
  std::optional<uint32_t> storage_offset;
  bool impure = false;            ///< has effects the schema does not tell
  bool view_in_place = false;     ///< changes sizes and strides of its argument, not its data (t_, squeeze_)
  bool reads_host = false;        ///< brings data of a tensor to the host
  bool gives_numbers = false;     ///< has results, and none of them holds a tensor
  bool sizes_from_data = false;   ///< the sizes of its results depend on the data of its arguments
  bool metadata_only = false;     ///< answers from sizes, dtypes and devices: nothing to record
  bool makes_cpu_memory = false;  ///< a factory; together with a CPU result: memory the program may fill itself
  bool uninitialised = false;     ///< its result has no defined content (empty)
  bool declares_aliases = false;  ///< its schema says of some result that it may be a view of an argument
};

/// Looks facts up once per operator. Not thread-safe.
class OpFactsCache {
 public:
  const OpFacts& of(const c10::OperatorHandle& op);

 private:
  std::unordered_map<const c10::FunctionSchema*, OpFacts> facts_;
};

/// True when this very call draws from a generator: attention without dropout and recurrent layers of cuDNN outside
/// training do not.
[[nodiscard]] bool draws(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments);

/// Positions of the arguments that this very call writes, also where its schema does not say so: running statistics of
/// batch norm in training. Undefined tensors are left out.
[[nodiscard]] std::vector<uint32_t> written_positions(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments);

/// True when this very call gives sizes that depend on data.
[[nodiscard]] bool sizes_from_data(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments);

/// True for operators that give views of their arguments and do no work.
[[nodiscard]] bool only_looks(const OpFacts& facts);

/// True for operators whose very purpose is to bring a tensor to another device.
[[nodiscard]] bool copies(const OpFacts& facts);

/// True for operators that change the sizes of a tensor or put other memory under it.
[[nodiscard]] bool resizes(const OpFacts& facts);

}  // namespace sinter::frontend
