#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ir/parse.h"
#include "tests/emulator/compare.h"

/// Addresses of what library calls return: a kernel relies on no more than the capture saw.
namespace sinter::test {
namespace {

Plan compiled(std::string_view text) {
  EntryReport report;
  CompileOptions options;
  options.device = test_device();
  return compile(ir::parse(text), options, report);
}

/// Memory that begins `shift` bytes after a multiple of 64, filled from `values`.
template <class T>
class Shifted {
 public:
  Shifted(size_t shift, size_t count) : bytes_(shift + count * sizeof(T) + 64) {
    void* start = bytes_.data();
    size_t space = bytes_.size();
    first_ = static_cast<std::byte*>(std::align(64, 1, start, space)) + shift;
    for (size_t i = 0; i < count; ++i) set(i, static_cast<T>(i % 1000));
  }

  [[nodiscard]] void* data() { return first_; }
  [[nodiscard]] T get(size_t i) const {
    T value;
    std::memcpy(&value, first_ + i * sizeof(T), sizeof(T));
    return value;
  }
  void set(size_t i, T value) { std::memcpy(first_ + i * sizeof(T), &value, sizeof(T)); }

 private:
  std::vector<std::byte> bytes_;
  std::byte* first_ = nullptr;
};

// at::view_as_real(z.slice(0, 1)) * 2
constexpr std::string_view real_parts = R"(
graph @real_parts on cuda:0 (%z: c64[2048]) -> (%y) {
  %tail = call aten.slice.Tensor(%z, 0, 1, 9223372036854775807, 1) : c64[2047] alias %z + 1 align 8
  %real = call aten.view_as_real(%tail) : f32[2047,2] alias %z + 0 align 8
  %y = call aten.mul.Scalar(%real, 2.0) : f32[2047,2]
})";

// x.slice(0, 1).view(at::kShort).bitwise_and(7)
constexpr std::string_view bits = R"(
graph @bits on cuda:0 (%x: f16[4096]) -> (%y) {
  %tail = call aten.slice.Tensor(%x, 0, 1, 9223372036854775807, 1) : f16[4095] alias %x + 1 align 2
  %short = call aten.view.dtype(%tail, dtype(i16)) : i16[4095] alias %x + 0 align 2
  %y = call aten.bitwise_and.Scalar(%short, 7) : i16[4095]
})";

TEST(Alignment, of_the_real_parts_of_a_slice_is_8_bytes) {
  const Plan plan = compiled(real_parts);
  ASSERT_EQ(plan.kernels.size(), 1U);
  ASSERT_EQ(plan.kernels[0].params.at(0).alignment, 8);
  const Emulator emulator(plan.kernels);
  Shifted<float> in(8, 4094);
  Shifted<float> out(0, 4094);
  const std::vector<EmulatedArg> args{in.data(), out.data()};
  emulator.run(0, args);
  for (size_t i = 0; i < 4094; ++i) ASSERT_EQ(out.get(i), 2 * in.get(i)) << i;
}

TEST(Alignment, of_the_bits_of_a_slice_of_halves_is_2_bytes) {
  const Plan plan = compiled(bits);
  ASSERT_EQ(plan.kernels.size(), 1U);
  ASSERT_EQ(plan.kernels[0].params.at(0).alignment, 2);
  const Emulator emulator(plan.kernels);
  Shifted<int16_t> in(2, 4095);
  Shifted<int16_t> out(0, 4095);
  const std::vector<EmulatedArg> args{in.data(), out.data()};
  emulator.run(0, args);
  for (size_t i = 0; i < 4095; ++i) ASSERT_EQ(out.get(i), in.get(i) & 7) << i;
}

TEST(Alignment, of_other_results_allows_whole_vectors) {
  const Plan plan = compiled(R"(
graph @g on cuda:0 (%x: f32[64,64]) -> (%y) {
  %p = call aten.mm(%x, %x) : f32[64,64]
  %y = call aten.mul.Scalar(%p, 2.0) : f32[64,64]
})");
  ASSERT_EQ(plan.kernels.size(), 1U);
  EXPECT_EQ(plan.kernels[0].params.at(0).alignment, 16);
  EXPECT_FALSE(plan.kernels[0].params.at(0).written);
  EXPECT_EQ(plan.kernels[0].params.at(1).alignment, 16);
  EXPECT_TRUE(plan.kernels[0].params.at(1).written);
}

TEST(Alignment, less_than_a_text_relies_on_ends_the_emulator) {
  const Plan plan = compiled(real_parts);
  const Emulator emulator(plan.kernels);
  Shifted<float> in(4, 4094);
  Shifted<float> out(0, 4094);
  const std::vector<EmulatedArg> args{in.data(), out.data()};
  EXPECT_DEATH(emulator.run(0, args), "misaligned address");
}

TEST(Alignment, of_what_an_earlier_segment_made_is_what_the_capture_saw) {
  ir::Graph graph =
      ir::parse("graph @g on cuda:0 (%x: f32[4096]) -> (%y) {\n  %y = call aten.exp(%x) : f32[4096]\n}\n");
  graph.value(graph.node(graph.order()[0]).results[0]).alignment = 4;
  EntryReport report;
  CompileOptions options;
  options.device = test_device();
  const Plan plan = compile(graph, options, report);
  EXPECT_EQ(plan.kernels.at(0).params.at(0).alignment, 4) << "no guard speaks for it";
  options.input_alignment = {256};
  EXPECT_EQ(compile(graph, options, report).kernels.at(0).params.at(0).alignment, 16) << "a guard does";
}

}  // namespace
}  // namespace sinter::test
