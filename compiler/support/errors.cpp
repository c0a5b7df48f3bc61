#include "compiler/support/errors.h"

namespace sinter {

const char* name(BreakCode code) {
  switch (code) {
    case BreakCode::needs_gradient:
      return "needs-gradient";
    case BreakCode::input_mutation:
      return "input-mutation";
    case BreakCode::state_mutation:
      return "state-mutation";
    case BreakCode::host_read:
      return "host-read";
    case BreakCode::unsupported_op:
      return "unsupported-op";
    case BreakCode::unsupported_input:
      return "unsupported-input";
    case BreakCode::unstable:
      return "unstable";
    case BreakCode::compile_failed:
      return "compile-failed";
  }
  return "unknown";
}

}  // namespace sinter
