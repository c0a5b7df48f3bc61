#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/version.h>

#include <string_view>
#include <type_traits>

/// What differs between the versions of LibTorch that Sinter builds with, 2.11 and later (cmake/LibTorch.cmake refuses
/// older ones). Members that came or went are found by asking the headers, not by comparing numbers. How recorded
/// graphs get random numbers differs as well: frontend/cuda/generator_memory.h.
namespace sinter::frontend {

/// The dispatch key whose fallback sees every call: it lies below autocast and autograd and above the backends.
/// LibTorch gives it no kernels: up to 2.14 nobody uses it; later ones put it into the own key set of fake tensors,
/// which C++ programs cannot make, and register their fallback with Python's bindings alone.
inline constexpr auto kCaptureKey = c10::DispatchKey::Fake;

/// The dispatch key that a call meets first, above autocast and autograd, where thread-local state includes it.
/// LibTorch gives it no kernels.
inline constexpr auto kAboveAutogradKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// The dispatch key, above autocast and autograd, that composite operators which do work of their own are caught with.
/// LibTorch gives it no kernels, and nothing reaches it while no session includes it.
inline constexpr auto kCompositesKey = c10::DispatchKey::DeferredInit;

/// Whoever runs an operator for real excludes all of them.
inline constexpr c10::DispatchKeySet kHookKeys({kCaptureKey, kAboveAutogradKey, kCompositesKey});

/// A slot of LibTorch's thread-local debug information. Older versions number their slots: ours is beyond all of them.
/// Newer ones tell slots apart by the address of their name.
template <class Kind = c10::DebugInfoKind>
[[nodiscard]] constexpr Kind debug_slot(const std::string_view& name, int number) {
  if constexpr (std::is_enum_v<Kind>) {
    return static_cast<Kind>(number);
  } else {
    return Kind(&name);
  }
}

/// True for a tensor with named dimensions, which newer versions do not have.
template <class Tensor>
[[nodiscard]] bool has_names(const Tensor& tensor) {
  if constexpr (requires { tensor.has_names(); }) {
    return tensor.has_names();
  } else {
    return false;
  }
}

/// The memory of a cuBLAS workspace that LibTorch keeps; newer versions keep its size beside it.
template <class Kept>
[[nodiscard]] auto& memory_of_workspace(Kept& kept) {
  if constexpr (requires { kept.first; }) {
    return kept.first;
  } else {
    return kept;
  }
}

}  // namespace sinter::frontend
