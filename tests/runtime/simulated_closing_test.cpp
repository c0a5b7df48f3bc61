// Calls that run behind a graph, on a simulated device.
#include <stdexcept>

#include "runtime/closing_calls.h"
#include "tests/runtime/simulated_test.h"

namespace sinter::runtime::simulated_test {
namespace {

/// r = 2 x + 1, the last by a library's call whose result is large.
struct SimulatedClosing : Simulated {
  BufferId x = b.add(BufferKind::input, count);
  BufferId h = b.add(BufferKind::arena, least_closing_bytes / 4, 0, 64);
  BufferId r = b.add(BufferKind::result, least_closing_bytes / 4);

  SimulatedClosing() {
    define_call("aten::library", affine("library_plus_one", 1, 1));
    b.plan.arena_bytes = least_closing_bytes + 64;
    b.launch(b.add_kernel(affine("twice", 2, 0)), {at(x), at(h)});
    b.step(Bind{h});
    b.step(RunCall{b.add_call("aten::library", {h}, {r})});
    b.step(Release{h});
    b.plan.outputs = {r};
  }
  std::unique_ptr<fake::Frame> given(float value) { return frame_with(x, value); }
};

TEST_F(SimulatedClosing, calls_give_fresh_results_that_are_not_copied) {
  const auto executable = build();
  std::vector<std::unique_ptr<fake::Frame>> frames;  // kept: no address comes twice
  for (int call = 0; call < 4; ++call) {
    frames.push_back(given(static_cast<float>(call)));
    executable->run(*frames.back());
    EXPECT_FALSE(frames.back()->is_bound(h)) << "it is the graph's";
  }
  for (int call = 0; call < 4; ++call) {
    EXPECT_EQ(read(*frames[static_cast<size_t>(call)], r), filled(2.0F * static_cast<float>(call) + 1)) << call;
  }
  EXPECT_EQ(report.graphs, 1);
  EXPECT_EQ(report.notes,
            std::vector<std::string>{"aten::library runs behind the graph, where its result needs no copy"});
}

TEST_F(SimulatedClosing, calls_that_give_what_they_were_given_are_copied) {
  host.calls["aten::library"] = [this](fake::Frame& f, const ExternCall&) { f.set(r, f.get(h)); };
  const auto executable = build();
  const auto first = given(3), second = given(4);
  executable->run(*first);
  executable->run(*second);
  EXPECT_EQ(read(*first, r), filled(6));
  EXPECT_EQ(read(*second, r), filled(8));
}

TEST_F(SimulatedClosing, calls_may_throw_and_work_again) {
  const auto executable = build();
  executable->run(*given(1));
  const auto works = host.calls.at("aten::library");
  host.calls["aten::library"] = [](fake::Frame&, const ExternCall&) { throw std::runtime_error("out of memory"); };
  EXPECT_THROW(executable->run(*given(2)), std::runtime_error);
  host.calls["aten::library"] = works;
  const auto f = given(5);
  executable->run(*f);
  EXPECT_EQ(read(*f, r), filled(11));
  EXPECT_EQ(report.graphs, 1);
}

}  // namespace
}  // namespace sinter::runtime::simulated_test
