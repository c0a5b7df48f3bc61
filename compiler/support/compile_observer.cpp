#include "compiler/support/compile_observer.h"

#include <string>

namespace sinter {

void end_phase(EntryReport& report, CompileObserver* observer, std::string_view name, CompileObserver::Time begin) {
  const auto end = std::chrono::steady_clock::now();
  report.add_phase(std::string(name), std::chrono::duration<double>(end - begin).count());
  if (observer != nullptr) observer->phase(name, begin, end);
}

}  // namespace sinter
