#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <thread>

#include "runtime/executable.h"
#include "tests/runtime/fake_host.h"
#include "tests/runtime/plan_builder.h"

namespace sinter::runtime {
namespace {

using fake::at;
using fake::PlanBuilder;

/// LLVM IR of out[i] = in[i] * factor + addend; the addend is a parameter (a host scalar) where `scalar` is set.
KernelSource affine(const std::string& name, int64_t numel, int factor, int addend, bool scalar = false) {
  KernelSource source;
  source.name = name;
  source.numel = numel;
  source.ops = {"mul", "add"};
  const std::string extra = scalar ? R"(
  %pp = getelementptr ptr, ptr %params, i64 2
  %p = load ptr, ptr %pp
  %wide = load double, ptr %p
  %c = fptrunc double %wide to float
)"
                                   : fmt::format("  %c = fadd float 0.0, {}.0\n", addend);
  source.text = fmt::format(R"(
define void @{}(ptr %params, i64 %begin, i64 %end) {{
entry:
  %in = load ptr, ptr %params
  %outp = getelementptr ptr, ptr %params, i64 1
  %out = load ptr, ptr %outp
{}
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %in, i64 %i
  %v = load float, ptr %from
  %m = fmul float %v, {}.0
  %r = fadd float %m, %c
  %to = getelementptr float, ptr %out, i64 %i
  store float %r, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}
)",
                            name, extra, factor);
  return source;
}

struct CpuExecutable : testing::Test {
  PlanBuilder b{Backend::llvm};
  fake::Host host;
  EntryReport report;

  std::unique_ptr<Executable> build() { return Executable::build(std::make_shared<Plan>(b.plan), host, {}, report); }
  std::unique_ptr<fake::Frame> frame() const {
    return std::make_unique<fake::Frame>(b.plan, const_cast<fake::Host&>(host));
  }
  /// Binds a buffer to 0, 1, 2, ...
  void fill(fake::Frame& f, BufferId buffer) {
    f.allocate(buffer);
    std::iota(f.as<float>(buffer), f.as<float>(buffer) + b.plan.buffers[buffer.index].type.numel(), 0.0F);
  }
};

TEST_F(CpuExecutable, runs_a_chain_through_the_arena) {
  const BufferId x = b.add(BufferKind::input, 8);
  const BufferId h = b.add(BufferKind::arena, 8, 0, 64);
  const BufferId y = b.add(BufferKind::output, 8);
  b.plan.arena_bytes = 128;
  b.launch(b.add_kernel(affine("twice", 8, 2, 0)), {at(x), at(h)});
  b.step(Allocate{y});
  b.launch(b.add_kernel(affine("plus_one", 8, 1, 1)), {at(h), at(y)});
  b.plan.outputs = {y};
  const auto executable = build();
  const auto f = frame();
  fill(*f, x);
  executable->run(*f);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(f->as<float>(y)[i], 2.0F * static_cast<float>(i) + 1);
  EXPECT_EQ(host.live_tensors, 2) << "the arena was not given back";
}

TEST_F(CpuExecutable, reads_views_and_writes_in_place) {
  const BufferId x = b.add(BufferKind::input, 8);
  const BufferId tail = b.add(BufferKind::view, 4, 0, 4, x);
  const BufferId r = b.add(BufferKind::result, 4);
  const BufferId y = b.add(BufferKind::in_place, 4, 0, 0, r);
  host.calls["copy"] = [&](fake::Frame& f, const ExternCall& call) {
    f.allocate(call.results[0]);
    std::copy_n(f.as<float>(tail), 4, f.as<float>(call.results[0]));
  };
  b.step(Bind{tail});
  b.step(RunCall{b.add_call("copy", {tail}, {r})});
  b.step(Bind{y});
  b.step(Release{r});
  b.launch(b.add_kernel(affine("triple", 4, 3, 0)), {at(tail), at(y)});
  b.plan.outputs = {y};
  const auto executable = build();
  const auto f = frame();
  fill(*f, x);
  executable->run(*f);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f->as<float>(y)[i], 3.0F * static_cast<float>(i + 4));
  EXPECT_FALSE(f->is_bound(r));
}

