#pragma once

#include <ATen/core/ivalue.h>

#include <string_view>

#include "frontend/trace/tensor_table.h"

/// Operators of the CPU that refuse some indices throw where they stand in the program. Where the indices are there
/// already, they are looked at first: an operator that refuses none of them can be put off.
namespace sinter::frontend {

/// What an operator refuses in its data.
struct IndexRule;

/// By the name of an operator without its overload; null where it is not known what it refuses, or cannot be told
/// before the operator runs.
[[nodiscard]] const IndexRule* index_rule_of(std::string_view base);

/// True for a call that certainly refuses nothing: no segment computes its indices, they are few enough to be looked
/// at, and each of them is in range.
[[nodiscard]] bool accepts_indices(const IndexRule& rule, c10::ArrayRef<c10::IValue> arguments,
                                   const TensorTable& table);

}  // namespace sinter::frontend
