#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "check.h"

/// What a run over many programs found.
namespace sinter::test::fuzz {

/// The share of programs and of calls that must be replayed compiled, in percent: a fuzzer of what runs eager finds
/// nothing. Host code with effects does what was not recorded in many of its calls.
constexpr double kLeastReplayed = 50;

struct Failure {
  uint64_t seed = 0;
  std::string difference;
  std::string program;  ///< shrunk, as C++
};

struct Summary {
  std::string device;
  std::string mode = "default";
  uint64_t first_seed = 0;
  int64_t programs = 0;
  int64_t calls = 0;
  int64_t programs_replayed = 0;  ///< of which compiled code answered some call
  int64_t calls_replayed = 0;     ///< that it answered
  int64_t breaks_free = 0;        ///< programs without any break
  int64_t entries = 0;
  int64_t rounding = 0;                   ///< programs that differ by rounding only, as eager does from itself
  int64_t effects = 0;                    ///< programs whose host code has effects
  int64_t throws = 0;                     ///< programs with a call that throws, eager and compiled
  std::map<std::string, int64_t> breaks;  ///< programs by code and operator
  std::vector<Failure> failures;
  double seconds = 0;

  /// The lesser of two shares, in percent: of programs of which compiled code answered some call, and of calls that it
  /// did.
  [[nodiscard]] double replayed_percent() const;

  void add(const Finding& finding);
  void add(const Summary& other);

  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string json() const;
  [[nodiscard]] static Summary from_json(const std::string& text);
};

/// Generates, runs and judges the program of one seed. With `shrinks`, a program that fails is made smaller.
/// From the first one on cuDNN does not work in TF32 in this process: that is its choice for each shape and layout.
void run_seed(uint64_t seed, const hostile::Place& place, Summary& summary, bool shrinks = true);

}  // namespace sinter::test::fuzz
