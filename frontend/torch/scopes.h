#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sinter::frontend {

/// A native stack: return addresses, innermost first.
using Frames = std::vector<void*>;

/// What an address of the program stands for; both empty when it is not the user's code.
struct Place {
  std::string function;  ///< "Bottleneck::forward"
  std::string line;      ///< "resnet.cpp:58"; empty where the program has no line tables
};

/// Takes native stacks while a program runs and names the places in it afterwards. Taking one costs a fraction of a
/// microsecond; names are looked up once per address, from symbols and, where the program has them, line tables,
/// without starting another process. Not thread-safe.
class Scopes {
 public:
  /// Frames that enclose this call are not the program's.
  Scopes();
  /// The frames of the program that are active on this thread; those nearest to the operator are kept.
  [[nodiscard]] Frames take() const;
  /// Names every address in these stacks at once; `place` then only looks up.
  void resolve(const std::vector<const Frames*>& stacks);
  /// The innermost place that belongs neither to LibTorch nor to Sinter nor to the C++ library: "resnet.cpp:58", or a
  /// function's name where the program has no line tables; empty when unknown.
  [[nodiscard]] std::string place(const Frames& frames) const;
  /// The function that place lies in: "Bottleneck::forward"; empty when unknown.
  [[nodiscard]] std::string function(const Frames& frames) const;

 private:
  [[nodiscard]] const Place* innermost(const Frames& frames) const;
  Frames outer_;
  std::unordered_map<void*, Place> places_;
};

/// The innermost place of the calling thread that is the program's: "resnet.cpp:58", else a function's name; empty when
/// unknown. Reads symbols when an address is met for the first time. Thread-safe.
[[nodiscard]] std::string place_here();

/// "torch::optim::SGD::step" where the stack passes through that function of an optimizer of LibTorch. Thread-safe.
[[nodiscard]] std::optional<std::string> optimizer_step(const Frames& frames);

/// "Net::forward" of "(anonymous namespace)::Net::forward(at::Tensor const&)": no parameters, template arguments or
/// leading namespaces.
[[nodiscard]] std::string short_function_name(const std::string& demangled);

}  // namespace sinter::frontend
