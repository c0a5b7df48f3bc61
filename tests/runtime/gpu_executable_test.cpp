#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "runtime/executable.h"
#include "tests/runtime/gpu_host.h"
#include "tests/runtime/plan_builder.h"

namespace sinter::runtime {
namespace {

using fake::at;
using fake::PlanBuilder;
using Values = std::vector<float>;

constexpr int64_t count = 1000;

/// out[i] = in[i] * factor + addend; the addend is a parameter where `scalar` is set.
KernelSource affine(const std::string& name, int factor, int addend, bool scalar = false) {
  KernelSource source;
  source.name = name;
  source.numel = count;
  source.grid = {8, 1, 1};
  source.block = {128, 1, 1};
  source.text = fmt::format(
      "extern \"C\" __global__ void {}(const float* in, float* out{}) {{\n"
      "  const int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (i < {}) out[i] = in[i] * {} + {};\n}}\n",
      name, scalar ? ", double c" : "", count, factor, scalar ? "(float)c" : std::to_string(addend));
  return source;
}

/// Keeps a stream busy for about half a second, then copies `in` to `out`. What is to go wrong meanwhile goes wrong.
KernelSource slow_copy() {
  KernelSource source;
  source.name = "slow_copy";
  source.numel = count;
  source.grid = {8, 1, 1};
  source.block = {128, 1, 1};
  source.text = fmt::format(
      "extern \"C\" __global__ void slow_copy(const float* in, float* out) {{\n"
      "  const long long start = clock64();\n"
      "  while (clock64() - start < 1000000000ll) {{}}\n"
      "  const int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (i < {}) out[i] = in[i];\n}}\n",
      count);
  return source;
}

/// out[i] = 2 in[i], four elements at a time from addresses that are multiples of 16.
KernelSource twice_by_vectors() {
  KernelSource source;
  source.name = "twice_by_vectors";
  source.numel = count;
  source.grid = {2, 1, 1};
  source.block = {128, 1, 1};
  source.params = {{16, false}, {16, true}};
  source.text = fmt::format(
      "struct alignas(16) four {{ float v[4]; }};\n"
      "extern \"C\" __global__ void twice_by_vectors(const float* in, float* out) {{\n"
      "  const int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (4 * i >= {}) return;\n"
      "  four x = reinterpret_cast<const four*>(in)[i];\n"
      "  for (int k = 0; k < 4; ++k) x.v[k] *= 2;\n"
      "  reinterpret_cast<four*>(out)[i] = x;\n}}\n",
      count);
  return source;
}

Values filled(float value) { return Values(static_cast<size_t>(count), value); }

struct Gpu : testing::Test {
  void SetUp() override {
    driver = Driver::find();
    if (driver == nullptr) GTEST_SKIP() << "needs a GPU";
    scope = std::make_unique<ContextScope>(*driver, driver->context_of(0));
    host = std::make_unique<fake::GpuHost>(*driver);
    host->calls["copy"] = [this](fake::Frame& f, const ExternCall& call) { host->copy(f, call); };
  }

  std::unique_ptr<Executable> build(bool graphs) {
    return Executable::build(std::make_shared<Plan>(b.plan), *host, {.graphs = graphs}, report);
  }
  std::unique_ptr<fake::Frame> frame(BufferId input, float value) const {
    auto f = std::make_unique<fake::Frame>(b.plan, *host);
    f->allocate(input);
    host->upload(f->data(input), filled(value));
    return f;
  }
  Values read(const fake::Frame& f, BufferId buffer, int64_t n = count) const {
    return host->download(f.data(buffer), n);
  }

