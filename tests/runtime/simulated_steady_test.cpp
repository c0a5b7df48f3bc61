// Inputs that a graph takes where they lie (ExecutableOptions::steady_inputs), on a simulated device.
#include <algorithm>
#include <thread>

#include "tests/runtime/simulated_test.h"

namespace sinter::runtime::simulated_test {
namespace {

const ExecutableOptions steady{.graphs = true, .steady_inputs = true};

/// r = x * (first weight) + the other weights, by a library's kernel.
KernelSource weighted_sum(size_t weights) {
  return kernel("library_weighted_sum", weights + 2, [=](const simulated::Launched& launched) {
    for (int64_t i = 0; i < count; ++i) {
      float sum = launched.pointer<const float>(0)[i] * launched.pointer<const float>(1)[i];
      for (size_t w = 1; w < weights; ++w) sum += launched.pointer<const float>(w + 1)[i];
      launched.pointer<float>(weights + 1)[i] = sum;
    }
  });
}

struct SimulatedSteady : Simulated {
  BufferId x = b.add(BufferKind::input, count, 0);
  std::vector<BufferId> weights;
  BufferId r;
  fake::Tensor steady_x = tensor(1);

  void plan(uint32_t weight_count) {
    std::vector<BufferId> arguments{x};
    for (uint32_t i = 0; i < weight_count; ++i) {
      weights.push_back(b.add(BufferKind::input, count, i + 1));
      arguments.push_back(weights.back());
    }
    r = b.add(BufferKind::result, count);
    define_call("library", weighted_sum(weight_count));
    b.step(RunCall{b.add_call("library", arguments, {r})});
    b.plan.outputs = {r};
  }
  /// Calls it and returns the frame.
  std::unique_ptr<fake::Frame> call(Executable& executable, const fake::Tensor& value,
                                    const std::vector<fake::Tensor>& state) {
    auto f = frame();
    f->set(x, value);
    for (size_t i = 0; i < weights.size(); ++i) f->set(weights[i], state[i]);
    executable.run(*f);
    return f;
  }
  /// The same, and returns the result.
  Values result(Executable& executable, const fake::Tensor& value, const std::vector<fake::Tensor>& state) {
    return read(*call(executable, value, state), r);
  }
  /// Tensors of the device that were copied, and kernels launched, while `body` ran.
  template <class Body>
  static simulated::Counts during(Body&& body) {
    const simulated::Counts before = simulated::counts();
    body();
    const simulated::Counts after = simulated::counts();
    return {.launches = after.launches - before.launches,
            .copies = after.copies - before.copies,
            .graph_launches = after.graph_launches - before.graph_launches,
            .instantiations = after.instantiations - before.instantiations};
  }
};

TEST_F(SimulatedSteady, weights_that_stay_are_not_copied_and_what_moves_is) {
  plan(3);
  const std::vector<fake::Tensor> state{tensor(2), tensor(10), tensor(100)};
  const auto executable = build(steady);
  std::vector<std::unique_ptr<fake::Frame>> frames;  // kept: no address comes twice
  for (int i = 0; i < 5; ++i) {
    const fake::Tensor value = tensor(static_cast<float>(i));
    const auto did = during([&] { frames.push_back(call(*executable, value, state)); });
    EXPECT_EQ(did.graph_launches, i == 0 ? 0 : 1) << i;
    if (i < 2) continue;
    EXPECT_EQ(did.copies, 2) << "x in, r out";
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(read(*frames[static_cast<size_t>(i)], r), filled(2.0F * static_cast<float>(i) + 110)) << i;
  }
  EXPECT_EQ(report.graphs, 1);
  EXPECT_TRUE(report.notes.empty());
}

TEST_F(SimulatedSteady, without_the_option_every_one_is_copied_from_the_first_call_on) {
  plan(3);
  const std::vector<fake::Tensor> state{tensor(2), tensor(10), tensor(100)};
  const auto executable = build({.graphs = true});
  EXPECT_EQ(during([&] { (void)call(*executable, steady_x, state); }).graph_launches, 1);
  EXPECT_EQ(during([&] { (void)call(*executable, steady_x, state); }).copies, 5);
}

TEST_F(SimulatedSteady, another_value_at_the_same_address_is_read) {
  plan(2);
  const std::vector<fake::Tensor> state{tensor(2), tensor(10)};
  const auto executable = build(steady);
  for (const float value : {3.0F, 4.0F, 5.0F, 6.0F}) {
    host.upload(state[0].data, filled(value));
    EXPECT_EQ(result(*executable, steady_x, state), filled(value + 10));
  }
}

TEST_F(SimulatedSteady, a_swapped_weight_is_seen_by_that_call_and_by_later_ones) {
  plan(2);
  std::vector<fake::Tensor> state{tensor(2), tensor(10)};
  const auto executable = build(steady);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(result(*executable, steady_x, state), filled(12)) << i;
  const fake::Tensor old = std::exchange(state[1], tensor(20));
  const auto did = during([&] { EXPECT_EQ(result(*executable, steady_x, state), filled(22)); });
  EXPECT_EQ(did.graph_launches, 0) << "the graph has the old one's address";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(result(*executable, steady_x, state), filled(22)) << i;
  const auto later = during([&] { EXPECT_EQ(result(*executable, steady_x, state), filled(22)); });
  EXPECT_EQ(later.graph_launches, 1);
  EXPECT_EQ(later.copies, 2) << "the weight that moved, and the result";
  state[1] = old;
  EXPECT_EQ(result(*executable, steady_x, state), filled(12)) << "it may move for ever";
  EXPECT_EQ(host.open_pools.size(), 1U) << "the first graph's is given back";
}

TEST_F(SimulatedSteady, two_weights_may_change_places) {
  plan(2);
  const fake::Tensor two = tensor(2);
  const fake::Tensor ten = tensor(10);
  const fake::Tensor three = tensor(3);
  const auto executable = build(steady);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(result(*executable, three, {two, ten}), filled(16)) << i;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(result(*executable, three, {ten, two}), filled(32)) << i;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(result(*executable, three, {two, ten}), filled(16)) << i;
}

TEST_F(SimulatedSteady, memory_of_a_freed_weight_may_be_anothers) {
  plan(2);
  std::vector<fake::Tensor> state{tensor(2), tensor(10)};
  const auto executable = build(steady);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(result(*executable, steady_x, state), filled(12)) << i;
  const char* const address = state[1].data;
  state[1] = {};
  const fake::Tensor other = tensor(-1);  // takes the memory
  ASSERT_EQ(other.data, address);
  state[1] = tensor(20);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(result(*executable, steady_x, state), filled(22)) << i;
  state[0] = {};
  state[0] = tensor(5);  // another weight where the old one lay
  for (int i = 0; i < 3; ++i) EXPECT_EQ(result(*executable, steady_x, state), filled(25)) << i;
}

TEST_F(SimulatedSteady, a_weight_that_moves_on_every_call_is_copied) {
  plan(2);
  std::vector<fake::Tensor> all{tensor(2), tensor(10)};
  const auto executable = build(steady);
  for (int i = 0; i < 6; ++i) {
    all.push_back(tensor(static_cast<float>(i)));
    const auto did = during([&] {
      EXPECT_EQ(result(*executable, steady_x, {all[0], all.back()}), filled(2 + static_cast<float>(i))) << i;
    });
    EXPECT_EQ(did.instantiations, i == 1 ? 1 : 0) << i;
  }
}

TEST_F(SimulatedSteady, recordings_end_where_one_weight_after_another_moves) {
  plan(12);
  std::vector<fake::Tensor> state;
  for (int i = 0; i < 12; ++i) state.push_back(tensor(1));
  std::vector<fake::Tensor> gone;  // kept: no address comes twice
  const auto executable = build(steady);
  const auto did = during([&] {
    for (size_t i = 0; i < 60; ++i) {
      const fake::Tensor next = tensor(static_cast<float>(i));
      gone.push_back(std::exchange(state[i / 2 % 12], next));
      float expected = 0;
      for (const fake::Tensor& weight : state) expected += *reinterpret_cast<const float*>(weight.data);
      EXPECT_EQ(result(*executable, steady_x, state), filled(expected)) << i;
    }
  });
  EXPECT_EQ(did.instantiations, 8);
  EXPECT_EQ(during([&] { (void)call(*executable, steady_x, state); }).copies, 14) << "13 in, one out";
  EXPECT_EQ(report.notes, std::vector<std::string>{"inputs moved time and again: every replay copies them"});
  EXPECT_EQ(report.graphs, 1);
  EXPECT_EQ(host.open_pools.size(), 1U);
}

TEST_F(SimulatedSteady, several_threads_have_weights_of_their_own) {
  plan(2);
  const auto executable = build(steady);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const ContextScope in_thread(driver, driver.context_of(0));
      fake::GpuHost::use(host.make_stream());
      const fake::Tensor mine = tensor(static_cast<float>(t));
      const std::vector<fake::Tensor> state{tensor(static_cast<float>(2 * t)), tensor(static_cast<float>(3 * t))};
      const auto expected = static_cast<float>(2 * t * t + 3 * t);
      for (int i = 0; i < 50; ++i) ASSERT_EQ(result(*executable, mine, state), filled(expected));
    });
  }
  threads.clear();
}

