// The parts of a profile on tables, without a program.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include "frontend/profile/device_work.h"
#include "frontend/profile/graph_kernels.h"
#include "frontend/profile/hints.h"
#include "frontend/profile/memory_log.h"
#include "frontend/profile/module_search.h"
#include "frontend/profile/module_times.h"
#include "frontend/profile/operator_sums.h"
#include "frontend/profile/segments.h"
#include "frontend/profile/step_places.h"

namespace sinter::test {
namespace {

using namespace frontend;  // NOLINT: the parts under test
using runtime::Activity;

TEST(MemberCalls, tell_the_class_of_a_function) {
  struct Row {
    const char* function;
    const char* class_name;
  };
  const Row rows[] = {
      {"at::Tensor a::Net::forward(at::Tensor const&)", "a::Net"},
      {"a::(anonymous namespace)::NetImpl::forward(at::Tensor const&) const", "a::(anonymous namespace)::NetImpl"},
      {"a::(anonymous namespace)::NetImpl::forward", "a::(anonymous namespace)::NetImpl"},
      {"at::Tensor torch::nn::SequentialImpl::forward<at::Tensor, at::Tensor const&>(at::Tensor const&)",
       "torch::nn::SequentialImpl"},
      {"torch::nn::AnyModuleHolder<a::NetImpl, at::Tensor const&>::forward(std::vector<int>&&)", "a::NetImpl"},
      {"a::Net::forward(int)::{lambda(int)#1}::operator()(int) const", "a::Net"},
      {"main", ""},
      {"", ""},
  };
  for (const Row& row : rows) EXPECT_EQ(class_of_function(row.function), row.class_name) << row.function;
}

/// "" of Net, "a" and "b" of Block, each with "act" of Act.
class ModuleSearch : public ::testing::Test {
 protected:
  ModuleSearch() : modules_({{"", net()}}) {}

  static std::shared_ptr<torch::nn::Module> net() {
    auto whole = std::make_shared<torch::nn::Module>("Net");
    for (const char* name : {"a", "b"}) {
      auto block = whole->register_module(name, std::make_shared<torch::nn::Module>("Block"));
      block->register_module("act", torch::nn::Linear(1, 1));
    }
    return whole;
  }
  ModuleIndex at(const std::string& path) { return modules_.intern(path); }
  static MemberCall call(const char* class_name, uintptr_t address) {
    return {class_name, reinterpret_cast<const void*>(address)};
  }

  ModuleTable modules_;
};

TEST_F(ModuleSearch, a_file_comes_before_a_parameter) {
  const SeenOperator seen[] = {{.owner = at("a"), .stated = at("b")}};
  EXPECT_EQ(find_modules(modules_, seen).front(), (FoundModule{at("b"), Attribution::stated}));
}

TEST_F(ModuleSearch, without_a_stack_it_is_the_module_around_both_neighbours) {
  const SeenOperator seen[] = {{}, {.owner = at("a.act")}, {}, {.owner = at("b.act")}, {}};
  const auto found = find_modules(modules_, seen);
  EXPECT_EQ(found[0].module, no_module) << "nothing before it";
  EXPECT_EQ(found[2], (FoundModule{at(""), Attribution::between}));
  EXPECT_EQ(found[4].module, no_module) << "nothing after it";
}

TEST_F(ModuleSearch, of_one_class_it_is_the_one_before_where_the_function_has_moved_on) {
  const MemberCall whole = call("Net", 10);
  const SeenOperator seen[] = {{.owner = at("a.act"), .calls = {call("torch::nn::LinearImpl", 50)}},
                               {.calls = {call("torch::nn::LinearImpl", 60)}},
                               {.owner = at("b.act"), .calls = {whole}}};
  EXPECT_EQ(find_modules(modules_, seen)[1], (FoundModule{at("a.act"), Attribution::stack}));
}

TEST_F(ModuleSearch, of_one_class_it_is_the_one_after_where_the_function_has_begun_again) {
  const SeenOperator seen[] = {{.owner = at("a.act"), .calls = {call("torch::nn::LinearImpl", 60)}},
                               {.calls = {call("torch::nn::LinearImpl", 50)}},
                               {.owner = at("b.act")}};
  EXPECT_EQ(find_modules(modules_, seen)[1], (FoundModule{at("b.act"), Attribution::stack}));
}

TEST_F(ModuleSearch, a_class_that_no_module_has_says_nothing) {
  const SeenOperator seen[] = {{.owner = at("a.act")}, {.calls = {call("Other", 1)}}, {.owner = at("a.act")}};
  EXPECT_EQ(find_modules(modules_, seen)[1], (FoundModule{at("a.act"), Attribution::between}));
}

TEST(ModuleTimes, blocks_that_are_built_alike_are_one_line) {
  std::vector<ProfiledModule> modules(1);
  for (int i = 0; i < 6; ++i) {
    const std::string path = "block" + std::to_string(i);
    modules.push_back({.path = path, .kind = "Block", .parent = 0, .forward = 1});
    modules.push_back({.path = path + ".act", .kind = "GELU", .parent = std::ssize(modules) - 1, .backward = 2});
  }
  const auto lines = folded(modules);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1].name, "block0..5");
  EXPECT_EQ(lines[1].repeats, 6);
  EXPECT_EQ(lines[1].total(), 18);
  EXPECT_EQ(lines[2].name, "act");
  EXPECT_EQ(lines[0].total(), 18);
}

