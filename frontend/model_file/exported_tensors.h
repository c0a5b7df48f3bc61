#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "frontend/model_file/archive.h"

namespace sinter::frontend {

/// Tensors of a `.pt2` file by name, on the CPU. Those that shared memory when they were saved still do.
struct ExportedTensors {
  std::map<std::string, at::Tensor> weights;    ///< parameters and persistent buffers
  std::map<std::string, at::Tensor> constants;  ///< lifted constants and other buffers
};

/// Reads what belongs to the model of that name. Throws UserError where a tensor does not fit into the bytes it names.
[[nodiscard]] ExportedTensors read_exported_tensors(Archive& archive, const std::string& model);

/// A value that torch.save wrote into `bytes`, which come from `what`: tensors, numbers, strings and containers of
/// them. Code in a pickle is never run: a pickle that asks for any is a UserError.
[[nodiscard]] c10::IValue read_pickle(const std::string& what, const std::string& bytes);

}  // namespace sinter::frontend
