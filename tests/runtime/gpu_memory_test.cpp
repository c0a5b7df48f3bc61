// Whose memory a replay reads and writes, and where it may lie.
#include "tests/runtime/gpu_test.h"

namespace sinter::runtime::gpu_test {
namespace {

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
}  // namespace sinter::runtime::gpu_test