TEST(StepPlaces, follow_the_operators_of_a_step_and_pass_over_those_that_do_not_come) {
  ModeProfile profile;
  profile.steps = 1;
  profile.modules = {{.path = "", .kind = ""}, {.path = "a", .kind = "", .parent = 0}};
  const auto add = [&](const char* op, int64_t module, Phase phase, const char* line) {
    ProfiledOperator& each = profile.operators.emplace_back();
    each.op = op;
    each.module = module;
    each.phase = phase;
    each.line = line;
  };
  add("aten::mul", 1, Phase::forward, "net.cpp:1");
  add("aten::add", 1, Phase::backward, "net.cpp:2");
  StepPlaces places(profile);
  const StatedPlace* place = places.next("aten::add");
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(place->module, "a");
  EXPECT_EQ(read_planned(place->line).phase, Phase::backward);
  EXPECT_EQ(read_planned(place->line).line, "net.cpp:2");
  EXPECT_EQ(places.next("aten::mul"), nullptr) << "passed over";
  places.begin_step();
  EXPECT_NE(places.next("aten::mul"), nullptr);
  EXPECT_EQ(read_planned("net.cpp:3").phase, std::nullopt);
  EXPECT_TRUE(read_planned(place->line).in_module);
  ProfiledOperator outside = profile.operators.front();
  outside.module = -1;
  EXPECT_FALSE(read_planned(planned_place(profile, outside).line).in_module);
  EXPECT_EQ(read_planned(planned_place(profile, outside).line).line, "net.cpp:1");
  EXPECT_FALSE(read_planned(planned_place(profile, outside).line).of_loss);
  ProfiledOperator of_loss = outside;
  of_loss.how = Attribution::loss;
  const PlannedLine lost = read_planned(planned_place(profile, of_loss).line);
  EXPECT_TRUE(lost.of_loss && !lost.in_module);
  EXPECT_EQ(lost.line, "net.cpp:1");
}

/// One operator of which a trace tells.
ModeProfile one_operator(const char* op, const char* autograd) {
  ModeProfile profile;
  profile.steps = 1;
  profile.modules.push_back({.path = "encoder.patch_dropout", .kind = ""});
  ProfiledOperator& each = profile.operators.emplace_back();
  each.op = op;
  each.autograd = autograd;
  each.phase = Phase::backward;
  each.module = 0;
  each.line = "vit.cpp:80";
  return profile;
}

Activity activity(Activity::Kind kind, const char* name, uint64_t start, uint64_t end, std::optional<uint64_t> caller) {
  return {.kind = kind, .name = name, .start = start, .end = end, .stream = 7, .launch = 1, .caller = caller};
}

TEST(DeviceWork, kernels_belong_to_the_operator_that_launched_them) {
  ModeProfile profile = one_operator("aten::gather", "");
  add_device_work({.activities = {activity(Activity::Kind::kernel, "_Z3addv", 2000, 5000, 0),
                                  activity(Activity::Kind::fill, "memset", 5000, 6000, std::nullopt)}},
                  1000, profile);
  ASSERT_EQ(profile.kernels.size(), 2U);
  EXPECT_EQ(profile.kernels[0].name, "add");
  EXPECT_EQ(profile.kernels[0].op, 0);
  EXPECT_EQ(profile.kernels[0].start, 1);
  EXPECT_EQ(profile.kernels[1].op, -1);
  EXPECT_EQ(profile.operators[0].device, 3);
  EXPECT_EQ(profile.operators[0].launches, 1);
}

