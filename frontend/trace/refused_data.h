#pragma once

#include <ATen/core/ivalue.h>

#include <string_view>

#include "frontend/trace/tensor_table.h"

/// Operators of the CPU that refuse some data, an index out of range or an integer 0 to divide by, throw where they
/// stand in the program. Where these data are there already, they are looked at first: an operator that refuses none of
/// them can be put off.
namespace sinter::frontend {

/// What an operator refuses in its data.
struct DataRule;

/// By the name of an operator without its overload; null where it is not known what it refuses, or cannot be told
/// before the operator runs.
[[nodiscard]] const DataRule* index_rule_of(std::string_view base);

/// True for a number that is 0 as an integer of no dtype.
[[nodiscard]] bool divides_any(int64_t number);

/// That of operators which divide integers, by their second argument.
[[nodiscard]] const DataRule& divisor_rule();

/// True for a call that certainly refuses nothing: no segment computes what it may refuse, and a look at it, which few
/// enough numbers allow, tells.
[[nodiscard]] bool accepts_data(const DataRule& rule, c10::ArrayRef<c10::IValue> arguments, const TensorTable& table);

}  // namespace sinter::frontend
