#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "compiler/plan.h"

namespace sinter::runtime {

/// Two plans of one program whose `once` steps compute the same from the same state: which frozen buffer
/// of `other` holds what a frozen buffer of `plan` would. Nothing when they do not.
[[nodiscard]] std::optional<std::vector<std::pair<BufferId, BufferId>>> same_once(const Plan& plan, const Plan& other);

}  // namespace sinter::runtime
