#pragma once

#include <ATen/core/Tensor.h>

namespace sinter {

/// For code of your own inside a compiled callable that reads or writes memory through a pointer (`data_ptr`, an
/// accessor, a CUDA kernel launched by hand): everything that the callable has asked for so far, and that gives, reads
/// or writes the memory of `tensor`, is done (on a GPU: launched) when this returns. Returns `tensor`:
/// `const float* numbers = sinter::materialize(y).const_data_ptr<float>();`. Outside of compiled calls it does
/// nothing. Call it again after further operators. Throws what those operators throw.
const at::Tensor& materialize(const at::Tensor& tensor);

}  // namespace sinter
