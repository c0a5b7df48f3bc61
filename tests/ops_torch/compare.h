#pragma once

#include <optional>
#include <string>

#include "calls.h"

namespace sinter::test {

/// Says how `compiled` differs from `eager`; nothing where it does not. `exact` is the same call in double, for calls
/// with floats. Integers and bools have to be equal; a float may be as far from `exact` as twice eager's error, or
/// differ from eager by what torch.testing.assert_close tolerates. NaNs are in the same places.
[[nodiscard]] std::optional<std::string> difference(const Call& call, const at::Tensor& compiled,
                                                    const at::Tensor& eager, const std::optional<at::Tensor>& exact,
                                                    const std::vector<at::Tensor>& operands);

}  // namespace sinter::test
