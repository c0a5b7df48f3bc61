#pragma once

namespace sinter {

/// True where the environment variable is set, to anything but nothing and `0`.
[[nodiscard]] bool is_switched_on(const char* variable);

}  // namespace sinter