TEST_F(CpuExecutable, reads_host_scalars_at_every_launch) {
  const BufferId x = b.add(BufferKind::input, 4);
  const BufferId s = b.add_scalar(BufferKind::input, ir::DType::f32, 1);
  const BufferId y = b.add(BufferKind::output, 4);
  b.step(Allocate{y});
  b.launch(b.add_kernel(affine("plus_scalar", 4, 1, 0, true)), {at(x), at(y), fake::f64(s)});
  b.plan.outputs = {y};
  const auto executable = build();
  for (const float value : {1.5F, -2.0F}) {
    const auto f = frame();
    fill(*f, x);
    f->allocate(s);
    *f->as<float>(s) = value;
    executable->run(*f);
    EXPECT_EQ(f->as<float>(y)[3], 3 + value);
  }
}

TEST_F(CpuExecutable, skips_kernels_over_no_points) {
  const BufferId x = b.add(BufferKind::input, 0);
  const BufferId y = b.add(BufferKind::output, 0);
  KernelSource broken;
  broken.name = "never_built";
  broken.text = "not LLVM IR";
  b.step(Allocate{y});
  b.launch(b.add_kernel(broken), {at(x), at(y)});
  b.plan.outputs = {y};
  const auto executable = build();
  const auto f = frame();
  fill(*f, x);
  executable->run(*f);
  EXPECT_TRUE(f->is_bound(y));
  EXPECT_TRUE(report.kernels.empty());
}

TEST_F(CpuExecutable, cuts_large_loops_at_multiples_of_the_granule) {
  constexpr int64_t numel = 100003;
  const BufferId x = b.add(BufferKind::input, numel);
  const BufferId y = b.add(BufferKind::output, numel);
  KernelSource source = affine("wide", numel, 2, 1);
  source.granule = 48;
  b.step(Allocate{y});
  b.launch(b.add_kernel(source), {at(x), at(y)});
  b.plan.outputs = {y};
  const auto executable = build();
  const auto f = frame();
  fill(*f, x);
  executable->run(*f);
  EXPECT_EQ(host.parallel_loops, 1);
  EXPECT_GT(host.ranges.size(), 1U);
  EXPECT_EQ(host.ranges.back().second, (numel + 47) / 48);
  for (const int64_t i : {int64_t{0}, int64_t{47}, int64_t{48}, numel - 1}) {
    EXPECT_EQ(f->as<float>(y)[i], 2.0F * static_cast<float>(i) + 1);
  }
}

TEST_F(CpuExecutable, weighs_rows_by_their_points) {
  constexpr int64_t rows = 64;
  const BufferId x = b.add(BufferKind::input, rows);
  const BufferId y = b.add(BufferKind::output, rows);
  KernelSource source = affine("rows", rows, 2, 1);
  source.row_points = 2000;
  source.granule = 3;
  b.step(Allocate{y});
  b.launch(b.add_kernel(source), {at(x), at(y)});
  b.plan.outputs = {y};
  const auto executable = build();
  const auto f = frame();
  fill(*f, x);
  executable->run(*f);
  EXPECT_EQ(host.parallel_loops, 1);
  EXPECT_GT(host.ranges.size(), 1U) << "64 rows are few, their points are not";
  for (int64_t i = 0; i < rows; ++i) EXPECT_EQ(f->as<float>(y)[i], 2.0F * static_cast<float>(i) + 1);
}

