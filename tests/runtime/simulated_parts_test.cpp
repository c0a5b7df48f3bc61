// Recorded runs that start before all of their inputs are there, on a simulated device.
#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/graph_pool.h"
#include "tests/runtime/simulated_test.h"

namespace sinter::runtime::simulated_test {
namespace {

constexpr uint32_t layers = 64;

/// y = x + the sum of as many weights as there are layers, one kernel each; weight i comes at step i.
struct SimulatedParts : Simulated {
  BufferId x = b.add(BufferKind::input, count, 0);
  std::vector<BufferId> weights, hidden;
  BufferId y;
  Arrivals arrivals{.inputs = {0}, .calls = {}, .end = layers};

  SimulatedParts() {
    const uint32_t sum = b.add_kernel(kernel("sum", 3, [](const simulated::Launched& launched) {
      for (int64_t i = 0; i < count; ++i) {
        launched.pointer<float>(2)[i] = launched.pointer<const float>(0)[i] + launched.pointer<const float>(1)[i];
      }
    }));
    b.plan.arena_bytes = 512 * layers;
    BufferId last = x;
    for (uint32_t i = 0; i < layers; ++i) {
      weights.push_back(b.add(BufferKind::input, count, i + 1));
      arrivals.inputs.push_back(i);
      const bool ends = i + 1 == layers;
      const BufferId next =
          ends ? b.add(BufferKind::output, count) : b.add(BufferKind::arena, count, 0, static_cast<int64_t>(512) * i);
      if (ends) b.step(Allocate{next});
      b.launch(sum, {at(last), at(weights.back()), at(next)});
      last = next;
    }
    y = last;
    b.plan.outputs = {y};
  }

  [[nodiscard]] std::unique_ptr<Executable> build_in_parts(const std::shared_ptr<GraphPools>& pools = nullptr) {
    return build({.graphs = true, .steady_inputs = true, .pools = pools, .arrivals = arrivals});
  }
  /// Binds what arrives in (`after`, `until`].
  void bind(fake::Frame& f, float value, int64_t after, int64_t until) {
    for (uint32_t i = 0; i <= layers; ++i) {
      const auto arrival = static_cast<int64_t>(arrivals.inputs[i]);
      if (arrival <= after || arrival > until) continue;
      f.set(i == 0 ? x : weights[i - 1], tensor(i == 0 ? value : 1));
    }
  }
  [[nodiscard]] std::unique_ptr<fake::Frame> all(float value) {
    auto f = frame();
    bind(*f, value, -1, layers);
    return f;
  }
};

TEST_F(SimulatedParts, run_as_a_whole_where_nobody_starts_them) {
  const auto executable = build_in_parts();
  for (const float value : {1.0F, 2.0F, 3.0F}) {
    const auto f = all(value);
    executable->run(*f);
    EXPECT_EQ(read(*f, y), filled(value + layers));
  }
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(SimulatedParts, start_with_what_has_arrived) {
  const auto executable = build_in_parts();
  EXPECT_FALSE(executable->due(0)) << "nothing is recorded yet";
  executable->run(*all(1));
  ASSERT_TRUE(executable->due(0));
  std::vector<std::unique_ptr<fake::Frame>> frames;  // kept: no address comes twice
  for (const float value : {5.0F, 7.0F}) {
    frames.push_back(frame());
    fake::Frame& f = *frames.back();
    int64_t arrived = -1;
    size_t started = 0;
    for (; const auto due = executable->due(started); ++started) {
      bind(f, value, arrived, *due);
      arrived = *due;
      EXPECT_LT(*due, layers);
      const int64_t before = simulated::counts().graph_launches;
      ASSERT_TRUE(executable->start(started, f));
      EXPECT_EQ(simulated::counts().graph_launches, before + 1);
    }
    EXPECT_GE(started, 2U);
    bind(f, value, arrived, layers);
    executable->run(f, started);
  }
  EXPECT_EQ(read(*frames[0], y), filled(5.0F + layers));
  EXPECT_EQ(read(*frames[1], y), filled(7.0F + layers));
}

TEST_F(SimulatedParts, of_a_call_that_has_started_are_nobody_elses) {
  const auto executable = build_in_parts();
  executable->run(*all(1));
  const auto first = all(5);
  ASSERT_TRUE(executable->start(0, *first));
  const auto second = all(9);
  EXPECT_FALSE(executable->start(0, *second));
  const simulated::Counts before = simulated::counts();
  executable->run(*second);
  EXPECT_EQ(simulated::counts().graph_launches, before.graph_launches) << "launched directly";
  EXPECT_EQ(read(*second, y), filled(9.0F + layers));
  executable->run(*first, 1);
  EXPECT_EQ(read(*first, y), filled(5.0F + layers));
}

TEST_F(SimulatedParts, run_once_more_where_another_graph_has_worked_in_the_same_memory) {
  const auto pools = std::make_shared<GraphPools>();
  auto one = build_in_parts(pools);
  auto other = build_in_parts(pools);
  one->run(*all(1));
  other->run(*all(1));
  ASSERT_EQ(host.open_pools.size(), 2U);
  EXPECT_EQ(host.open_pools.count(*host.open_pools.begin()), 2U) << "one pool, two recordings";
  const auto first = all(5);
  ASSERT_TRUE(one->start(0, *first));
  const auto second = all(9);
  other->run(*second);
  one->run(*first, 1);
  EXPECT_EQ(read(*first, y), filled(5.0F + layers));
  EXPECT_EQ(read(*second, y), filled(9.0F + layers));
  one.reset();
  EXPECT_EQ(host.open_pools.size(), 1U);
  other->run(*all(3));
  other.reset();
  EXPECT_TRUE(host.open_pools.empty());
}

TEST_F(SimulatedParts, of_graphs_in_memory_that_is_too_small_for_others_are_recorded_anew) {
  const auto pools = std::make_shared<GraphPools>();
  const auto one = build_in_parts(pools);
  b.plan.arena_bytes = int64_t{30} << 20;
  const auto larger = build_in_parts(pools);
  b.plan.arena_bytes = int64_t{60} << 20;
  const auto largest = build_in_parts(pools);
  const auto run = [&](Executable& executable, float value) {
    const auto f = all(value);
    executable.run(*f);
    EXPECT_EQ(read(*f, y), filled(value + layers));
  };
  run(*one, 1);
  run(*larger, 2);
  EXPECT_EQ(host.open_pools.size(), 1U) << "the first graph went with its memory";
  EXPECT_FALSE(one->due(0));
  run(*one, 3);
  EXPECT_EQ(host.open_pools.count(*host.open_pools.begin()), 2U) << "both work in one pool";

  const auto begun = all(5);
  ASSERT_TRUE(one->start(0, *begun));
  run(*largest, 6);
  EXPECT_EQ(host.open_pools.size(), 2U) << "a graph in use stays";
  one->run(*begun, 1);
  EXPECT_EQ(read(*begun, y), filled(5.0F + layers));
  EXPECT_EQ(host.open_pools.count(*host.open_pools.begin()), 2U);
  run(*larger, 7);
  EXPECT_EQ(host.open_pools.count(*host.open_pools.begin()), 3U);
}

/// Every executable's memory is larger than the one's before, so that recording one makes the others' old.
TEST_F(SimulatedParts, of_several_graphs_and_threads_share_memory) {
  const auto pools = std::make_shared<GraphPools>();
  std::mutex report_mutex;
  std::vector<std::unique_ptr<Executable>> executables;
  for (const int64_t mebibytes : {1, 21, 22}) {
    b.plan.arena_bytes = mebibytes << 20;
    executables.push_back(build(
        {.graphs = true, .steady_inputs = true, .report_mutex = &report_mutex, .pools = pools, .arrivals = arrivals}));
  }
  std::vector<std::jthread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const ContextScope in_thread(driver, driver.context_of(0));
      fake::GpuHost::use(host.make_stream());
      for (uint32_t call = 0; call < 40; ++call) {
        Executable& executable = *executables[std::min<uint32_t>(call / 8, 2) * (t + call) % 3];
        const auto value = static_cast<float>(100 * t + call);
        const auto f = all(value);
        const size_t started = executable.start(0, *f) ? 1 : 0;
        executable.run(*f, started);
        ASSERT_EQ(read(*f, y), filled(value + layers));
      }
    });
  }
  threads.clear();
  executables.clear();
  EXPECT_TRUE(host.open_pools.empty());
}

