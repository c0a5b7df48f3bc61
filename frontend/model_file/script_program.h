#pragma once

#include <memory>

#include "frontend/model_file/program.h"

namespace torch::jit {
struct Module;
}

namespace sinter::frontend {

class Archive;

/// Reads a TorchScript file: scripted, traced or frozen. Throws UserError for what LibTorch's reader refuses.
[[nodiscard]] std::unique_ptr<FileProgram> read_script(const Archive& archive);

/// The same for a module that LibTorch has loaded. The module is shared with the caller.
[[nodiscard]] std::unique_ptr<FileProgram> wrap_script(const torch::jit::Module& module);

}  // namespace sinter::frontend
