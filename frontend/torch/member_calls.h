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

/// What a stack says of an operator that was called there.
struct CallSite {
  std::string line;  ///< of the innermost function of the program, "vit.cpp:80"; its name without a line table
  std::vector<MemberCall> calls;  ///< of the program's and of LibTorch's classes, outermost first
};

/// Functions that the compiler put into others are seen where the program has debugging information, and functions that
/// are not exported where it has symbols. Reads both when an address is met for the first time: that takes a second for
/// a large program. Thread-safe.
[[nodiscard]] CallSite call_site(const Stack& stack);

/// "a::Net" of "at::Tensor a::Net::forward(at::Tensor const&)"; of a holder of a module (torch::nn::AnyModuleHolder)
/// the module's class; empty for a function that is no member.
[[nodiscard]] std::string class_of_function(std::string_view demangled);

}  // namespace sinter::frontend
