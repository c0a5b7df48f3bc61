#include <thread>

#include "frontend/torch/libtorch_version.h"
#include "tests/capture/capture_test.h"

namespace capture_test {
namespace {

/// The calls a function of one tensor makes in every mode; fails when the modes disagree.
Ops ops_in_all_modes(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& x) {
  const Program program = [&] { return std::vector<at::Tensor>{function(x)}; };
  const std::vector<at::Tensor> inputs{x};
  const Trace grad = capture(program, inputs, {}, nullptr);
  const Ops ops = ops_of(grad);
  EXPECT_TRUE(whole(grad));
  {
    const torch::NoGradGuard no_grad;
    EXPECT_EQ(ops_of(capture(program, inputs, {}, nullptr)), ops) << "in no-grad mode";
  }
  const c10::InferenceMode inference;
  EXPECT_EQ(ops_of(capture(program, inputs, {}, nullptr)), ops) << "in inference mode";
  return ops;
}

const at::Tensor& matrix() {
  static const at::Tensor x = torch::rand({4, 6}) + 0.5;
  return x;
}

TEST(Composites, linear_is_opened) {
  const at::Tensor w = torch::randn({3, 6}), b = torch::randn({3});
  EXPECT_EQ(ops_in_all_modes([&](const at::Tensor& x) { return torch::linear(x, w, b); }, matrix()),
            (Ops{"t", "addmm"}));
}

TEST(Composites, matmul_of_batches_is_opened) {
  const at::Tensor x = torch::randn({2, 3, 4});
  const Ops ops = ops_in_all_modes([](const at::Tensor& v) { return torch::matmul(v, v.transpose(1, 2)); }, x);
  EXPECT_NE(std::find(ops.begin(), ops.end(), "bmm"), ops.end());
  EXPECT_EQ(std::find(ops.begin(), ops.end(), "matmul"), ops.end());
}

TEST(Composites, einsum_is_opened) {
  const Ops ops = ops_in_all_modes([](const at::Tensor& x) { return torch::einsum("ij,kj->ik", {x, x}); }, matrix());
  EXPECT_EQ(std::find(ops.begin(), ops.end(), "einsum"), ops.end());
}

TEST(Composites, layer_norm_is_opened) {
  EXPECT_EQ(ops_in_all_modes([](const at::Tensor& x) { return torch::layer_norm(x, {6}); }, matrix()),
            (Ops{"native_layer_norm"}));
}

TEST(Composites, dropout_outside_training_is_nothing) {
  EXPECT_EQ(ops_in_all_modes([](const at::Tensor& x) { return torch::dropout(x, 0.5, false) * 2; }, matrix()),
            (Ops{"mul.Scalar"}));
}

TEST(Composites, a_chain_of_pointwise_operators_keeps_its_scalars) {
  const Trace trace = trace_of([](const at::Tensor& x) { return x * 0.5 * (1 + torch::erf(x / 1.41421)); }, matrix());
  EXPECT_TRUE(whole(trace));
  EXPECT_TRUE(trace.contents.empty()) << text_of(trace);
  EXPECT_TRUE(shows(trace, "1.41421"));
}

TEST(Composites, where_with_a_number_needs_no_content) {
  const Trace trace = trace_of([](const at::Tensor& x) { return torch::where(x > 1, x, 0.25); }, matrix());
  EXPECT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "0.25"));
}

TEST(Composites, attention_asks_which_kernel_to_use_and_is_recorded) {
  const at::Tensor q = torch::randn({1, 2, 8, 16});
  const Ops ops = ops_in_all_modes([](const at::Tensor& v) { return at::scaled_dot_product_attention(v, v, v); }, q);
  ASSERT_FALSE(ops.empty());
  EXPECT_EQ(std::find(ops.begin(), ops.end(), "_fused_sdp_choice"), ops.end());
}

TEST(Views, carry_base_and_offset) {
  const Trace trace = trace_of([](const at::Tensor& x) { return x.slice(0, 1, 3).t() + 1; }, matrix());
  EXPECT_TRUE(shows(trace, "aten.slice.Tensor(%x0, 0, 1, 3, 1) : f32[2,6] alias %x0 + 6"));
  EXPECT_TRUE(shows(trace, "f32[6,2]{1,6} alias %x0 + 6"));
}

TEST(Views, of_views_name_the_first_value_of_the_storage) {
  const Trace trace = trace_of([](const at::Tensor& x) { return (x + 1).view({24}).narrow(0, 2, 5) * 2; }, matrix());
  EXPECT_TRUE(shows(trace, "f32[5] alias %add + 2"));
}

TEST(Views, chunks_of_a_copying_split_are_found_in_one_storage) {
  const Trace trace = trace_of([](const at::Tensor& x) { return x.split(2)[1].exp(); }, matrix());
  EXPECT_TRUE(shows(trace, "f32[2,6] alias %x0 + 0, f32[2,6] alias %x0 + 12"));
}