TEST_F(SimulatedSteady, what_is_recorded_for_one_call_alone_is_recorded_at_the_second) {
  plan(2);
  const std::vector<fake::Tensor> state{tensor(2), tensor(10)};
  const auto executable = build(steady);
  EXPECT_EQ(result(*executable, steady_x, state), filled(12));
  EXPECT_EQ(report.graphs, 0);
  EXPECT_EQ(result(*executable, steady_x, state), filled(12));
  EXPECT_EQ(report.graphs, 1);
  EXPECT_EQ(report.phases.back().name, "record");
}

/// The names of phases, as they were told.
struct ToldPhases final : CompileObserver {
  void phase(std::string_view name, Time begin, Time end) override {
    EXPECT_LE(begin, end);
    names.emplace_back(name);
  }
  void kernel(std::string_view /*name*/, std::string_view /*origin*/, Time /*begin*/, Time /*end*/) override {}

  std::vector<std::string> names;
};

TEST_F(SimulatedSteady, an_observer_is_told_of_every_recording_and_of_no_replay) {
  ToldPhases told;
  plan(2);
  const std::vector<fake::Tensor> state{tensor(2), tensor(10)};
  const auto executable = build({.graphs = true, .steady_inputs = true, .observer = &told});
  for (int call = 0; call < 5; ++call) ASSERT_EQ(result(*executable, steady_x, state), filled(12));
  EXPECT_EQ(told.names, (std::vector<std::string>{"record"}));
}

