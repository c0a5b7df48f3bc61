#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace sinter::frontend {

/// How containers hang together: PyTorch's pytree specification, version 1. Lists and tuples become lists and tuples,
/// dicts and dataclasses with known keys become dicts, other containers become tuples of what they hold.
struct Pytree {
  enum class Kind : uint8_t { leaf, tuple, list, dict };
  Kind kind = Kind::leaf;
  std::vector<std::string> keys;  ///< of a dict
  std::vector<Pytree> children;

  [[nodiscard]] size_t leaves() const;
};

/// Throws UserError, naming `path`, for text that is no such specification.
[[nodiscard]] Pytree parse_pytree(const std::string& path, const std::string& json);

/// Builds the containers around `leaves`, which are as many as the tree has.
[[nodiscard]] c10::IValue unflatten(const Pytree& tree, std::vector<c10::IValue> leaves);

/// Takes a value apart along a tree. Throws std::invalid_argument saying at which place the value differs from it.
void flatten_along(const Pytree& tree, const c10::IValue& value, const std::string& place,
                   std::vector<c10::IValue>& leaves);

/// A list whose element type is that of its items where they are tensors, integers, floats, bools or strings alike.
[[nodiscard]] c10::IValue make_list(std::vector<c10::IValue> items);
/// A dict with string keys; its value type likewise.
[[nodiscard]] c10::IValue make_dict(const std::vector<std::string>& keys, std::vector<c10::IValue> values);

}  // namespace sinter::frontend
