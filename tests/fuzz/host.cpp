#include "host.h"

#include "program.h"

namespace sinter::test::fuzz {

void Host::begin_call() {
  ++step_;
  engine_.seed(seed_ + static_cast<uint64_t>(step_));
  drawn_ = static_cast<double>(engine_() % 4) / 2 - 1;
}

double Host::rate() const { return 0.5 / static_cast<double>(1 + step_ / 3); }

double Host::value_of(double number) const {
  if (number == kStep) return static_cast<double>(step_);
  if (number == kRate) return rate();
  if (number == kDrawn) return drawn_;
  if (number == kCycle) return static_cast<double>(1 + step_ % 3);
  if (number == kParity) return static_cast<double>(step_ % 2);
  return number;
}

std::string Host::text() const { return "step " + std::to_string(step_) + (flag_ ? ", flag" : ""); }

const char* name_of_host_number(double number) {
  if (number == kStep) return "1.0 * step";
  if (number == kRate) return "rate";
  if (number == kDrawn) return "drawn";
  if (number == kCycle) return "(1 + step % 3)";
  return "(step % 2)";
}

}  // namespace sinter::test::fuzz
