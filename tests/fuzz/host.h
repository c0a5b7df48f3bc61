#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace sinter::test::fuzz {

/// What the host code of a callable keeps from call to call, besides tensors. The same in every run of a program.
class Host {
 public:
  explicit Host(uint64_t seed) : seed_(seed) {}

  /// Counts a call and draws its random numbers anew.
  void begin_call();

  [[nodiscard]] int64_t step() const { return step_; }  ///< the number of the call
  [[nodiscard]] bool flag() const { return flag_; }
  void set_flag(bool flag) { flag_ = flag; }
  /// A random decision; the next one of the call.
  [[nodiscard]] bool coin() { return engine_() % 2 == 0; }
  [[nodiscard]] double rate() const;

  /// What a number of an instruction is in this call, but for the scalar argument.
  [[nodiscard]] double value_of(double number) const;

  /// All of it, for a comparison.
  [[nodiscard]] std::string text() const;

 private:
  uint64_t seed_;
  int64_t step_ = 0;
  bool flag_ = false;
  double drawn_ = 0;
  std::mt19937_64 engine_;
};

/// What a number that the host code computes is called in a program's text.
[[nodiscard]] const char* name_of_host_number(double number);

}  // namespace sinter::test::fuzz
