#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <string_view>
#include <vector>

namespace sinter::frontend {

/// What the results of an operator look like, from its arguments, whose tensors are on the meta device. Dtypes and
/// numbers that are no tensors are left out. Throws for arguments that it does not know.
using LayoutRule = std::vector<at::Tensor> (*)(c10::ArrayRef<c10::IValue> arguments);

/// The rule of an operator that LibTorch has no kernel for the meta device of ("aten::relu"), or one that gives other
/// layouts than its kernels for devices; null where there is none.
[[nodiscard]] LayoutRule layout_rule(std::string_view op);

}  // namespace sinter::frontend