TEST(DeviceWork, a_wait_names_operator_module_line_and_what_to_do) {
  ModeProfile profile = one_operator("aten::scatter_add", "GatherBackward0");
  add_device_work(
      {.activities = {activity(Activity::Kind::api_call, "cudaStreamSynchronize", 0, 3'000'000, 0),
                      activity(Activity::Kind::api_call, "cuStreamSynchronize", 10, 2'000'000, 0),
                      activity(Activity::Kind::api_call, "cudaLaunchKernel", 0, 9'000'000, 0),
                      activity(Activity::Kind::api_call, "cudaDeviceSynchronize", 0, 9, profiles_own_caller),
                      activity(Activity::Kind::kernel, "next", 3'500'000, 4'000'000, std::nullopt)}},
      0, profile);
  ASSERT_EQ(profile.waits.size(), 1U) << "the driver's call is inside of the runtime's; the last is the profile's own";
  const ProfiledWait& wait = profile.waits.front();
  EXPECT_EQ(wait.milliseconds, 3);
  EXPECT_EQ(wait.idle, 0.5);
  EXPECT_EQ(wait.count, 1);
  EXPECT_EQ(wait.line, "vit.cpp:80");
  EXPECT_EQ(wait.phase, Phase::backward);
  EXPECT_NE(wait.hint.find("gather"), std::string::npos);
}

TEST(DeviceWork, what_ran_before_the_first_traced_step_is_left_out) {
  ModeProfile profile = one_operator("aten::gather", "");
  add_device_work({.activities = {activity(Activity::Kind::kernel, "early", 10, 20, std::nullopt),
                                  activity(Activity::Kind::api_call, "cudaStreamSynchronize", 10, 20, std::nullopt)}},
                  1000, profile);
  EXPECT_TRUE(profile.kernels.empty());
  EXPECT_TRUE(profile.waits.empty());
}

TEST(DeviceWork, a_wait_of_the_program_itself_has_no_operator) {
  ModeProfile profile = one_operator("aten::gather", "");
  add_device_work({.activities = {activity(Activity::Kind::api_call, "cudaDeviceSynchronize", 0, 9, std::nullopt)}}, 0,
                  profile);
  ASSERT_EQ(profile.waits.size(), 1U);
  EXPECT_EQ(profile.waits.front().op, "");
}

TEST(DeviceWork, a_copy_waits_where_it_is_not_asynchronous_or_its_memory_is_not_pinned) {
  ModeProfile profile = one_operator("aten::copy_", "");
  Activity copy = activity(Activity::Kind::copy, "memcpy host to device", 0, 1000, 0);
  copy.pageable = true;
  add_device_work({.activities = {activity(Activity::Kind::api_call, "cudaMemcpyAsync", 0, 5000, 0), copy}}, 0,
                  profile);
  ASSERT_EQ(profile.waits.size(), 1U);
  EXPECT_NE(profile.waits.front().hint.find("pin"), std::string::npos);
  profile.waits.clear();
  copy.pageable = false;
  add_device_work({.activities = {activity(Activity::Kind::api_call, "cudaMemcpyAsync", 0, 5000, 0), copy}}, 0,
                  profile);
  EXPECT_TRUE(profile.waits.empty());
}

TEST(GraphKernels, of_a_replayed_graph_get_the_operators_of_the_direct_run) {
  ModeProfile direct = one_operator("fused_add", "");
  direct.kernels = {{.name = "fused_add", .op = 0, .time = 2}};
  ModeProfile profile = one_operator("compiled segment net", "");
  profile.operators[0].module = -1;
  profile.operators[0].device = 7;
  profile.operators[0].launches = 2;
  profile.kernels = {{.name = "memcpy device to device", .op = 0, .time = 4},
                     {.name = "fused_add", .op = 0, .start = 4, .time = 3}};
  for (ProfiledKernel& kernel : profile.kernels) kernel.in_graph = true;
  ModuleTable modules;
  attribute_graphs(direct, modules, profile);
  ASSERT_EQ(profile.operators.size(), 2U);
  EXPECT_EQ(profile.kernels[0].op, 0) << "the graph's own copy stays the segment's";
  EXPECT_EQ(profile.kernels[1].op, 1);
  EXPECT_EQ(profile.operators[0].device, 4);
  EXPECT_EQ(profile.operators[1].device, 3);
  EXPECT_EQ(profile.operators[1].line, "vit.cpp:80");
  EXPECT_EQ(modules.rows().at(static_cast<size_t>(profile.operators[1].module)).path, "encoder.patch_dropout");
}

