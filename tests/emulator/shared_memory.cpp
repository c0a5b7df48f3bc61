#include "tests/emulator/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace sinter::test {
namespace {

std::string_view verb(Access access) {
  return access == Access::read ? "reads" : access == Access::write ? "writes" : "updates";
}

bool may_meet(Access a, Access b) { return a == b && a != Access::write; }

}  // namespace

SharedMemory::SharedMemory(unsigned threads) : clocks_(threads) {}

void SharedMemory::watch(std::string name, const void* begin, size_t bytes) {
  if (bytes == 0) return;
  regions_.push_back({std::move(name), reinterpret_cast<uintptr_t>(begin), std::vector<Byte>(bytes)});
}

void SharedMemory::begin_block() {
  ++block_;
  sync_block();
}

void SharedMemory::sync_block() {
  ++phase_;
  for (unsigned thread = 0; thread < clocks_.size(); ++thread) {
    clocks_[thread].fill(0);
    clocks_[thread][thread % lanes_per_warp] = 1;
  }
}

void SharedMemory::sync_warp(unsigned first_thread, unsigned mask) {
  Clock latest{};
  const auto for_each_lane = [&](auto visit) {
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      if ((mask >> lane & 1U) != 0) visit(lane, clocks_[first_thread + lane]);
    }
  };
  for_each_lane([&](unsigned, const Clock& clock) {
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) latest[lane] = std::max(latest[lane], clock[lane]);
  });
  for_each_lane([&](unsigned lane, Clock& clock) {
    clock = latest;
    ++clock[lane];
  });
}

bool SharedMemory::watches(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  return std::ranges::any_of(regions_, [at](const Region& region) { return region.holds(at); });
}

std::string SharedMemory::access(unsigned thread, const void* address, size_t bytes, Access access) {
  const auto first = reinterpret_cast<uintptr_t>(address);
  for (Region& region : regions_) {
    if (!region.holds(first)) continue;
    const size_t begin = first - region.begin;
    const size_t end = std::min(begin + bytes, region.bytes.size());
    const Touch now{thread, clocks_[thread][thread % lanes_per_warp], access};
    for (size_t at = begin; at < end; ++at) {
      Byte& byte = region.bytes[at];
      if (byte.phase != phase_) forget(byte);
      const std::string fault = fault_of(byte, now);
      if (!fault.empty()) return fmt::format("byte {} of {}: {}", at, region.name, fault);
      remember(byte, now);
    }
  }
  return {};
}

bool SharedMemory::ordered(const Touch& before, unsigned thread) const {
  if (before.thread == thread) return true;
  if (before.thread / lanes_per_warp != thread / lanes_per_warp) return false;
  return clocks_[thread][before.thread % lanes_per_warp] >= before.time;
}

const SharedMemory::Touch* SharedMemory::unordered(const std::vector<Touch>& touches, const Touch& now) const {
  const auto found = std::ranges::find_if(touches, [&](const Touch& before) {
    return !may_meet(before.access, now.access) && !ordered(before, now.thread);
  });
  return found == touches.end() ? nullptr : &*found;
}

/// All later accesses are ordered after those so far.
void SharedMemory::forget(Byte& byte) const {
  byte.phase = phase_;
  byte.writes.clear();
  byte.reads.clear();
}

std::string SharedMemory::fault_of(const Byte& byte, const Touch& now) const {
  if (now.access != Access::write && byte.written_in != block_) {
    return fmt::format("thread {} {} it before any thread of the block has written it", now.thread, verb(now.access));
  }
  const Touch* before = unordered(byte.writes, now);
  if (before == nullptr && now.access != Access::read) before = unordered(byte.reads, now);
  if (before == nullptr) return {};
  return fmt::format("race: thread {} {} it and thread {} {} it, with no barrier in between", before->thread,
                     verb(before->access), now.thread, verb(now.access));
}

void SharedMemory::remember(Byte& byte, const Touch& now) const {
  if (now.access == Access::write) forget(byte);
  if (now.access != Access::read) byte.written_in = block_;
  auto& touches = now.access == Access::read ? byte.reads : byte.writes;
  const bool known = !touches.empty() && touches.back().thread == now.thread && touches.back().time == now.time &&
                     touches.back().access == now.access;
  if (!known) touches.push_back(now);
}

}  // namespace sinter::test
