#pragma once

#include <string>

#include "program.h"

namespace sinter::test::fuzz {

/// The program as C++, in the words of the hostile suite (tests/hostile/harness.h): a function that takes a Session.
[[nodiscard]] std::string to_cpp(const Program& program);

}  // namespace sinter::test::fuzz