TEST_F(SimulatedParts, that_are_dropped_leave_the_graph_to_others) {
  const auto executable = build_in_parts();
  executable->run(*all(1));
  ASSERT_TRUE(executable->start(0, *all(5)));
  executable->drop();
  const auto f = all(6);
  ASSERT_TRUE(executable->start(0, *f));
  executable->run(*f, 1);
  EXPECT_EQ(read(*f, y), filled(6.0F + layers));
}

TEST_F(SimulatedParts, that_cannot_be_started_leave_the_graph_to_others) {
  const auto executable = build_in_parts();
  executable->run(*all(1));
  const auto empty = frame();
  EXPECT_THROW((void)executable->start(0, *empty), std::bad_optional_access);
  const auto f = all(6);
  ASSERT_TRUE(executable->start(0, *f));
  executable->run(*f, 1);
  EXPECT_EQ(read(*f, y), filled(6.0F + layers));
}

TEST_F(SimulatedParts, do_not_exist_where_a_run_writes) {
  b.plan.written = {x};
  const auto executable = build_in_parts();
  executable->run(*all(1));
  EXPECT_FALSE(executable->due(0));
}

TEST_F(SimulatedParts, wait_for_a_call_that_may_refuse_its_data) {
  b.plan.calls.push_back({});
  const Program program = flatten(b.plan, b.plan.steps);
  const size_t parts = cut_in_parts(b.plan, program, arrivals).size();
  EXPECT_GE(parts, 3U);
  Program with_call = program;
  with_call.instructions.insert(with_call.instructions.begin(), {Program::Instruction::Kind::call, 0, 0});
  arrivals.calls = {0};
  EXPECT_EQ(cut_in_parts(b.plan, with_call, arrivals).size(), parts);
  arrivals.calls = {layers};
  EXPECT_EQ(cut_in_parts(b.plan, with_call, arrivals).size(), 1U);
}

}  // namespace
}  // namespace sinter::runtime::simulated_test