TEST_F(SimulatedSteady, a_plan_that_is_never_recorded_says_so_at_the_first_call) {
  plan(1);
  b.plan.calls[0].impure = true;
  const auto executable = build(steady);
  EXPECT_EQ(result(*executable, steady_x, {tensor(2)}), filled(2));
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_TRUE(report.notes[0].starts_with("launched directly: library may do more")) << report.notes[0];
}

/// Only a copy has an alignment that draws of a library do not depend on.
TEST_F(SimulatedSteady, draws_for_a_little_aligned_weight_are_recorded_where_it_lies) {
  plan(1);
  b.plan.calls[0].random = true;
  const fake::Tensor memory = host.allocate_device(count * 4 + 4);
  const fake::Tensor weight{memory.storage, memory.data + 4};
  host.upload(weight.data, filled(7));
  const auto executable = build(steady);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(result(*executable, steady_x, {weight}), filled(7)) << i;
  EXPECT_EQ(report.graphs, 1);
  const fake::Tensor memory_of_other = host.allocate_device(count * 4 + 4);
  const fake::Tensor other{memory_of_other.storage, memory_of_other.data + 4};
  host.upload(other.data, filled(8));
  const auto did = during([&] {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(result(*executable, steady_x, {other}), filled(8)) << i;
  });
  EXPECT_EQ(did.graph_launches, 0) << "a copy would be aligned";
}

