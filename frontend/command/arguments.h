#pragma once

#include <ATen/core/Tensor.h>
#include <sinter/model.h>

#include <string>
#include <vector>

namespace sinter::command {

using Tensors = std::vector<at::Tensor>;

/// Arguments of a model: what is no tensor stays, tensors are exchanged from call to call.
struct Arguments {
  std::vector<c10::IValue> positional;
  Kwargs named;
};

/// All tensors in a value, in order; undefined ones are left out.
[[nodiscard]] Tensors tensors_in(const c10::IValue& value);
[[nodiscard]] Tensors tensors_in(const Arguments& arguments);

/// The same arguments around other tensors, as many as there are.
[[nodiscard]] Arguments with_tensors(const Arguments& arguments, const Tensors& tensors);

/// What torch.save wrote: a tensor, or a list or tuple of arguments, or a dict of named ones. Throws UserError.
[[nodiscard]] Arguments read_arguments(const std::string& path);

/// Every tensor of a state dict that torch.save wrote. Throws UserError.
[[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> read_state(const std::string& path);

/// Tensors and containers of them that torch.save wrote. Throws UserError.
[[nodiscard]] c10::IValue read_value(const std::string& path);

/// Writes what torch.load reads. Throws UserError.
void write_value(const std::string& path, const c10::IValue& value);

}  // namespace sinter::command
