// What a recorded graph reads and writes on every replay, on a simulated device.
#include <stdexcept>
#include <thread>

#include "tests/runtime/simulated_test.h"

namespace sinter::runtime::simulated_test {
namespace {

/// y = 2 x + 1 through the arena, by two kernels.
struct SimulatedKernels : Simulated {
  BufferId x = b.add(BufferKind::input, count);
  BufferId h = b.add(BufferKind::arena, count, 0, 64);
  BufferId y = b.add(BufferKind::output, count);

  SimulatedKernels() {
    b.plan.arena_bytes = 512;
    b.launch(b.add_kernel(affine("twice", 2, 0)), {at(x), at(h)});
    b.step(Allocate{y});
    b.launch(b.add_kernel(affine("plus_one", 1, 1)), {at(h), at(y)});
    b.plan.outputs = {y};
  }
  std::unique_ptr<fake::Frame> given(float value) { return frame_with(x, value); }
};

TEST_F(SimulatedKernels, replay_with_inputs_and_outputs_at_new_addresses) {
  const auto executable = build();
  std::vector<std::unique_ptr<fake::Frame>> frames;  // kept: no address comes twice
  for (int call = 0; call < 4; ++call) {
    frames.push_back(given(static_cast<float>(call)));
    executable->run(*frames.back());
  }
  for (int call = 0; call < 4; ++call) {
    EXPECT_EQ(read(*frames[static_cast<size_t>(call)], y), filled(2.0F * static_cast<float>(call) + 1)) << call;
  }
  EXPECT_EQ(report.graphs, 1);
  EXPECT_TRUE(report.notes.empty());
}

TEST_F(SimulatedKernels, are_set_anew_only_where_an_address_has_changed) {
  const auto executable = build();
  const auto f = given(1);
  executable->run(*f);
  const simulated::Counts before = simulated::counts();
  f->release(y);  // its memory is the next result's
  host.upload(f->data(x), filled(5));
  executable->run(*f);
  EXPECT_EQ(read(*f, y), filled(11));
  const simulated::Counts after = simulated::counts();
  EXPECT_EQ(after.graph_launches - before.graph_launches, 1);
  EXPECT_EQ(after.launches, before.launches);
  EXPECT_EQ(after.params_set, before.params_set);
}

TEST_F(SimulatedKernels, replay_for_several_threads_in_turn) {
  const auto executable = build();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const ContextScope in_thread(driver, driver.context_of(0));
      fake::GpuHost::use(host.make_stream());
      for (int call = 0; call < 50; ++call) {
        const auto value = static_cast<float>(100 * t + call);
        const auto f = given(value);
        executable->run(*f);
        ASSERT_EQ(read(*f, y), filled(2 * value + 1));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(SimulatedKernels, launch_directly_into_a_recording_of_the_caller) {
  const auto executable = build();
  const auto f = given(2);
  const auto stream = static_cast<CUstream>(host.current_stream({}));
  driver.check(driver.begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "begin");
  executable->run(*f);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  driver.check(driver.end_capture(stream, &graph), "end");
  driver.check(driver.graph_instantiate(&exec, graph, 0), "instantiate");
  driver.check(driver.graph_launch(exec, stream), "launch");
  EXPECT_EQ(read(*f, y), filled(5));
  driver.graph_exec_destroy(exec);
  driver.graph_destroy(graph);
}

TEST_F(SimulatedKernels, give_graph_and_pool_back_with_the_executable) {
  const int64_t graphs = simulated::counts().graphs;
  auto executable = build();
  const auto f = given(2);
  executable->run(*f);
  EXPECT_EQ(host.open_pools.size(), 1U);
  EXPECT_GT(simulated::counts().graphs, graphs);
  executable.reset();
  EXPECT_TRUE(host.open_pools.empty());
  EXPECT_EQ(simulated::counts().graphs, graphs);
  EXPECT_EQ(read(*f, y), filled(5));
}

/// r = x + 1 by a library's kernel; y = 3 r in place.
struct SimulatedCalls : Simulated {
  BufferId x = b.add(BufferKind::input, count);
  BufferId r = b.add(BufferKind::result, count);
  BufferId y = b.add(BufferKind::in_place, count, 0, 0, r);

  SimulatedCalls() {
    define_call("library", affine("library_plus_one", 1, 1));
    b.step(RunCall{b.add_call("library", {x}, {r})});
    b.step(Bind{y});
    b.step(Release{r});
    b.launch(b.add_kernel(affine("triple", 3, 0)), {at(r), at(y)});
    b.plan.outputs = {y};
  }
  std::unique_ptr<fake::Frame> given(float value) { return frame_with(x, value); }
};

TEST_F(SimulatedCalls, replay_with_copied_inputs_and_fresh_outputs) {
  const auto executable = build();
  std::vector<std::unique_ptr<fake::Frame>> frames;
  for (int call = 0; call < 4; ++call) {
    frames.push_back(given(static_cast<float>(call)));
    const simulated::Counts before = simulated::counts();
    executable->run(*frames.back());
    if (call == 0) continue;
    EXPECT_EQ(simulated::counts().copies - before.copies, 2) << "x in, y out";
    EXPECT_EQ(simulated::counts().launches, before.launches);
  }
  for (int call = 0; call < 4; ++call) {
    EXPECT_EQ(read(*frames[static_cast<size_t>(call)], y), filled(3.0F * static_cast<float>(call + 1))) << call;
  }
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(SimulatedCalls, launch_directly_when_one_spoils_the_recording) {
  host.calls["library"] = [this](fake::Frame& f, const ExternCall& call) {
    host.copy(f, call);
    (void)driver.stream_synchronize(static_cast<CUstream>(host.current_stream({})));
  };
  const auto executable = build();
  for (const float value : {1.0F, 2.0F}) {
    const auto f = given(value);
    executable->run(*f);
    EXPECT_EQ(read(*f, y), filled(3 * value));
  }
  EXPECT_EQ(report.graphs, 0);
  EXPECT_EQ(report.notes, std::vector<std::string>{
                              "launched directly: library cannot be recorded: cuda: the recording was invalidated"});
  EXPECT_TRUE(host.open_pools.empty());
}

TEST_F(SimulatedCalls, let_their_own_exceptions_through_on_every_call) {
  host.calls["library"] = [](fake::Frame&, const ExternCall&) { throw std::domain_error("no"); };
  const auto executable = build();
  for (int call = 0; call < 2; ++call) {
    const auto f = given(1);
    EXPECT_THROW(executable->run(*f), std::domain_error);
  }
  EXPECT_TRUE(host.open_pools.empty());
}

TEST_F(Simulated, replays_read_host_scalars_every_time) {
  const BufferId x = b.add(BufferKind::input, count, 0);
  const BufferId s = b.add_scalar(BufferKind::input, ir::DType::f32, 1);
  const BufferId y = b.add(BufferKind::output, count);
  const auto run = [](const simulated::Launched& launched) {
    for (int64_t i = 0; i < count; ++i) {
      launched.pointer<float>(1)[i] = launched.pointer<const float>(0)[i] + static_cast<float>(launched.number(2));
    }
  };
  b.step(Allocate{y});
  b.launch(b.add_kernel(kernel("plus_scalar", 3, run)), {at(x), at(y), fake::f64(s)});
  b.plan.outputs = {y};
  const auto executable = build();
  for (const float value : {0.5F, -3.0F, 7.0F}) {
    const auto f = frame();
    f->set(x, tensor(1));
    f->allocate(s);
    *f->as<float>(s) = value;
    executable->run(*f);
    EXPECT_EQ(read(*f, y), filled(1 + value));
  }
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(Simulated, an_input_is_written_where_the_caller_has_it) {
  const BufferId by_call = b.add(BufferKind::input, count, 0);
  const BufferId by_kernel = b.add(BufferKind::input, count, 1);
  define_call("library_", kernel("library_increment", 1, [](const simulated::Launched& launched) {
                for (int64_t i = 0; i < count; ++i) launched.pointer<float>(0)[i] += 1;
              }));
  b.step(BeginWrites{});
  b.step(RunCall{b.add_call("library_", {by_call}, {})});
  b.launch(b.add_kernel(affine("plus_ten", 1, 10)), {at(by_kernel), at(by_kernel)});
  b.plan.written = {by_call, by_kernel};
  const auto executable = build();
  for (int call = 0; call < 3; ++call) {
    const auto f = frame();
    f->set(by_call, tensor(1));
    f->set(by_kernel, tensor(2));
    executable->run(*f);
    EXPECT_EQ(read(*f, by_call), filled(2)) << call;
    EXPECT_EQ(read(*f, by_kernel), filled(12)) << call;
    executable->run(*f);
    EXPECT_EQ(read(*f, by_call), filled(3)) << call;
    EXPECT_EQ(read(*f, by_kernel), filled(22)) << call;
  }
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(Simulated, frozen_buffers_are_computed_once_and_read_by_replays) {
  const BufferId w = b.add(BufferKind::state, count);
  const BufferId frozen = b.add(BufferKind::frozen, count);
  const BufferId y = b.add(BufferKind::output, count);
  const uint32_t twice = b.add_kernel(affine("twice", 2, 0));
  b.plan.once = {Allocate{frozen}, Launch{twice, {at(w), at(frozen)}}};
  b.step(Allocate{y});
  b.launch(twice, {at(frozen), at(y)});
  b.plan.outputs = {y, frozen};
  const auto executable = build();
  const auto first = frame();
  first->set(w, tensor(3));
  executable->prepare(*first);
  for (int call = 0; call < 2; ++call) {
    const auto f = frame();
    f->set(w, tensor(-1));
    executable->run(*f);
    EXPECT_EQ(read(*f, y), filled(12));
    EXPECT_EQ(read(*f, frozen), filled(6));
    host.upload(f->data(frozen), filled(0));  // the caller may write to what it got
  }
}

}  // namespace
}  // namespace sinter::runtime::simulated_test