/// x is read by a library's kernel, and by one of the plan that needs an aligned address.
TEST_F(Simulated, an_input_that_a_kernel_needs_more_aligned_is_copied) {
  const BufferId x = b.add(BufferKind::input, count);
  const BufferId r = b.add(BufferKind::result, count);
  const BufferId y = b.add(BufferKind::output, count);
  define_call("library", affine("library_plus_one", 1, 1));
  KernelSource twice = kernel("aligned_twice", 2, [](const simulated::Launched& launched) {
    ASSERT_EQ(launched.params[0] % 16, 0U);
    const auto* in = launched.pointer<const float>(0);
    std::transform(in, in + count, launched.pointer<float>(1), [](float value) { return 2 * value; });
  });
  twice.params = {{16, false}, {16, true}};
  b.step(RunCall{b.add_call("library", {x}, {r})});
  b.step(Allocate{y});
  b.launch(b.add_kernel(twice), {at(x), at(y)});
  b.plan.outputs = {r, y};
  const fake::Tensor memory = host.allocate_device(count * 4 + 4);
  const fake::Tensor shifted{memory.storage, memory.data + 4};
  host.upload(shifted.data, filled(3));
  const auto executable = build(steady);
  for (int i = 0; i < 3; ++i) {
    const auto f = frame();
    f->set(x, shifted);
    executable->run(*f);
    EXPECT_EQ(read(*f, r), filled(4)) << i;
    EXPECT_EQ(read(*f, y), filled(6)) << i;
  }
  EXPECT_EQ(report.graphs, 1);
  EXPECT_TRUE(report.notes.empty());
}

/// A cache that a library's kernel writes.
struct SimulatedSteadyWrites : Simulated {
  BufferId cache = b.add(BufferKind::input, count);
  std::unique_ptr<Executable> executable;

  void SetUp() override {
    define_call("library_", kernel("library_increment", 1, [](const simulated::Launched& launched) {
                  for (int64_t i = 0; i < count; ++i) launched.pointer<float>(0)[i] += 1;
                }));
    b.step(BeginWrites{});
    b.step(RunCall{b.add_call("library_", {cache}, {})});
    b.plan.written = {cache};
    executable = build(steady);
  }
  void run(const fake::Tensor& memory) {
    const auto f = frame();
    f->set(cache, memory);
    executable->run(*f);
  }
  Values values(const fake::Tensor& memory) { return host.download(memory.data, count); }
};

TEST_F(SimulatedSteadyWrites, go_to_the_callers_memory_without_copies) {
  const fake::Tensor memory = tensor(0);
  for (int i = 0; i < 5; ++i) {
    const int64_t copies = simulated::counts().copies;
    run(memory);
    EXPECT_EQ(values(memory), filled(static_cast<float>(i + 1)));
    EXPECT_TRUE(i < 2 || simulated::counts().copies == copies) << i;
  }
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(SimulatedSteadyWrites, leave_memory_alone_that_a_call_does_not_have) {
  const fake::Tensor first = tensor(0);
  const fake::Tensor second = tensor(100);
  for (int i = 0; i < 3; ++i) run(first);
  for (int i = 0; i < 3; ++i) run(second);
  EXPECT_EQ(values(first), filled(3));
  EXPECT_EQ(values(second), filled(103));
  run(first);
  EXPECT_EQ(values(first), filled(4));
  EXPECT_EQ(values(second), filled(103));
}

/// A copy would write the gaps, which are somebody else's.
TEST_F(SimulatedSteadyWrites, with_gaps_are_recorded_in_place_and_launched_directly_once_they_moved) {
  b.plan.buffers[cache.index].type.sizes = {count / 2};
  b.plan.buffers[cache.index].type.strides = {2};
  executable = build(steady);
  const fake::Tensor first = tensor(0);
  const fake::Tensor second = tensor(100);
  for (int i = 0; i < 3; ++i) run(first);
  EXPECT_EQ(report.graphs, 1);
  for (int i = 0; i < 3; ++i) run(second);
  run(first);
  EXPECT_EQ(values(first), filled(4));
  EXPECT_EQ(values(second), filled(103));
  EXPECT_EQ(report.graphs, 0);
  EXPECT_EQ(report.notes, std::vector<std::string>{"launched directly: a library call writes input 0, which has gaps"});
}

}  // namespace
}  // namespace sinter::runtime::simulated_test
