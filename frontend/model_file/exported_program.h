#pragma once

#include <memory>

#include "frontend/model_file/program.h"

namespace sinter::frontend {

class Archive;

/// Reads a `.pt2` file. Throws UserError: see parse_exported and read_exported_tensors; and for operators that this
/// LibTorch does not have and higher-order operators that cannot be run, all of them named.
[[nodiscard]] std::unique_ptr<FileProgram> read_exported(Archive& archive);

}  // namespace sinter::frontend
