// What steps spend their time on, from timelines made by hand.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "frontend/profile/device_work.h"
#include "frontend/profile/step_shares.h"

namespace sinter::test {
namespace {

using frontend::Span;
using frontend::step_shares;
using frontend::StepTimeline;
using runtime::Activity;

/// One step from 0 to 100.
StepTimeline step_of_100() { return {.steps = {{0, 100}}, .work = {}, .launches = {}, .waits = {}}; }

void expect_shares(const StepTimeline& timeline, const StepShares& expected) {
  const auto shares = step_shares(timeline);
  ASSERT_TRUE(shares);
  EXPECT_DOUBLE_EQ(shares->busy, expected.busy) << "busy";
  EXPECT_DOUBLE_EQ(shares->between, expected.between) << "between";
  EXPECT_DOUBLE_EQ(shares->launch, expected.launch) << "launch";
  EXPECT_DOUBLE_EQ(shares->wait, expected.wait) << "wait";
  EXPECT_DOUBLE_EQ(shares->host, expected.host) << "host";
}

TEST(StepShares, of_no_step_are_not_known) {
  EXPECT_FALSE(step_shares({}));
  EXPECT_FALSE(step_shares({.steps = {{5, 5}}, .work = {}, .launches = {}, .waits = {}}));
}

TEST(StepShares, a_step_without_work_is_the_hosts) { expect_shares(step_of_100(), {.host = 1}); }

TEST(StepShares, a_gap_is_the_hosts_until_the_next_launch_begins) {
  StepTimeline timeline = step_of_100();
  timeline.launches = {{10, 14}, {60, 65}};
  timeline.work = {{{15, 30}, 0}, {{70, 100}, 1}};
  // Until 10 and from 30 to 60 the host had not come to it; 5 and 10 from where the calls begin to where work does.
  expect_shares(timeline, {.busy = 0.45, .launch = 0.15, .host = 0.40});
}

TEST(StepShares, a_launch_under_way_when_the_device_falls_idle_is_bound_by_launches) {
  StepTimeline timeline = step_of_100();
  timeline.launches = {{0, 1}, {25, 40}};
  timeline.work = {{{0, 30}, 0}, {{42, 100}, 1}};
  expect_shares(timeline, {.busy = 0.88, .launch = 0.12});
}

TEST(StepShares, work_that_was_launched_before_the_gap_comes_between_kernels) {
  StepTimeline timeline = step_of_100();
  timeline.launches = {{0, 2}, {3, 5}};
  timeline.work = {{{0, 50}, 0}, {{55, 100}, 1}};
  expect_shares(timeline, {.busy = 0.95, .between = 0.05});
}

TEST(StepShares, nodes_of_a_graph_come_between_kernels_though_its_launch_is_not_over) {
  StepTimeline timeline = step_of_100();
  timeline.launches = {{0, 90}};
  timeline.work = {{{10, 40}, 0}, {{50, 100}, 0}};
  expect_shares(timeline, {.busy = 0.80, .between = 0.10, .launch = 0.10});
}

TEST(StepShares, other_launches_while_the_device_is_idle_are_bound_by_launches) {
  StepTimeline timeline = step_of_100();
  timeline.launches = {{20, 30}, {50, 60}};
  timeline.work = {{{60, 100}, 1}};
  expect_shares(timeline, {.busy = 0.4, .launch = 0.2, .host = 0.4});
}

TEST(StepShares, waits_are_apart_also_where_they_hold_launches) {
  StepTimeline timeline = step_of_100();
  timeline.launches = {{0, 1}, {70, 72}, {35, 38}};
  timeline.waits = {{10, 40}};
  timeline.work = {{{0, 30}, 0}, {{75, 95}, 1}};
  // 30 to 40 waits, 40 to 70 host, 70 to 75 launch; nothing follows from 95 on.
  expect_shares(timeline, {.busy = 0.50, .launch = 0.05, .wait = 0.10, .host = 0.35});
}

TEST(StepShares, streams_that_overlap_count_once) {
  StepTimeline timeline = step_of_100();
  timeline.launches = {{0, 1}, {1, 2}, {2, 3}};
  timeline.work = {{{0, 60}, 0}, {{80, 100}, 2}, {{10, 40}, 1}};
  expect_shares(timeline, {.busy = 0.80, .between = 0.20});
}

TEST(StepShares, work_without_a_known_launch_leaves_the_gap_to_the_host) {
  StepTimeline timeline = step_of_100();
  timeline.work = {{{30, 100}, std::nullopt}};
  expect_shares(timeline, {.busy = 0.7, .host = 0.3});
}

TEST(StepShares, time_outside_of_steps_does_not_count) {
  StepTimeline timeline{.steps = {{100, 200}, {300, 400}}, .work = {}, .launches = {}, .waits = {}};
  timeline.launches = {{0, 10}, {210, 220}};
  timeline.work = {{{50, 150}, 0}, {{250, 290}, 1}};
  expect_shares(timeline, {.busy = 0.25, .host = 0.75});
}

Activity made(Activity::Kind kind, const char* name, uint64_t start, uint64_t end, uint32_t launch) {
  return {.kind = kind, .name = name, .start = start, .end = end, .launch = launch, .caller = std::nullopt};
}

TEST(StepShares, a_trace_tells_launches_waits_and_work) {
  Activity copy = made(Activity::Kind::copy, "memcpy host to device", 50, 60, 3);
  copy.pageable = true;
  const runtime::ActivityTrace trace{.activities = {made(Activity::Kind::api_call, "cudaLaunchKernel", 10, 20, 1),
                                                    made(Activity::Kind::kernel, "add", 20, 40, 1),
                                                    made(Activity::Kind::api_call, "cudaMemcpyAsync", 45, 65, 3), copy,
                                                    made(Activity::Kind::api_call, "cudaStreamSynchronize", 70, 80, 4),
                                                    made(Activity::Kind::api_call, "cudaGetDevice", 80, 90, 5),
                                                    made(Activity::Kind::fill, "memset", 90, 95, 6)}};
  const StepTimeline timeline = frontend::timeline_of(trace, {{0, 100}});
  EXPECT_EQ(timeline.launches.size(), 2U);
  EXPECT_EQ(timeline.waits.size(), 2U) << "the copy waits, as its memory is not pinned";
  ASSERT_EQ(timeline.work.size(), 3U);
  EXPECT_EQ(timeline.work[1].launch, 1U);
  EXPECT_FALSE(timeline.work[2].launch);
  expect_shares(timeline, {.busy = 0.35, .launch = 0.15, .wait = 0.15, .host = 0.35});
}

TEST(StepShares, stand_in_text_and_json_where_they_are_known) {
  ModeProfile mode;
  mode.mode = "eager";
  mode.device = "cuda:0";
  mode.shares = StepShares{.busy = 0.5, .between = 0, .launch = 0.25, .wait = 0, .host = 0.25};
  const Profile known{.name = "net", .modes = {mode}};
  EXPECT_NE(known.text().find("busy 50.0 % of a step; bound by launches 25.0 %, by the host 25.0 %"), std::string::npos)
      << known.text();
  const auto json = nlohmann::json::parse(known.json());
  EXPECT_EQ(json.at("modes").at(0).at("shares").at("launch"), 0.25);
  mode.shares.reset();
  const Profile unknown{.name = "net", .modes = {mode}};
  EXPECT_EQ(unknown.text().find("busy"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(unknown.json()).at("modes").at(0).at("shares").is_null());
}

}  // namespace
}  // namespace sinter::test
