#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/torch/program_place.h"

namespace sinter::frontend {

/// A member function that a stack is inside of.
struct MemberCall {
  std::string class_name;         ///< with namespaces, as torch::nn::Module::name() gives it
  const void* address = nullptr;  ///< where it goes on

  bool operator==(const MemberCall&) const = default;
};

/// Member functions of the program's and of LibTorch's classes in a stack, outermost first. Functions that the compiler
/// put into others, and those of a program without symbols, are not seen. Reads symbols when an address is met for the
/// first time. Thread-safe.
[[nodiscard]] std::vector<MemberCall> member_calls_in(const Stack& stack);

/// "a::Net" of "at::Tensor a::Net::forward(at::Tensor const&)"; of a holder of a module (torch::nn::AnyModuleHolder)
/// the module's class; empty for a function that is no member.
[[nodiscard]] std::string class_of_function(std::string_view demangled);

}  // namespace sinter::frontend
