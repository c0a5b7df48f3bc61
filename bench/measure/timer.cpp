#include "bench/measure/timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "bench/measure/cuda.h"

namespace sinter::bench {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Timing summarise(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto at = [&](double part) { return samples[static_cast<size_t>(part * static_cast<double>(samples.size() - 1))]; };
  return {at(0.5), at(0.25), at(0.75), static_cast<int64_t>(samples.size())};
}

/// Calls until `seconds` have passed (at least `least`), synchronised at the end. Gives the seconds of one call.
double warm_up(at::Device device, const Call& call, double seconds, int64_t least) {
  const double start = now();
  int64_t done = 0;
  while (done < least || now() - start < seconds) {
    call(done++);
    if (done % 16 == 0) synchronize(device);
  }
  synchronize(device);
  return (now() - start) / static_cast<double>(done);
}

}  // namespace

void synchronize(at::Device device) {
  if (device.is_cuda()) cuda::synchronize();
}

double seconds_of(at::Device device, const std::function<void()>& call) {
  synchronize(device);
  const double start = now();
  call();
  synchronize(device);
  return now() - start;
}

Timing steady(at::Device device, const Call& call, double budget) {
  const double one = warm_up(device, call, budget / 4, 3);
  if (!device.is_cuda()) return latency(device, call, budget);
  // Groups of at least a millisecond, so that an event's half microsecond does not show, and of several calls, so that
  // the host's work for one lies beside the device's for another.
  const auto group = static_cast<int64_t>(std::clamp(std::ceil(1e-3 / one), 8.0, 512.0));
  const auto groups = static_cast<int64_t>(std::clamp(budget / (one * static_cast<double>(group)), 5.0, 200.0));
  std::vector<double> samples;
  int64_t next = 0;
  cuda::Event start;
  cuda::Event stop;
  for (int64_t i = 0; i < groups; ++i) {
    start.record();
    for (int64_t j = 0; j < group; ++j) call(next++);
    stop.record();
    samples.push_back(stop.since(start) / static_cast<double>(group));
  }
  return summarise(std::move(samples));
}

Timing latency(at::Device device, const Call& call, double budget) {
  const double one = warm_up(device, call, budget / 8, 2);
  const auto count = static_cast<int64_t>(std::clamp(budget / one, 5.0, 300.0));
  std::vector<double> samples;
  for (int64_t i = 0; i < count; ++i) samples.push_back(1e3 * seconds_of(device, [&] { call(i); }));
  return summarise(std::move(samples));
}

Timing unsynchronised(at::Device device, const Call& call) {
  std::vector<double> samples;
  for (int64_t i = 0; i < 20; ++i) {
    const double start = now();
    call(i);
    samples.push_back(1e3 * (now() - start));
  }
  synchronize(device);
  return summarise(std::move(samples));
}

}  // namespace sinter::bench
