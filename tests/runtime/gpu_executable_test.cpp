#include <stdexcept>
#include <thread>

#include "tests/runtime/gpu_test.h"

namespace sinter::runtime::gpu_test {
namespace {

/// y = 2 x + 1 through the arena, by two kernels.
struct GpuKernels : Gpu {
  BufferId x = b.add(BufferKind::input, count);
  BufferId h = b.add(BufferKind::arena, count, 0, 512);
  BufferId y = b.add(BufferKind::output, count);

  void SetUp() override {
    Gpu::SetUp();
    b.plan.arena_bytes = 8192;
    b.launch(b.add_kernel(affine("twice", 2, 0)), {at(x), at(h)});
    b.step(Allocate{y});
    b.launch(b.add_kernel(affine("plus_one", 1, 1)), {at(h), at(y)});
    b.plan.outputs = {y};
  }
};

TEST_F(GpuKernels, launch_directly) {
  const auto executable = build(false);
  const auto f = frame(x, 3);
  executable->run(*f);
  EXPECT_EQ(read(*f, y), filled(7));
  EXPECT_GT(report.kernels.at(0).registers, 0);
  EXPECT_EQ(report.kernels.at(0).spill_bytes, 0);
  EXPECT_EQ(report.graphs, 0);
}

TEST_F(GpuKernels, replay_with_inputs_and_outputs_at_new_addresses) {
  const auto executable = build(true);
  std::vector<std::unique_ptr<fake::Frame>> frames;  // kept: no address comes twice
  for (int call = 0; call < 4; ++call) {
    frames.push_back(frame(x, static_cast<float>(call)));
    executable->run(*frames.back());
  }
  for (int call = 0; call < 4; ++call) {
    EXPECT_EQ(read(*frames[static_cast<size_t>(call)], y), filled(2.0F * static_cast<float>(call) + 1)) << call;
  }
  EXPECT_EQ(report.graphs, 1);
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(report.phases.back().name, "record");
}

TEST_F(GpuKernels, replay_with_a_new_value_at_the_old_address) {
  const auto executable = build(true);
  const auto f = frame(x, 1);
  executable->run(*f);
  EXPECT_EQ(read(*f, y), filled(3));
  host->upload(f->data(x), filled(5));
  executable->run(*f);
  EXPECT_EQ(read(*f, y), filled(11));
}

TEST_F(GpuKernels, replay_on_the_stream_that_is_current) {
  const auto executable = build(true);
  std::vector<std::unique_ptr<fake::Frame>> frames;
  for (int call = 0; call < 20; ++call) {
    fake::GpuHost::use(host->make_stream());
    frames.push_back(frame(x, static_cast<float>(call)));
    executable->run(*frames.back());
  }
  driver->check(driver->stream_synchronize(static_cast<CUstream>(host->current_stream({}))), "synchronize");
  for (int call = 0; call < 20; ++call) {
    EXPECT_EQ(read(*frames[static_cast<size_t>(call)], y), filled(2.0F * static_cast<float>(call) + 1)) << call;
  }
}

TEST_F(GpuKernels, replay_for_several_threads_in_turn) {
  const auto executable = build(true);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const ContextScope in_thread(*driver, driver->context_of(0));
      fake::GpuHost::use(host->make_stream());
      for (int call = 0; call < 50; ++call) {
        const auto value = static_cast<float>(100 * t + call);
        const auto f = frame(x, value);
        executable->run(*f);
        ASSERT_EQ(read(*f, y), filled(2 * value + 1));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(GpuKernels, launch_directly_into_a_recording_of_the_caller) {
  const auto executable = build(true);
  const auto f = frame(x, 2);
  const auto stream = static_cast<CUstream>(host->current_stream({}));
  driver->check(driver->begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "begin");
  executable->run(*f);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  driver->check(driver->end_capture(stream, &graph), "end");
  driver->check(driver->graph_instantiate(&exec, graph, 0), "instantiate");
  driver->check(driver->graph_launch(exec, stream), "launch");
  EXPECT_EQ(read(*f, y), filled(5));
  driver->graph_exec_destroy(exec);
  driver->graph_destroy(graph);
}

TEST_F(GpuKernels, give_the_pool_back_with_the_executable) {
  auto executable = build(true);
  const auto f = frame(x, 2);
  executable->run(*f);
  EXPECT_EQ(host->open_pools.size(), 1U);
  executable.reset();
  EXPECT_TRUE(host->open_pools.empty());
  EXPECT_EQ(read(*f, y), filled(5));
}

/// r = copy of x by an extern call; y = 3 r in place; both x and y cross the border by copies.
struct GpuCalls : Gpu {
  BufferId x = b.add(BufferKind::input, count);
  BufferId r = b.add(BufferKind::result, count);
  BufferId y = b.add(BufferKind::in_place, count, 0, 0, r);
  std::string op = "copy";

  void plan() {
    b.step(RunCall{b.add_call(op, {x}, {r})});
    b.step(Bind{y});
    b.step(Release{r});
    b.launch(b.add_kernel(affine("triple", 3, 0)), {at(r), at(y)});
    b.plan.outputs = {y};
  }
  void expect_right_results(bool graphs) {
    const auto executable = build(graphs);
    std::vector<std::unique_ptr<fake::Frame>> frames;
    for (int call = 0; call < 3; ++call) {
      frames.push_back(frame(x, static_cast<float>(call)));
      executable->run(*frames.back());
    }
    for (int call = 0; call < 3; ++call) {
      EXPECT_EQ(read(*frames[static_cast<size_t>(call)], y), filled(3.0F * static_cast<float>(call))) << call;
    }
  }
};

TEST_F(GpuCalls, run_directly) {
  plan();
  expect_right_results(false);
}

TEST_F(GpuCalls, replay_with_copied_inputs_and_fresh_outputs) {
  plan();
  expect_right_results(true);
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(GpuCalls, launch_directly_when_one_synchronises) {
  op = "synchronise";
  plan();
  host->calls[op] = [this](fake::Frame& f, const ExternCall& call) {
    host->copy(f, call);
    const auto stream = static_cast<CUstream>(host->current_stream({}));
    driver->check(driver->stream_synchronize(stream), "cuStreamSynchronize");
  };
  expect_right_results(true);
  EXPECT_EQ(report.graphs, 0);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_TRUE(
      report.notes[0].starts_with("launched directly: synchronise cannot be recorded: cuda: cuStreamSynchronize"))
      << report.notes[0];
  EXPECT_TRUE(host->open_pools.empty());
}

TEST_F(GpuCalls, launch_directly_when_one_spoils_the_recording_in_silence) {
  op = "spoil";
  plan();
  host->calls[op] = [this](fake::Frame& f, const ExternCall& call) {
    host->copy(f, call);
    (void)driver->stream_synchronize(static_cast<CUstream>(host->current_stream({})));
  };
  expect_right_results(true);
  EXPECT_EQ(report.notes, std::vector<std::string>{
                              "launched directly: spoil cannot be recorded: cuda: the recording was invalidated"});
}

TEST_F(GpuCalls, tell_the_generators_of_recording_and_replays) {
  plan();
  b.plan.calls[0].random = true;
  expect_right_results(true);
  EXPECT_EQ(report.graphs, 1);
  ASSERT_GE(host->told.size(), 4U);
  EXPECT_EQ(std::vector<std::string>(host->told.begin(), host->told.begin() + 3),
            (std::vector<std::string>{"rewind", "begin", "end"}));
  EXPECT_EQ(std::count(host->told.begin() + 3, host->told.end(), "replay"),
            static_cast<int64_t>(host->told.size()) - 3);
}

TEST_F(GpuCalls, let_their_own_exceptions_through_on_every_call) {
  op = "refuse";
  plan();
  host->calls[op] = [](fake::Frame&, const ExternCall&) { throw std::domain_error("no"); };
  const auto executable = build(true);
  for (int call = 0; call < 2; ++call) {
    const auto f = frame(x, 1);
    EXPECT_THROW(executable->run(*f), std::domain_error);
  }
  EXPECT_TRUE(host->open_pools.empty());
}

}  // namespace
}  // namespace sinter::runtime::gpu_test