TEST(Views, of_another_type_are_recorded) {
  const Trace trace = trace_of([](const at::Tensor& x) { return (x + 1).view(at::kInt) + 1; }, matrix());
  EXPECT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "aten.view.dtype(%add, dtype(i32)) : i32[4,6] alias %add + 0"));
}

TEST(Views, of_another_type_cannot_be_written) {
  const Trace trace = trace_of([](const at::Tensor& x) { return (x + 1).view(at::kInt).zero_(); }, matrix());
  EXPECT_TRUE(breaks(trace, BreakCode::unsupported_op, "aten::zero_", "through another dtype"));
}

TEST(Views, in_place_are_views_without_a_write) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        at::Tensor y = x + 1;
        y.t_();
        y.unsqueeze_(0);
        return y * 2;
      },
      matrix());
  EXPECT_TRUE(whole(trace));
  EXPECT_EQ(ops_of(trace), (Ops{"add.Scalar", "t", "unsqueeze", "mul.Scalar"}));
  EXPECT_FALSE(shows(trace, "mutates"));
}

TEST(Views, without_an_operator_are_followed_through_the_storage) {
  const Trace trace = trace_of([](const at::Tensor& x) { return (x + 1).data().mul(2) + x.data(); }, matrix());
  EXPECT_TRUE(whole(trace));
  EXPECT_TRUE(trace.contents.empty() && trace.states.empty()) << text_of(trace);
  EXPECT_EQ(ops_of(trace), (Ops{"add.Scalar", "mul.Scalar", "as_strided", "add.Tensor"}));
  EXPECT_TRUE(shows(trace, "aten.as_strided(%x0, [4, 6], [6, 1], 0) : f32[4,6] alias %x0 + 0"));
}

TEST(Views, of_a_tensor_without_an_operator_end_at_the_tensor) {
  const Trace trace = trace_of([](const at::Tensor& x) { return x.data().slice(0, 1, 3) + 1; }, matrix());
  EXPECT_TRUE(shows(trace, "aten.slice.Tensor(%as_strided, 0, 1, 3, 1) : f32[2,6] alias %x0 + 6"));
}

TEST(Views, inputs_that_share_memory_stand_alone_with_their_views) {
  const at::Tensor x = torch::randn({8});
  const at::Tensor part = x.narrow(0, 2, 3);
  const Trace trace = trace_of([&] { return std::vector<at::Tensor>{x.sum() + part.view({3, 1})}; }, {x, part});
  EXPECT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "aten.view(%x1, [3, 1]) : f32[3,1] alias %x1 + 0"));
}

TEST(Views, inputs_that_are_parts_of_one_storage_stand_alone) {
  const std::vector<at::Tensor> parts = torch::randn({3, 4}).unbind(0);
  const Trace trace = trace_of([&] { return std::vector<at::Tensor>{parts[0] + parts[1] + parts[2]}; }, parts);
  EXPECT_TRUE(whole(trace));
  EXPECT_FALSE(shows(trace, "alias"));
}

TEST(Writes, of_intermediates_are_recorded) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        at::Tensor y = x.clone();
        y.select(0, 1).copy_(y.select(0, 2));
        return y;
      },
      matrix());
  EXPECT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace,
                    "aten.copy_(%select, %select.1, false) mutates(0) functional aten.copy : "
                    "f32[6] alias %clone + 6"));
}

TEST(Writes, into_given_outputs_are_recorded) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        at::Tensor y = torch::empty_like(x);
        return torch::add_out(y, x, x);
      },
      matrix());
  EXPECT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "aten.add.out(%x0, %x0, 1, %empty_like) mutates(3) functional aten.add.Tensor"));
}

TEST(Writes, that_resize_break) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        at::Tensor y = torch::empty({0});
        return torch::add_out(y, x, x);
      },
      matrix());
  EXPECT_TRUE(breaks(trace, BreakCode::unsupported_op, "aten::add.out", "resizes"));
}

TEST(Facts, random_operators_are_marked) {
  const Trace trace = trace_of([](const at::Tensor& x) { return torch::bernoulli(x.sigmoid()) * x; }, matrix());
  EXPECT_TRUE(shows(trace, "aten.bernoulli(%sigmoid, none) random"));
}

TEST(Facts, attention_is_random_with_dropout_only) {
  const auto attention = [](double dropout) {
    return trace_of(
        [dropout](const at::Tensor& x) {
          const at::Tensor q = x.expand({1, 2, 4, 6}).contiguous();
          return at::scaled_dot_product_attention(q, q, q, {}, dropout);
        },
        at::rand({6}));
  };
  EXPECT_TRUE(shows(attention(0), "scaled_dot_product_flash_attention"));
  EXPECT_FALSE(shows(attention(0), " random"));
  EXPECT_TRUE(shows(attention(0.5), " random"));
}

