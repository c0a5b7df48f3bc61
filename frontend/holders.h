#pragma once

#include <ATen/core/Tensor.h>

#include <span>

/// Who holds a storage when a recorded call ends: only the results, or also somebody to whom a replay would give
/// nothing.
namespace sinter::frontend {

/// True when nothing but these outputs, and the tensors they are views of, holds the storage.
[[nodiscard]] bool only_outputs_hold(const c10::StorageImpl& storage, size_t strong_references,
                                     std::span<const at::Tensor> outputs);

/// True when more hold a tensor, or its storage, than the given numbers, these outputs and the caller.
[[nodiscard]] bool is_held_by_more(const at::Tensor& tensor, size_t holders, size_t storage_holders,
                                   std::span<const at::Tensor> outputs);

}  // namespace sinter::frontend
