#include <thread>

#include "tests/runtime/gpu_test.h"

namespace sinter::runtime::gpu_test {
namespace {

/// What the executable kept was allocated on one stream and is read on another one, which is not done with it when the
/// executable goes.
TEST_F(Gpu, frozen_buffers_go_back_behind_every_stream_that_reads_them) {
  const BufferId w = b.add(BufferKind::state, count);
  const BufferId frozen = b.add(BufferKind::frozen, count);
  const BufferId y = b.add(BufferKind::output, count);
  b.plan.once = {Allocate{frozen}, Launch{b.add_kernel(affine("twice", 2, 0)), {at(w), at(frozen)}}};
  b.step(Allocate{y});
  b.launch(b.add_kernel(slow_copy()), {at(frozen), at(y)});
  b.plan.outputs = {y};
  const CUstream home = host->make_stream();
  const CUstream other = host->make_stream();
  for (const bool graphs : {false, true}) {
    fake::GpuHost::use(home);
    auto executable = build(graphs);
    executable->prepare(*frame(w, 3));
    fake::GpuHost::use(other);
    const auto f = std::make_unique<fake::Frame>(b.plan, *host);
    f->allocate(w);
    executable->run(*f);
    executable.reset();
    fake::GpuHost::use(home);
    std::vector<std::shared_ptr<void>> reused;
    for (int block = 0; block < 4; ++block) {
      reused.push_back(host->allocate_device(count * static_cast<int64_t>(sizeof(float))).storage);
      host->upload(reused.back().get(), filled(-1));
    }
    fake::GpuHost::use(other);
    EXPECT_EQ(read(*f, y), filled(6)) << (graphs ? "recorded" : "launched");
  }
}

/// y = copy of x by a graph that first waits: its input lies in memory of the graph's own, which the next call of the
/// graph writes too.
struct GpuStreams : Gpu {
  BufferId x = b.add(BufferKind::input, count);
  BufferId r = b.add(BufferKind::result, count);
  BufferId y = b.add(BufferKind::output, count);

  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped()) return;
    b.step(Allocate{y});
    b.launch(b.add_kernel(slow_copy()), {at(x), at(y)});
    b.step(RunCall{b.add_call("copy", {x}, {r})});
    b.plan.outputs = {y, r};
    executable = build(true);
    const auto first = frame(x, 0);
    executable->run(*first);
    ASSERT_EQ(read(*first, r), filled(0));
    ASSERT_EQ(report.graphs, 1);
  }
  void TearDown() override { executable.reset(); }

  std::unique_ptr<Executable> executable;
};

TEST_F(GpuStreams, of_equal_handles_in_two_threads_are_two_streams) {
  std::unique_ptr<fake::Frame> frames[2];
  const auto in_thread = [&](int thread, const auto& work) {
    std::jthread([&] {
      const ContextScope current(*driver, driver->context_of(0));
      fake::GpuHost::use(CU_STREAM_PER_THREAD);
      frames[thread] = frame(x, static_cast<float>(thread + 1));
      executable->run(*frames[thread]);
      work();
      EXPECT_EQ(read(*frames[thread], y), filled(static_cast<float>(thread + 1))) << thread;
      EXPECT_EQ(read(*frames[thread], r), filled(static_cast<float>(thread + 1))) << thread;
    }).join();
  };
  in_thread(0, [&] { in_thread(1, [] {}); });
}

TEST_F(GpuStreams, one_made_anew_is_another_one_even_where_its_handle_comes_again) {
  CUstream stream = nullptr;
  driver->check(driver->stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  fake::GpuHost::use(stream);
  const auto before = frame(x, 1);
  executable->run(*before);
  driver->check(driver->stream_destroy(stream), "cuStreamDestroy");
  driver->check(driver->stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  fake::GpuHost::use(stream);
  const auto after = frame(x, 2);
  executable->run(*after);
  EXPECT_EQ(read(*after, y), filled(2));
  EXPECT_EQ(read(*before, y), filled(1));
  EXPECT_EQ(read(*before, r), filled(1));
  fake::GpuHost::use(host->make_stream());
  driver->stream_destroy(stream);
}

}  // namespace
}  // namespace sinter::runtime::gpu_test
