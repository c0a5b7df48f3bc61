#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>
#include <torch/library.h>

#include <functional>

#include "where.h"

/// Tensors that library calls return somewhere else than at a multiple of 16 bytes.
namespace sinter::test {
namespace {

/// Elements that the next result of sinter_alignment_test::shifted begins after a multiple of 64 bytes.
int64_t shift = 0;

at::Tensor shifted(const at::Tensor& x) {
  const at::Tensor memory = at::empty({x.numel() + 16}, x.options());
  return memory.slice(0, shift, shift + x.numel()).view(x.sizes()).copy_(x);
}

TORCH_LIBRARY(sinter_alignment_test, library) {
  library.def("shifted(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  library.impl("shifted", c10::DispatchKey::CPU, &shifted);
  library.impl("shifted", c10::DispatchKey::CUDA, &shifted);
}

class Alignment : public OnDevice {
 protected:
  [[nodiscard]] static at::Tensor randn(int64_t size, at::ScalarType dtype) {
    return at::randn({size}, at::TensorOptions(GetParam().device).dtype(dtype));
  }
  [[nodiscard]] static Options options() { return {.mode = GetParam().mode, .strict = true}; }

  template <class Program>
  static void agrees(const Program& program, at::ScalarType dtype) {
    auto fast = compile(program, unlimited(options()));
    for (const int64_t size : {1001, 1001, 1001, 1001, 512, 512, 512, 3, 3, 3, 64, 77}) {
      const at::Tensor x = randn(size, dtype);
      ASSERT_TRUE(same(fast(x), program(x))) << size << "\n" << fast.report();
    }
    EXPECT_TRUE(unbroken(fast.report()));
    EXPECT_GE(fast.stats().replayed, 3) << fast.report();
  }

 private:
  c10::NoGradGuard no_grad_;
};

TEST_P(Alignment, of_real_parts_of_a_slice_is_that_of_the_slice) {
  agrees([](const at::Tensor& z) { return at::view_as_real(z.slice(0, 1)) * 2; }, at::kComplexFloat);
}

TEST_P(Alignment, of_the_bits_of_a_slice_of_halves_is_that_of_the_slice) {
  agrees([](const at::Tensor& x) { return x.slice(0, 1).view(at::kShort).bitwise_and(7); }, at::kHalf);
}

TEST_P(Alignment, of_a_view_of_another_dtype_from_the_middle_follows_the_size) {
  agrees([](const at::Tensor& x) { return x.slice(0, x.size(0) / 2).view(at::kInt).bitwise_and(255); }, at::kFloat);
}

/// The recording sees one alignment, later calls give others.
TEST_P(Alignment, of_what_a_library_returns_may_change_from_call_to_call) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("sinter_alignment_test::shifted", "")
                      .typed<at::Tensor(const at::Tensor&)>();
  for (const int64_t recorded : {0, 1}) {
    shift = recorded;
    auto fast = compile([&](const at::Tensor& x) { return op.call(x) * 3 + 1; }, unlimited(options()));
    for (const int64_t next : {recorded, recorded, recorded, int64_t{1}, int64_t{0}, int64_t{3}, int64_t{2}}) {
      shift = next;
      const at::Tensor x = randn(1000, at::kFloat);
      ASSERT_TRUE(same(fast(x), x * 3 + 1)) << recorded << ", then " << next << "\n" << fast.report();
    }
    EXPECT_TRUE(unbroken(fast.report()));
    EXPECT_GE(fast.stats().replayed, 3) << fast.report();
  }
}

/// What a read cuts off is made by one segment and used by the next.
TEST_P(Alignment, of_what_one_segment_gives_the_next) {
  agrees(
      [](const at::Tensor& x) {
        const at::Tensor bits = (x + 1).slice(0, 1).view(at::kShort);
        const bool large = (bits.sum() > (int64_t{1} << 40)).item<bool>();
        return large ? bits + 1 : bits.bitwise_and(7);
      },
      at::kHalf);
}

INSTANTIATE_TEST_SUITE_P(Where, Alignment, everywhere(), name_of);

}  // namespace
}  // namespace sinter::test
