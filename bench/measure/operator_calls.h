#pragma once

#include <functional>
#include <string>

namespace sinter::bench {

/// Runs `call`. Around each operator that a thread hands to LibTorch's dispatcher meanwhile (autograd runs backward
/// passes in threads of its own), `begin` (with its name, "aten::add.Tensor") and `end` are called in that thread, in
/// balance also where the operator throws; operators that an operator calls are part of it. Both may be called by
/// several threads at once, must not throw, nor call operators. Lets exceptions of `call` through; threads that `call`
/// leaves running must have no operator at work when it returns. One call at a time in a process.
void watch_operator_calls(const std::function<void(std::string)>& begin, const std::function<void()>& end,
                          const std::function<void()>& call);

}  // namespace sinter::bench