TEST(WaitHints, know_what_reads_the_host) {
  for (const char* op : {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::index.Tensor",
                         "aten::equal", "aten::_to_copy"}) {
    EXPECT_FALSE(hint_for(op, "", false).empty()) << op;
  }
  EXPECT_TRUE(hint_for("aten::mm", "", false).empty());
  EXPECT_TRUE(hint_for("aten::topk", "", false).empty()) << "not aten::to";
  EXPECT_FALSE(hint_for("aten::to.dtype", "", false).empty());
  EXPECT_FALSE(hint_for("aten::index_put_.hacked_twin", "", false).empty());
  EXPECT_NE(hint_for("aten::nonzero", "IndexBackward0", false), hint_for("aten::nonzero", "", false));
}

ProfiledOperator called(const std::string& name, Phase phase, double microseconds = 0) {
  ProfiledOperator op;
  op.op = name;
  op.phase = phase;
  op.host = microseconds;
  return op;
}

/// One step.
ModeProfile step_of(std::vector<ProfiledOperator> operators) {
  ModeProfile profile;
  profile.steps = 1;
  profile.operators = std::move(operators);
  return profile;
}

TEST(SlowOperators, are_those_that_deterministic_algorithms_slow_down) {
  ModeProfile profile =
      step_of({called("aten::mm", Phase::forward, 5000), called("aten::gather_backward", Phase::backward, 1500),
               called("aten::gather_backward", Phase::backward, 500), called("aten::cumsum", Phase::forward, 10)});
  profile.deterministic = true;
  const std::vector<OperatorSum> slow = slow_sums(profile);
  ASSERT_EQ(slow.size(), 1U) << "a product is as fast as ever, and cumsum takes less than a hundredth";
  EXPECT_EQ(slow[0].op, "aten::gather_backward");
  EXPECT_DOUBLE_EQ(slow[0].milliseconds, 2);
  EXPECT_NE((Profile{.name = "net", .modes = {profile}}).text().find("slow   2 ms a step"), std::string::npos);
  profile.deterministic = false;
  EXPECT_TRUE(slow_sums(profile).empty());
}

TEST(Segments, tell_what_lives_in_them_by_module_and_phase) {
  using Kind = SegmentOwner::Kind;
  ModuleTable modules;
  EntryReport entry;
  entry.compiled = true;
  entry.memory.arena_bytes = 100;
  entry.memory.owners = {{Kind::temporary, "fc", "forward net.cpp:3", 70},
                         {Kind::temporary, "fc", "forward net.cpp:4", 20},
                         {Kind::library_result, "fc", "forward net.cpp:4", 10},
                         {Kind::output, "", "~~backward ", 8}};
  entry.replays = 1;
  EntryReport unused = entry;
  unused.replays = 0;
  Report report;
  report.entries = {entry, unused};
  ModeProfile profile;
  profile.segments = segments_of(report, modules);
  ASSERT_EQ(profile.segments.size(), 1U);
  const std::vector<SegmentMemory>& owners = profile.segments[0].owners;
  ASSERT_EQ(owners.size(), 3U);
  EXPECT_EQ(owners[0].bytes, 90);
  EXPECT_EQ(owners[0].line, "net.cpp:3") << "that of the largest";
  EXPECT_EQ(owners[0].phase, Phase::forward);
  EXPECT_EQ(owners[2].module, -1) << "the loss is no module's";
  profile.modules = module_times(modules, profile);
  add_saved(profile);
  const FoldedModule whole = folded(profile.modules).front();
  EXPECT_EQ(whole.saved, 90) << "without a graph the allocator tells of the library's result";
}