TEST_F(CpuExecutable, cuts_what_is_worth_a_thread) {
  constexpr int64_t numel = 20000;
  const BufferId x = b.add(BufferKind::input, numel);
  const BufferId y = b.add(BufferKind::output, numel);
  b.step(Allocate{y});
  for (const int64_t range : {numel, numel / 4}) {
    KernelSource source = affine("scaled", numel, 2, 1);
    source.range = range;
    b.launch(b.add_kernel(source), {at(x), at(y)});
  }
  b.plan.outputs = {y};
  const auto executable = build();
  const auto f = frame();
  fill(*f, x);
  executable->run(*f);
  EXPECT_EQ(host.parallel_loops, 1) << "the first one alone is done before another thread wakes up";
}

TEST_F(CpuExecutable, runs_small_loops_on_the_calling_thread) {
  const BufferId x = b.add(BufferKind::input, 16);
  const BufferId y = b.add(BufferKind::output, 16);
  b.step(Allocate{y});
  b.launch(b.add_kernel(affine("small", 16, 2, 0)), {at(x), at(y)});
  b.plan.outputs = {y};
  const auto executable = build();
  const auto f = frame();
  fill(*f, x);
  executable->run(*f);
  EXPECT_EQ(host.parallel_loops, 0);
}

TEST_F(CpuExecutable, computes_frozen_buffers_once_and_never_hands_them_out) {
  const BufferId w = b.add(BufferKind::state, 4);
  const BufferId frozen = b.add(BufferKind::frozen, 4);
  const BufferId x = b.add(BufferKind::input, 4);
  const BufferId y = b.add(BufferKind::output, 4);
  const uint32_t twice = b.add_kernel(affine("freeze_twice", 4, 2, 0));
  b.plan.once = {Allocate{frozen}, Launch{twice, {at(w), at(frozen)}}};
  b.step(Allocate{y});
  b.launch(twice, {at(frozen), at(y)});
  b.plan.outputs = {y, frozen};
  const auto executable = build();
  const auto first = frame();
  fill(*first, w);
  fill(*first, x);
  executable->prepare(*first);
  const auto second = frame();
  fill(*second, x);
  second->allocate(w);
  for (int call = 0; call < 2; ++call) {
    executable->run(*second);
    EXPECT_EQ(second->as<float>(y)[3], 12);
    EXPECT_EQ(second->as<float>(frozen)[3], 6);
    second->as<float>(frozen)[3] = -1;  // the caller may write to what it got
  }
}

TEST_F(CpuExecutable, lets_the_exception_of_a_call_through) {
  const BufferId x = b.add(BufferKind::input, 4);
  host.calls["refuse"] = [](fake::Frame&, const ExternCall&) { throw std::domain_error("no"); };
  b.step(RunCall{b.add_call("refuse", {x}, {})});
  const auto executable = build();
  auto f = frame();
  fill(*f, x);
  EXPECT_THROW(executable->run(*f), std::domain_error);
  f.reset();
  EXPECT_EQ(host.live_tensors, 0);
}

TEST_F(CpuExecutable, records_what_it_built_and_what_it_shared) {
  const BufferId x = b.add(BufferKind::input, 4);
  const BufferId y = b.add(BufferKind::output, 4);
  const uint32_t kernel = b.add_kernel(affine("recorded", 4, 5, 0));
  b.step(Allocate{y});
  b.launch(kernel, {at(x), at(y)});
  b.launch(kernel, {at(x), at(y)});
  const auto first = build();
  const auto second = build();
  ASSERT_EQ(report.kernels.size(), 2U);
  EXPECT_NE(report.kernels[0].origin, "shared");  // built, or on disk since an earlier run
  EXPECT_GT(report.kernels[0].build_seconds, 0);
  EXPECT_EQ(report.kernels[0].launches, 2);
  EXPECT_EQ(report.kernels[1].origin, "shared");
  EXPECT_EQ(report.kernels[1].build_seconds, 0);
  ASSERT_EQ(report.phases.size(), 2U);
  EXPECT_EQ(report.phases[0].name, "kernels");
  EXPECT_EQ(report.phases[1].name, "load");
}

