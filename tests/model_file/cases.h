#pragma once

#include <gtest/gtest.h>
#include <sinter/sinter.h>

#include <string>
#include <vector>

/// Models that Python wrote, with what Python's own run of them gave.
namespace sinter::test {

/// What a compiled call does.
struct Work {
  int64_t launches = 0;  ///< of kernels
  int64_t calls = 0;     ///< of library operators
  bool operator==(const Work&) const = default;
};
void PrintTo(const Work& work, std::ostream* out);
[[nodiscard]] Work work_of(const Report& report);

struct FileCase {
  std::string file;           ///< "convnet.pt2"
  std::string module, place;  ///< of something in its report
  Work on_cpu;
  double tolerance_on_gpu = 1e-4;  ///< of TF32 and other kernels
};
void PrintTo(const FileCase& subject, std::ostream* out);

[[nodiscard]] const std::vector<FileCase>& file_cases();

/// The path of a file under data/, here or in a pack.
[[nodiscard]] std::string data_file(const std::string& name);

struct Saved {
  std::vector<c10::IValue> args;
  Kwargs kwargs;
  c10::IValue result;
};
/// NAME.case.pt beside the model, on a device.
[[nodiscard]] Saved saved_case(const std::string& model, at::Device device);

/// The same value with every tensor on another device.
[[nodiscard]] c10::IValue on(const c10::IValue& value, at::Device device);

/// The same structure, types and values; floating-point tensors within `tolerance` of the larger one's size.
[[nodiscard]] ::testing::AssertionResult same(const c10::IValue& a, const c10::IValue& b, double tolerance);

/// The work of a model of its file, compiled as a file's owner compiles it.
[[nodiscard]] Work work_of_file(const std::string& file, at::Device device);

/// Loads, runs eager, compiles in a mode and calls: results are Python's, the report as the case says.
void expect_as_python(const FileCase& subject, at::Device device, Mode mode);

}  // namespace sinter::test