TEST(Facts, dropout_is_random_in_training_only) {
  const auto dropout = [](bool train) {
    return trace_of([train](const at::Tensor& x) { return std::get<0>(at::native_dropout(x, 0.5, train)); }, matrix());
  };
  EXPECT_FALSE(shows(dropout(false), " random"));
  EXPECT_TRUE(shows(dropout(true), " random"));
}

TEST(Facts, a_generator_is_kept_beside_the_graph) {
  auto generator = at::detail::createCPUGenerator(7);
  const Trace trace = trace_of([&](const at::Tensor& x) { return x + torch::rand({6}, generator); }, matrix());
  ASSERT_EQ(trace.opaques.size(), 1);
  EXPECT_TRUE(shows(trace, "opaque(0)"));
}

TEST(Facts, data_types_and_formats_keep_their_meaning) {
  const Trace trace = trace_of([](const at::Tensor& x) { return x.to(at::kHalf).contiguous(); }, matrix());
  EXPECT_TRUE(shows(trace, "aten._to_copy(%x0, dtype(f16), "));
  const Trace format = trace_of(
      [](const at::Tensor& x) { return x.reshape({1, 2, 3, 4}).contiguous(at::MemoryFormat::ChannelsLast); }, matrix());
  EXPECT_TRUE(shows(format, "enum(memory_format, 2)"));
  EXPECT_TRUE(shows(format, "f32[1,2,3,4]{24,1,8,2}"));
}

TEST(Threads, a_thread_of_the_program_is_not_recorded) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        std::thread([&] { x.exp(); }).join();
        return x + 1;
      },
      matrix());
  EXPECT_EQ(ops_of(trace), (Ops{"add.Scalar"}));
}

TEST(Threads, captures_on_two_threads_do_not_meet) {
  std::vector<Ops> seen(2);
  const auto work = [&](size_t i) {
    for (int n = 0; n < 20; ++n) {
      seen[i] =
          ops_of(trace_of([&](const at::Tensor& x) { return i == 0 ? x.sin().cos() : x.exp(); }, torch::ones({3})));
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(seen[0], (Ops{"sin", "cos"}));
  EXPECT_EQ(seen[1], (Ops{"exp"}));
}

TEST(Capture, says_while_it_is_active) {
  bool inside = false;
  trace_of([&](const at::Tensor& x) { return inside = capturing(), x + 1; }, matrix());
  EXPECT_TRUE(inside);
  EXPECT_FALSE(capturing());
}

TEST(Capture, of_a_program_that_throws_leaves_nothing_behind) {
  EXPECT_THROW((void)trace_of([](const at::Tensor& x) { return torch::matmul(x, x); }, matrix()), c10::Error);
  EXPECT_FALSE(capturing());
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
  EXPECT_FALSE(c10::impl::tls_is_dispatch_key_included(kCaptureKey));
}

TEST(Capture, sees_every_operator_because_no_other_kernel_stands_at_its_key) {
  std::vector<std::string> taken;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (op && op->hasKernelForDispatchKey(kCaptureKey)) taken.push_back(c10::toString(name));
  }
  EXPECT_TRUE(taken.empty()) << ::testing::PrintToString(taken);
}

TEST(Capture, within_a_capture_ends_the_outer_one) {
  Trace inner;
  const Trace outer = trace_of(
      [&](const at::Tensor& x) {
        inner = trace_of([](const at::Tensor& y) { return y + 1; }, x);
        return x * 2;
      },
      matrix());
  EXPECT_TRUE(breaks(outer, BreakCode::unsupported_op, "", "inside a capture"));
  EXPECT_EQ(ops_of(inner), (Ops{"add.Scalar"}));
}

TEST(Capture, does_not_hold_what_the_program_lets_go) {
  c10::weak_intrusive_ptr<c10::StorageImpl> memory{c10::intrusive_ptr<c10::StorageImpl>()};
  bool held = true;
  trace_of(
      [&](const at::Tensor& x) {
        at::Tensor y = x + 1;
        memory = y.storage().getWeakStorageImpl();
        at::Tensor z = y * 2;
        y.reset();
        held = !memory.expired();
        return z;
      },
      matrix());
  EXPECT_FALSE(held);
}

TEST(Capture, tells_storages_apart_that_follow_each_other_at_one_address) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        at::Tensor sum = x;
        for (int i = 0; i < 8; ++i) sum = (sum + x).mul(2);
        return sum;
      },
      matrix());
  EXPECT_FALSE(shows(trace, "alias"));
}

TEST(Capture, of_nothing_returns_its_input) {
  const Trace trace = trace_of([](const at::Tensor& x) { return x; }, matrix());
  ASSERT_EQ(trace.graph.outputs.size(), 1);
  EXPECT_EQ(trace.graph.outputs[0].index, 0);
}

}  // namespace
}  // namespace capture_test
