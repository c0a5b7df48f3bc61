#pragma once

#include <optional>

namespace sinter::bench {

/// Calls after which compiling has paid: the seconds that it took beyond eager over what one call gains. 0 where it
/// took none; nothing where a compiled call takes no less than an eager one.
[[nodiscard]] std::optional<double> pays_off_after(double compile_seconds, double eager_ms, double compiled_ms);

}  // namespace sinter::bench
