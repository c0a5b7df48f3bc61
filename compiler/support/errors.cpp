#include "compiler/support/errors.h"

namespace sinter {

const char* name(BreakCode code) {
  switch (code) {
    case BreakCode::unsupported_op:
      return "unsupported-op";
    case BreakCode::compile_failed:
      return "compile-failed";
  }
  return "unknown";
}

}  // namespace sinter
