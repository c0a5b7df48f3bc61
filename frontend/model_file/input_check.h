#pragma once

#include <ATen/core/ivalue.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/model_file/exported_graph.h"

namespace sinter::frontend {

/// What torch.export fixed about a program's inputs: a program that is entered with others computes nonsense. Equal
/// sizes that it took for one symbol, sizes it took for constants, ranges, dtypes and constant arguments.
class InputCheck {
 public:
  explicit InputCheck(const ExportedFile& file);

  /// The constants that these inputs were exported as; nothing where one of them is not.
  [[nodiscard]] std::optional<std::vector<c10::IValue>> constants(size_t first, size_t count) const;

  /// `values`: the caller's leaves in order. `dtype`: what floating-point tensors were converted to, if they were.
  /// Throws UserError naming the input, what it is and what it must be.
  void check(const std::vector<c10::IValue>& values, std::optional<at::ScalarType> dtype) const;

 private:
  struct Expected {
    std::optional<ExportedMeta> meta;     ///< of a tensor
    std::optional<c10::IValue> constant;  ///< the only value that it may have
    std::string name;
  };
  std::string root_;
  std::vector<Expected> expected_;
  std::map<std::string, SymbolRange> ranges_;
};

/// The same value with every tensor in it moved, and floating-point ones converted.
[[nodiscard]] c10::IValue map_tensors(const c10::IValue& value, std::optional<at::Device> device,
                                      std::optional<at::ScalarType> dtype);

}  // namespace sinter::frontend