TEST_F(CpuExecutable, reports_a_kernel_that_does_not_build_with_its_text_saved) {
  const BufferId x = b.add(BufferKind::input, 4);
  KernelSource broken = affine("broken", 4, 1, 0);
  broken.text = "define nonsense";
  b.launch(b.add_kernel(broken), {at(x), at(x)});
  try {
    (void)build();
    FAIL() << "it was built";
  } catch (const InternalError& error) {
    EXPECT_FALSE(error.artifact().empty());
  }
}

TEST_F(CpuExecutable, serves_many_threads_at_once) {
  const BufferId x = b.add(BufferKind::input, 64);
  const BufferId h = b.add(BufferKind::arena, 64);
  const BufferId y = b.add(BufferKind::output, 64);
  b.plan.arena_bytes = 256;
  b.launch(b.add_kernel(affine("threads_a", 64, 2, 0)), {at(x), at(h)});
  b.step(Allocate{y});
  b.launch(b.add_kernel(affine("threads_b", 64, 1, 1)), {at(h), at(y)});
  b.plan.outputs = {y};
  const auto executable = build();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int call = 0; call < 50; ++call) {
        const auto f = frame();
        f->allocate(x);
        std::fill_n(f->as<float>(x), 64, static_cast<float>(t));
        executable->run(*f);
        EXPECT_EQ(f->as<float>(y)[63], 2.0F * static_cast<float>(t) + 1);
      }
    });
  }
}

/// y = x + the low five bits of x's address and of y's: shows what a kernel was given.
KernelSource low_bits(int64_t numel) {
  KernelSource source;
  source.name = "low_bits";
  source.numel = numel;
  source.params = {{32, false}, {32, true}};
  source.text = R"(
define void @low_bits(ptr %params, i64 %begin, i64 %end) {
entry:
  %in = load ptr, ptr %params
  %outp = getelementptr ptr, ptr %params, i64 1
  %out = load ptr, ptr %outp
  %ia = ptrtoint ptr %in to i64
  %oa = ptrtoint ptr %out to i64
  %both = or i64 %ia, %oa
  %low = and i64 %both, 31
  %c = sitofp i64 %low to float
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %in, i64 %i
  %v = load float, ptr %from
  %r = fadd float %v, %c
  %to = getelementptr float, ptr %out, i64 %i
  store float %r, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
)";
  return source;
}

/// Extern calls that return an address as aligned as a kernel needs, and then less.
TEST_F(CpuExecutable, gives_a_kernel_copies_where_an_address_is_less_aligned_than_it_needs) {
  const BufferId x = b.add(BufferKind::input, 8);
  const BufferId r = b.add(BufferKind::result, 8);
  const BufferId y = b.add(BufferKind::in_place, 8, 0, 0, r);
  size_t shift = 0;
  host.calls["shift"] = [&](fake::Frame& f, const ExternCall& call) {
    fake::Tensor to = host.allocate_device(128);
    to.data += shift;
    std::copy_n(f.as<float>(x), 8, reinterpret_cast<float*>(to.data));
    f.set(call.results[0], to);
  };
  b.step(RunCall{b.add_call("shift", {x}, {r})});
  b.launch(b.add_kernel(low_bits(8)), {at(r), at(y)});
  b.step(Bind{y});
  b.plan.outputs = {y};
  const auto executable = build();
  for (const size_t next : {0, 4, 16, 0, 28}) {
    shift = next;
    const auto f = frame();
    fill(*f, x);
    executable->run(*f);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(f->data(y)) % 32, shift) << "the result stays where it is";
    for (int i = 0; i < 8; ++i) ASSERT_EQ(f->as<float>(y)[i], static_cast<float>(i)) << shift;
  }
  EXPECT_EQ(host.live_tensors, 0) << "a copy was not given back";
}

}  // namespace
}  // namespace sinter::runtime
