#include "frontend/private_layout.h"

#include <algorithm>

#include "frontend/closure.h"
#include "frontend/torch/modules.h"
#include "frontend/state_guards.h"
#include "tests/capture/capture_test.h"

namespace capture_test {
namespace {

using Words = TensorWords::Copy;

/// Reads as a TensorImpl would be read whose members began eight bytes earlier: the last ones are missed.
Words copy_from_earlier(const c10::TensorImpl& tensor) {
  Words words = TensorWords::of(tensor);
  std::fill(words.begin(), std::shift_right(words.begin(), words.end(), 1), 0);
  return words;
}

bool equal_from_earlier(const c10::TensorImpl& tensor, const Words& words) {
  return copy_from_earlier(tensor) == words;
}

/// Reads as one would be read that keeps its dispatch keys elsewhere.
bool equal_but_for_keys(const c10::TensorImpl& tensor, const Words& words) {
  const Words now = TensorWords::of(tensor);
  return std::equal(now.begin(), now.end() - 1, words.begin());
}

const c10::AutogradMetaInterface* no_autograd(const c10::TensorImpl& /*tensor*/) { return nullptr; }

const bool* some_flag(const torch::nn::Module& /*module*/) {
  static const bool flag = true;
  return &flag;
}

std::vector<std::shared_ptr<torch::nn::Module>> none_found(std::span<const std::byte> /*closure*/) { return {}; }

TEST(PrivateLayout, is_as_expected_in_this_libtorch) {
  const PrivateLayout& here = PrivateLayout::here();
  EXPECT_TRUE(here.tensor_words);
  EXPECT_TRUE(here.train_flags);
  EXPECT_TRUE(here.closures);
  EXPECT_TRUE(here.notes().empty());
}

TEST(PrivateLayout, tensors_that_lie_otherwise_are_found_out) {
  EXPECT_TRUE(reads_tensors({}));
  EXPECT_FALSE(reads_tensors({.copy = copy_from_earlier, .equal = equal_from_earlier}));
  EXPECT_FALSE(reads_tensors({.equal = equal_but_for_keys}));
  EXPECT_FALSE(reads_tensors({.autograd_meta = no_autograd}));
}

TEST(PrivateLayout, is_looked_at_in_inference_mode_as_elsewhere) {
  const c10::InferenceMode inference;
  EXPECT_TRUE(reads_tensors({}));
}

TEST(PrivateLayout, a_train_flag_that_lies_elsewhere_is_found_out) {
  EXPECT_TRUE(reads_train_flags(train_flag_of));
  EXPECT_FALSE(reads_train_flags(some_flag));
}

TEST(PrivateLayout, closures_that_cannot_be_read_are_found_out) {
  EXPECT_TRUE(reads_closures(modules_in));
  EXPECT_FALSE(reads_closures(none_found));
}

TEST(PrivateLayout, every_part_left_alone_has_a_note) {
  EXPECT_EQ(PrivateLayout{}.notes().size(), 3);
  EXPECT_EQ((PrivateLayout{.tensor_words = true, .train_flags = true}.notes()),
            Ops{"modules that a lambda closes over cannot be found here: name them in Options::modules"});
}

TEST(PrivateLayout, guards_on_state_hold_and_miss_without_it) {
  const at::Tensor weight = torch::randn({4, 4});
  const std::vector<StateSlot> slots = [&] {
    const Trace trace = trace_of([&](const at::Tensor& x) { return at::matmul(x, weight); }, torch::ones({2, 4}));
    return trace.states;
  }();
  ASSERT_EQ(slots.size(), 1);
  StateGuards guards(PrivateLayout{});
  guards.add(slots, {});
  EXPECT_TRUE(guards.hold(false));
  at::Tensor same = weight;
  same.unsafeGetTensorImpl()->set_sizes_and_strides(c10::IntArrayRef({2, 8}), c10::IntArrayRef({8, 1}));
  EXPECT_FALSE(guards.hold(false));
  same.unsafeGetTensorImpl()->set_sizes_and_strides(c10::IntArrayRef({4, 4}), c10::IntArrayRef({4, 1}));
  EXPECT_TRUE(guards.hold(false));
}

TEST(PrivateLayout, train_flags_are_asked_for_without_it) {
  const auto module = std::make_shared<torch::nn::LinearImpl>(2, 2);
  const TrainFlags flags({{"", module}}, PrivateLayout{});
  EXPECT_TRUE(flags.hold());
  module->eval();
  EXPECT_FALSE(flags.hold());
}

}  // namespace
}  // namespace capture_test
