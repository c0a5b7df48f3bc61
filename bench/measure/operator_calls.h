#pragma once

#include <functional>
#include <string>

namespace sinter::bench {

/// Runs `call`. Around each operator that this thread hands to LibTorch's dispatcher meanwhile, `begin` (with its name,
/// "aten::add.Tensor") and `end` are called, in balance also where the operator throws; operators that an operator
/// calls are part of it. Both must not throw, nor call operators. Lets exceptions of `call` through.
void watch_operator_calls(const std::function<void(std::string)>& begin, const std::function<void()>& end,
                          const std::function<void()>& call);

}  // namespace sinter::bench
