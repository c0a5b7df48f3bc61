#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "frontend/torch/op_facts.h"

namespace sinter::frontend {

/// What calls of operators must do at least, by their operands: bytes that are read and written once, each place of an
/// operand once however often it is used; operations of matrix products, convolutions and attention, where a
/// multiplication and an addition are two.
struct OperatorWork {
  int64_t bytes = 0;
  double flops = 0;
  std::optional<at::ScalarType> dtype;  ///< of the operands of those products
  bool known = true;                    ///< false: it did something that no rule knows

  void add(const OperatorWork& other);
};

/// How the work of an operator follows from its operands.
enum class WorkRule : uint8_t {
  unknown,
  nothing,  ///< gives a view, or memory without content
  inner,    ///< composed of other operators, which do the work
  traffic,  ///< reads its operands and writes its results
  lookup,   ///< of its first operand it reads only as much as it writes
  product,
  linear,  ///< product of an input and a weight of one row for each column of the result
  convolution,
  convolution_backward,
  attention,
  attention_backward,
};

/// What one operator's schema says about the work of its calls.
struct WorkTraits {
  WorkRule rule = WorkRule::unknown;
  std::vector<uint32_t> mutates;   ///< positions of arguments that are written
  bool overwrites = false;         ///< those are not read
  std::vector<bool> gives_new;     ///< by result: it is no argument
  std::optional<uint32_t> weight;  ///< of a convolution or a linear product
  std::optional<uint32_t> query;   ///< of attention; key and value follow
  std::optional<uint32_t> causal;  ///< of attention
};

/// Work of a call whose results are not there yet.
struct BegunWork {
  OperatorWork work;
  double flops_per_result = 0;       ///< for each element of the first result
  std::optional<at::Device> device;  ///< of its operands
};

/// The rules of operators, looked up once for each. Not thread-safe.
class WorkRules {
 public:
  /// Unknown for what the dispatcher does not know.
  const WorkTraits& of(const c10::OperatorName& name);

 private:
  OpFactsCache facts_;
  std::unordered_map<c10::OperatorName, WorkTraits> traits_;
};

/// Before the call, for rules from WorkRule::traffic on.
[[nodiscard]] BegunWork begin_work(const WorkTraits& traits, std::span<const c10::IValue> arguments);

/// After it. Nothing for a call that is recorded, to be computed later.
[[nodiscard]] OperatorWork end_work(const WorkTraits& traits, const BegunWork& begun,
                                    std::span<const c10::IValue> results);

}  // namespace sinter::frontend
