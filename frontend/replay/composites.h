#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::frontend {

/// Composite operators of LibTorch do their work by calling other operators, and autograd opens them before a session
/// sees any call. Some do work of their own: they look at the data of an argument, and what they call follows from it
/// (recurrent layers on packed sequences, tensor_split by a tensor), or they fill their result themselves (max_pool1d).
/// While this lives, a key above autograd catches those: what they are given gets its data first. Those that compare
/// the memories of tensors, which stand-ins do not have, run at once, as a whole. Holds for this thread and for those
/// LibTorch carries its state to.
class CatchComposites {
 public:
  CatchComposites();

  /// What is caught: "aten::lstm.data".
  [[nodiscard]] static std::vector<std::string> names();

  /// The work that a composite operator does itself.
  enum class Work : uint8_t {
    none,      ///< it only calls others
    looks,     ///< at integers in arguments
    fills,     ///< its results, on the CPU and without gradients; else it calls other operators
    compares,  ///< the memories of tensors
    unseen,    ///< packs weights in a way of its own, or writes what its schema does not tell
    packs,  ///< its weights into one buffer, through pointers, where autocast casts them; else it is a plain operator
  };
  [[nodiscard]] static Work work_of(std::string_view name);

 private:
  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace sinter::frontend
