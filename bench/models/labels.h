#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sinter::bench {

/// What a built-in model is trained on: one class for each place of its result.
struct Labels {
  int64_t classes = 0;  ///< of the last dim of the result; 0: the model has no parameters to train
  size_t dims = 1;      ///< leading dims that labels share with the first input: 1 for images, 2 for sequences
};

/// Those of the model of that name. Throws UserError listing the known names.
[[nodiscard]] Labels labels_of(std::string_view model);

}  // namespace sinter::bench
