#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/tensor_words.h"

namespace torch::nn {
class Module;
}

namespace sinter::frontend {

/// Whether what Sinter reads of private memory, LibTorch's and the standard library's, lies where it is expected. It is
/// looked at once a process, on objects made for that. A part that is not as expected is left alone: then calls take
/// longer to check, or less is guarded, and every report has a note that says so. SINTER_PRIVATE_LAYOUT=off leaves all
/// of it alone.
struct PrivateLayout {
  bool tensor_words = false;  ///< members of TensorImpl, compared as they lie; else every tensor is asked
  bool train_flags = false;   ///< the member behind Module::is_training; else every module is asked
  bool closures = false;      ///< modules that a lambda closes over; else only Options::modules are known

  [[nodiscard]] static const PrivateLayout& here();
  /// One for every part that is left alone.
  [[nodiscard]] std::vector<std::string> notes() const;
};

/// How the members of a TensorImpl are read.
struct WordsReader {
  TensorWords::Copy (*copy)(const c10::TensorImpl& tensor) = &TensorWords::of;
  bool (*equal)(const c10::TensorImpl& tensor, const TensorWords::Copy& copy) = &TensorWords::equal;
  const c10::AutogradMetaInterface* (*autograd_meta)(const c10::TensorImpl& tensor) = &TensorWords::autograd_meta;
};
/// True when the words change with everything they stand for, and with nothing else, and the autograd data is found.
[[nodiscard]] bool reads_tensors(const WordsReader& reader);

/// True when `flag_of` gives the place of a module's train flag.
[[nodiscard]] bool reads_train_flags(const bool* (*flag_of)(const torch::nn::Module& module));

/// True when `find` finds a module that closures hold and refer to, and none where there is none.
using FindModules = std::vector<std::shared_ptr<torch::nn::Module>> (*)(std::span<const std::byte> closure);
[[nodiscard]] bool reads_closures(FindModules find);

}  // namespace sinter::frontend
