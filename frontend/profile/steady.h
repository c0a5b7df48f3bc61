#pragma once

namespace sinter::frontend {

/// Calls after which compiled callables record and compile no more, as a rule: the first one makes state, the second
/// meets it, each way is recorded before it is compiled, and an optimizer may go another way later, as RAdam does in
/// its sixth step.
inline constexpr int calls_until_steady = 9;

}  // namespace sinter::frontend