  const Driver* driver = nullptr;
  std::unique_ptr<ContextScope> scope;
  std::unique_ptr<fake::GpuHost> host;
  PlanBuilder b{Backend::cuda};
  EntryReport report;
};

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
  EXPECT_EQ(report.notes, std::vector<std::string>{"launched directly: synchronise cannot be recorded"});
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
  EXPECT_EQ(report.notes, std::vector<std::string>{"launched directly: spoil cannot be recorded"});
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

TEST_F(Gpu, replays_read_host_scalars_every_time) {
  const BufferId x = b.add(BufferKind::input, count, 0);
  const BufferId s = b.add_scalar(BufferKind::input, ir::DType::f32, 1);
  const BufferId y = b.add(BufferKind::output, count);
  b.step(Allocate{y});
  b.launch(b.add_kernel(affine("plus_scalar", 1, 0, true)), {at(x), at(y), fake::f64(s)});
  b.plan.outputs = {y};
  const auto executable = build(true);
  for (const float value : {0.5F, -3.0F, 7.0F}) {
    const auto f = frame(x, 1);
    f->allocate(s);
    *f->as<float>(s) = value;
    executable->run(*f);
    EXPECT_EQ(read(*f, y), filled(1 + value));
  }
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(Gpu, an_output_that_a_call_reads_is_copied_out) {
  const BufferId x = b.add(BufferKind::input, count);
  const BufferId h = b.add(BufferKind::output, count);
  const BufferId r = b.add(BufferKind::result, count);
  b.step(Allocate{h});
  b.launch(b.add_kernel(affine("twice", 2, 0)), {at(x), at(h)});
  b.step(RunCall{b.add_call("copy", {h}, {r})});
  b.plan.outputs = {h, r};
  const auto executable = build(true);
  std::vector<std::unique_ptr<fake::Frame>> frames;
  for (int call = 0; call < 3; ++call) {
    frames.push_back(frame(x, static_cast<float>(call)));
    executable->run(*frames.back());
  }
  for (int call = 0; call < 3; ++call) {
    const auto& f = *frames[static_cast<size_t>(call)];
    EXPECT_EQ(read(f, h), filled(2.0F * static_cast<float>(call)));
    EXPECT_EQ(read(f, r), filled(2.0F * static_cast<float>(call)));
  }
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(Gpu, views_of_inputs_and_of_fresh_outputs_are_the_callers_own) {
  const BufferId x = b.add(BufferKind::input, count);
  const BufferId y = b.add(BufferKind::output, count);
  const BufferId tail_of_x = b.add(BufferKind::view, 10, 0, count - 10, x);
  const BufferId tail_of_y = b.add(BufferKind::view, 10, 0, count - 10, y);
  b.step(Allocate{y});
  b.launch(b.add_kernel(affine("twice", 2, 0)), {at(x), at(y)});
  b.step(Bind{tail_of_x});
  b.step(Bind{tail_of_y});
  b.plan.outputs = {tail_of_x, tail_of_y};
  const auto executable = build(true);
  for (const float value : {1.0F, 4.0F}) {
    const auto f = frame(x, value);
    executable->run(*f);
    EXPECT_EQ(f->as<float>(tail_of_x), f->as<float>(x) + count - 10);
    EXPECT_EQ(read(*f, tail_of_y, 10), Values(10, 2 * value));
  }
  EXPECT_EQ(report.graphs, 1);
}

TEST_F(Gpu, frozen_buffers_are_computed_once_and_read_by_replays) {
  const BufferId w = b.add(BufferKind::state, count);
  const BufferId frozen = b.add(BufferKind::frozen, count);
  const BufferId y = b.add(BufferKind::output, count);
  const uint32_t twice = b.add_kernel(affine("twice", 2, 0));
  b.plan.once = {Allocate{frozen}, Launch{twice, {at(w), at(frozen)}}};
  b.step(Allocate{y});
  b.launch(twice, {at(frozen), at(y)});
  b.plan.outputs = {y, frozen};
  const auto executable = build(true);
  executable->prepare(*frame(w, 3));
  for (int call = 0; call < 2; ++call) {
    const auto f = frame(w, -1);
    executable->run(*f);
    EXPECT_EQ(read(*f, y), filled(12));
    EXPECT_EQ(read(*f, frozen), filled(6));
    host->upload(f->data(frozen), filled(0));  // the caller may write to what it got
  }
}

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

/// A copy at an address that is `shift` bytes beyond a multiple of 512.
void copy_shifted(const Driver& driver, fake::GpuHost& host, fake::Frame& f, const ExternCall& call, size_t shift) {
  const BufferId from{call.args.at(0).value()->index};
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  fake::Tensor to = host.allocate_device(static_cast<int64_t>(bytes + shift));
  to.data += shift;
  driver.check(
      driver.copy_on_device(reinterpret_cast<CUdeviceptr>(to.data), reinterpret_cast<CUdeviceptr>(f.data(from)), bytes,
                            static_cast<CUstream>(host.current_stream({}))),
      "cuMemcpyDtoDAsync");
  f.set(call.results.at(0), to);
}

/// A library may give another alignment on every call. Where the address is too little aligned, the GPU refuses the
/// access and the context is lost.
TEST_F(Gpu, results_of_calls_that_are_less_aligned_than_a_kernel_needs_are_copied) {
  const BufferId x = b.add(BufferKind::input, count);
  const BufferId r = b.add(BufferKind::result, count);
  const BufferId y = b.add(BufferKind::in_place, count, 0, 0, r);
  b.step(RunCall{b.add_call("shift", {x}, {r})});
  b.launch(b.add_kernel(twice_by_vectors()), {at(r), at(y)});
  b.step(Bind{y});
  b.plan.outputs = {y};
  size_t shift = 0;
  host->calls["shift"] = [&](fake::Frame& f, const ExternCall& call) { copy_shifted(*driver, *host, f, call, shift); };
  const auto executable = build(false);
  for (const size_t next : {size_t{4}, size_t{0}, size_t{8}, size_t{12}}) {
    shift = next;
    const auto f = frame(x, static_cast<float>(next + 1));
    executable->run(*f);
    EXPECT_EQ(read(*f, y), filled(2.0F * static_cast<float>(next + 1))) << shift;
  }
}

TEST_F(Gpu, inputs_that_are_less_aligned_than_a_kernel_needs_are_not_given_to_the_graph) {
  const BufferId x = b.add(BufferKind::input, count);
  const BufferId y = b.add(BufferKind::output, count);
  b.step(Allocate{y});
  b.launch(b.add_kernel(twice_by_vectors()), {at(x), at(y)});
  b.plan.outputs = {y};
  const auto executable = build(true);
  for (const size_t shift : {size_t{4}, size_t{0}, size_t{4}, size_t{8}}) {
    fake::Frame f(b.plan, *host);
    fake::Tensor input = host->allocate_device(count * static_cast<int64_t>(sizeof(float)) + 16);
    input.data += shift;
    host->upload(input.data, filled(static_cast<float>(shift)));
    f.set(x, input);
    executable->run(f);
    EXPECT_EQ(read(f, y), filled(2.0F * static_cast<float>(shift))) << shift;
  }
  EXPECT_EQ(report.graphs, 1) << "recorded by the call whose input is aligned";
  EXPECT_TRUE(report.notes.empty());
}

}  // namespace
}  // namespace sinter::runtime
