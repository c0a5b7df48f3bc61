#include "runtime/ranges.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/executable.h"
#include "tests/runtime/fake_host.h"
#include "tests/runtime/plan_builder.h"

namespace sinter::runtime {
namespace {

using fake::at;
using fake::PlanBuilder;

/// Remembers what it is told; "end" for an end.
class Recorder final : public Ranges {
 public:
  using Ranges::push;
  void push(const std::string& text) override {
    events.push_back(text);
    ++open;
  }
  void pop() noexcept override {
    events.emplace_back("end");
    --open;
  }

  std::vector<std::string> events;
  int open = 0;
};

/// y = op(twice(x)) on the CPU.
struct RangesOfACall : testing::Test {
  PlanBuilder b{Backend::llvm};
  fake::Host host;
  EntryReport report;
  Recorder recorder;
  BufferId x, h, y;

  void SetUp() override {
    x = b.add(BufferKind::input, 1);
    h = b.add(BufferKind::output, 1);
    y = b.add(BufferKind::result, 1);
    KernelSource kernel;
    kernel.name = "twice";
    kernel.numel = 1;
    kernel.modules = {"fc1", "", "act", "fc1"};
    kernel.text = R"(
define void @twice(ptr %params, i64 %begin, i64 %end) {
  %in = load ptr, ptr %params
  %outp = getelementptr ptr, ptr %params, i64 1
  %out = load ptr, ptr %outp
  %v = load float, ptr %in
  %r = fadd float %v, %v
  store float %r, ptr %out
  ret void
}
)";
    b.step(Allocate{h});
    b.launch(b.add_kernel(kernel), {at(x), at(h)});
    b.step(RunCall{b.add_call("aten::op", {h}, {y})});
    b.plan.calls[0].module = "fc2";
    b.plan.outputs = {y};
    host.calls["aten::op"] = [this](fake::Frame& frame, const ExternCall&) { frame.allocate(y); };
  }

  void run(Ranges* ranges) {
    const auto executable = Executable::build(std::make_shared<Plan>(b.plan), host, {.ranges = ranges}, report);
    fake::Frame frame(b.plan, host);
    frame.allocate(x);
    *frame.as<float>(x) = 1;
    executable->run(frame);
  }
};

TEST_F(RangesOfACall, name_the_function_and_every_step_with_its_modules) {
  run(&recorder);
  EXPECT_EQ(recorder.events,
            (std::vector<std::string>{"test", "fc1, act: twice", "end", "fc2: aten::op", "end", "end"}));
}

TEST_F(RangesOfACall, are_closed_when_a_step_throws) {
  host.calls["aten::op"] = [](fake::Frame&, const ExternCall&) { throw std::runtime_error("refused"); };
  EXPECT_THROW(run(&recorder), std::runtime_error);
  EXPECT_EQ(recorder.open, 0);
  EXPECT_EQ(recorder.events.size(), 6U) << "the call, the launch and the step that threw, each with its end";
}

TEST_F(RangesOfACall, nobody_needs_to_be_told) {
  run(nullptr);
  EXPECT_TRUE(recorder.events.empty());
}

TEST(NvtxRanges, are_off_unless_asked_for) {
  if (std::getenv("SINTER_NVTX") != nullptr) GTEST_SKIP() << "SINTER_NVTX is set";
  EXPECT_EQ(nvtx_ranges(), nullptr);
}

}  // namespace
}  // namespace sinter::runtime