TEST(MemoryOfStep, holds_what_the_allocator_gave_out_before_and_knows_what_it_keeps) {
  const ModeProfile profile = step_of({called("compiled segment net", Phase::compiled)});
  char memory[2];
  const KnownBlock parameter{&memory[0], 100, "parameters", 1};
  const MemoryEvent events[] = {{&memory[1], 70, 0, 670, 2048}, {&memory[1], -70, 0, 600, 1024}};
  const ProfiledMemory found = memory_of_step(events, std::span(&parameter, 1), {}, profile);
  EXPECT_EQ(found.before, 100);
  EXPECT_EQ(found.held, 500) << "600 were given out, and 100 of them are known";
  EXPECT_EQ(found.peak, 670);
  EXPECT_EQ(found.reserved, 2048);
  ASSERT_EQ(found.owners.size(), 3U);
  EXPECT_EQ(found.owners[0].kind, "held between steps");
  EXPECT_EQ(found.owners[2].kind, "arenas and results of segments");
}

TEST(MemoryOfStep, of_an_allocator_that_keeps_no_count_holds_nothing_else) {
  char memory[2];
  const KnownBlock parameter{&memory[0], 100, "parameters", 1};
  const MemoryEvent events[] = {{&memory[1], 70, -1, 70, 0}};
  const ProfiledMemory found = memory_of_step(events, std::span(&parameter, 1), {}, {});
  EXPECT_EQ(found.held, 0);
  EXPECT_EQ(found.peak, 170);
  EXPECT_EQ(found.reserved, -1);
}

TEST(MemoryOfStep, keeps_what_lives_at_the_peak) {
  ModeProfile profile = step_of({called("aten::mm", Phase::forward), called("aten::mm", Phase::backward)});
  for (ProfiledOperator& op : profile.operators) op.module = 3;
  char memory[4];
  const KnownBlock parameter{&memory[0], 100, "parameters", 1};
  const KnownBlock gradient{&memory[2], 50, "gradients", 1};
  const MemoryEvent events[] = {{&memory[1], 70, 0}, {&memory[2], 50, 1}, {&memory[1], -70, 1}, {&memory[3], 20, 1}};
  const ProfiledMemory found = memory_of_step(events, std::span(&parameter, 1), std::span(&gradient, 1), profile);
  EXPECT_EQ(found.before, 100);
  EXPECT_EQ(found.peak, 220);
  ASSERT_EQ(found.owners.size(), 3U);
  EXPECT_EQ(found.owners[1].kind, "saved activations");
  EXPECT_EQ(found.owners[1].bytes, 70);
  ASSERT_EQ(found.saved.size(), 1U);
  EXPECT_EQ(found.saved[0].bytes, 70);
  EXPECT_EQ(found.owners[2].kind, "gradients");
  EXPECT_EQ(found.owners[2].module, 1);
}

TEST(MemoryOfStep, tells_what_recomputing_would_save) {
  ModeProfile profile;
  profile.operators.resize(5);
  const auto set = [&](size_t at, const char* name, Phase phase, int64_t bytes, double flops) {
    ProfiledOperator& op = profile.operators[at];
    op.op = name;
    op.phase = phase;
    op.bytes = bytes;
    op.flops = flops;
    op.host = 2000;
  };
  set(0, "aten::mm", Phase::forward, 100, 5e9);
  set(1, "aten::gelu", Phase::forward, 100, 0);
  set(2, "aten::gelu", Phase::forward, 100, 0);
  set(3, "aten::foo", Phase::forward, -1, 0);
  set(4, "aten::mul", Phase::backward, 100, 0);
  char memory[5];
  const MemoryEvent events[] = {
      {&memory[0], 70, 0}, {&memory[1], 50, 1}, {&memory[2], 30, 2}, {&memory[3], 10, 3}, {&memory[4], 10, 4}};
  const ProfiledMemory found = memory_of_step(events, {}, {}, profile);
  ASSERT_EQ(found.recomputed.size(), 1U) << "a product is not streamed; of the fourth nothing is known";
  EXPECT_EQ(found.recomputed[0].op, "aten::gelu");
  EXPECT_EQ(found.recomputed[0].operators, 2);
  EXPECT_EQ(found.recomputed[0].bytes, 80);
  EXPECT_DOUBLE_EQ(found.recomputed[0].milliseconds, 4);
}

}  // namespace
}  // namespace sinter::test
