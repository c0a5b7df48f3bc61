// sinter_guards: what checking an entry's guards costs the host on every call, for one tensor and for a module with
// many parameters, with caches warm and cold, and what the whole call costs. JSON, for the CPU and, where there is one,
// a GPU.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/randn.h>
#include <sinter/sinter.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "bench/measure/environment.h"
#include "bench/measure/timer.h"
#include "frontend/torch/cuda.h"
#include "frontend/guards.h"

namespace {

using nlohmann::ordered_json;
using sinter::frontend::Guards;
using sinter::frontend::Modes;

constexpr int kSamples = 101;
constexpr double kSampleNanoseconds = 2e5;  // long enough for the clock, too short to lose the core often
constexpr int kLayers = 200;                // a weight and a bias each
constexpr std::array kMoreLayers{500, 1000};
constexpr size_t kEvictingBytes = size_t{96} << 20;
constexpr size_t kLine = 64;

double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ordered_json spread(std::vector<double> nanoseconds) {
  std::sort(nanoseconds.begin(), nanoseconds.end());
  const auto at = [&](double share) {
    return nanoseconds[static_cast<size_t>(share * static_cast<double>(nanoseconds.size() - 1))];
  };
  return {
      {"median_ns", at(0.5)}, {"quartile_1_ns", at(0.25)}, {"quartile_3_ns", at(0.75)}, {"least_ns", nanoseconds[0]}};
}

/// What is measured: a call by name.
struct Call {
  const char* name;
  std::function<void()> run;
};

/// Time a call, by call and sample, caches warm. Every sample times all calls one after another, so that what else the
/// machine does falls on all of them. `settle`, which is not timed, ends what the calls left running.
std::vector<std::vector<double>> warm_samples(const std::vector<Call>& calls, const std::function<void()>& settle) {
  constexpr int kWarmUp = 200;
  std::vector<int> repetitions;
  for (const auto& call : calls) {
    const double begin = now();
    for (int i = 0; i < kWarmUp; ++i) call.run();
    repetitions.push_back(1 + static_cast<int>(kSampleNanoseconds / ((now() - begin) / kWarmUp)));
  }
  std::vector<std::vector<double>> samples(calls.size());
  for (int sample = 0; sample < kSamples; ++sample) {
    for (size_t i = 0; i < calls.size(); ++i) {
      settle();
      calls[i].run();
      const double start = now();
      for (int j = 0; j < repetitions[i]; ++j) calls[i].run();
      samples[i].push_back((now() - start) / repetitions[i]);
    }
  }
  return samples;
}

void nothing() {}

ordered_json warm(const std::vector<Call>& calls, const std::function<void()>& settle = nothing) {
  const auto samples = warm_samples(calls, settle);
  ordered_json out;
  for (size_t i = 0; i < calls.size(); ++i) out[calls[i].name] = spread(samples[i]);
  return out;
}

/// A call's time after as much other memory was written as caches hold.
std::vector<double> cold_samples(const std::function<void()>& call) {
  std::vector<char> other(kEvictingBytes);
  std::vector<double> samples;
  for (int sample = 0; sample < kSamples; ++sample) {
    for (size_t i = 0; i < other.size(); i += 64) ++other[i];
    const double start = now();
    call();
    samples.push_back(now() - start);
  }
  return samples;
}

void require(bool holds) {
  if (holds) return;
  std::cerr << "the guards do not hold\n";
  std::exit(1);
}

/// The guards of a call with one tensor and the parameters of these modules.
class Checked {
 public:
  Checked(const at::Tensor& x, std::vector<sinter::frontend::NamedModule> modules)
      : x_(x), guards_(make(x_, modules)) {}

  /// What a call does before its plan runs.
  void operator()() const {
    sinter::detail::Flat flat;
    flat.count(sinter::detail::Tag::tuple, 1);
    sinter::detail::flatten(flat, x_);
    require(guards_.fit(flat, Modes::current()) == sinter::frontend::Fit::full);
  }

 private:
  static Guards make(const at::Tensor& x, const std::vector<sinter::frontend::NamedModule>& modules) {
    sinter::detail::Flat flat;
    flat.count(sinter::detail::Tag::tuple, 1);
    sinter::detail::flatten(flat, x);
    Guards guards(flat, Modes::current(), sinter::frontend::TrainFlags(modules));
    std::vector<sinter::frontend::StateSlot> states;
    for (auto& named : sinter::frontend::named_tensors(modules)) states.push_back({named.name, named.tensor, {}});
    guards.add_states(states, {});
    return guards;
  }

  at::Tensor x_;
  Guards guards_;
};

/// Layers whose parameters lie scattered over the heap, as in a program that has run for a while: made in random order,
/// with other allocations between them.
torch::nn::Sequential scattered_layers(int count, const at::Device& device) {
  std::mt19937 random(7);
  std::vector<int> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<torch::nn::Linear> made(order.size(), torch::nn::Linear(nullptr));
  std::vector<std::vector<char>> between;
  for (const int layer : order) {
    made[static_cast<size_t>(layer)] = torch::nn::Linear(8, 8);
    made[static_cast<size_t>(layer)]->to(device);
    between.emplace_back(random() % 4096);
  }
  torch::nn::Sequential layers;
  for (const auto& layer : made) layers->push_back(layer);
  return layers;
}

/// What the check of many parameters costs beyond that of one tensor, by parameter.
ordered_json by_parameter(const Checked& one, const Checked& many) {
  const auto samples = warm_samples({{"one", std::cref(one)}, {"many", std::cref(many)}}, nothing);
  const auto evicted_one = cold_samples(std::cref(one));
  const auto evicted_many = cold_samples(std::cref(many));
  const auto extra = [](const std::vector<double>& few, const std::vector<double>& more) {
    std::vector<double> each;
    for (size_t i = 0; i < few.size(); ++i) each.push_back((more[i] - few[i]) / (2 * kLayers));
    auto out = spread(std::move(each));
    // A disturbed sample of the one makes the smallest difference, so the undisturbed ones of both are subtracted.
    const auto least = [](const std::vector<double>& of) { return *std::min_element(of.begin(), of.end()); };
    out["least_ns"] = (least(more) - least(few)) / (2 * kLayers);
    return out;
  };
  return {{"one_tensor", {{"warm", spread(samples[0])}, {"cold", spread(evicted_one)}}},
          {"many_parameters", {{"warm", spread(samples[1])}, {"cold", spread(evicted_many)}}},
          {"each_parameter", {{"warm", extra(samples[0], samples[1])}, {"cold", extra(evicted_one, evicted_many)}}}};
}

/// Whole calls, on CUDA until the host has submitted their work.
ordered_json whole_calls(const at::Tensor& x, torch::nn::Sequential layers) {
  const sinter::Options unverified{.verify = sinter::Verify::off};
  const auto rows = at::randn({16, 8}, x.options());
  const auto gelu = [](const at::Tensor& t) { return at::gelu(t); };
  auto fast_gelu = sinter::compile(gelu, unverified);
  auto fast_layers = sinter::compile(layers, unverified);
  const std::function<void()> settle = [&x] { sinter::bench::synchronize(x.device()); };
  for (int call = 0; call < 4; ++call) {
    (void)fast_gelu(x);
    (void)fast_layers(rows);
  }
  auto out =
      warm({{"gelu_4096_eager", [&] { (void)gelu(x); }}, {"gelu_4096_compiled", [&] { (void)fast_gelu(x); }}}, settle);
  out.update(warm(
      {{"layers_eager", [&] { (void)layers->forward(rows); }}, {"layers_compiled", [&] { (void)fast_layers(rows); }}},
      settle));
  return out;
}

/// The time of a check, caches warm, by number of parameters.
ordered_json by_count(const at::Tensor& x) {
  ordered_json out;
  for (const int count : kMoreLayers) {
    const auto layers = scattered_layers(count, x.device());
    const Checked many(x, {{"", layers.ptr()}});
    out[std::to_string(2 * count)] = spread(warm_samples({{"many", std::cref(many)}}, nothing)[0]);
  }
  return out;
}

/// The floor of a check of 2000 parameters: reading as many lines of the cache, scattered over as much memory, where
/// each of them spans seven to eight. By line.
ordered_json line_reads() {
  constexpr size_t kLines = 15000, kSpread = 8;
  std::vector<char> memory(kLines * kSpread * kLine);
  std::vector<uint32_t> order(kLines * kSpread);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  order.resize(kLines);
  volatile int sink = 0;
  const auto read = [&] {
    int sum = 0;
    for (const uint32_t line : order) sum += memory[line * kLine];
    sink = sum;
  };
  auto samples = warm_samples({{"read", read}}, nothing)[0];
  for (double& sample : samples) sample /= static_cast<double>(kLines);
  return spread(std::move(samples));
}

ordered_json measure(const at::Device& device) {
  const auto x = at::randn({4096}, at::TensorOptions(device));
  const auto layers = scattered_layers(kLayers, device);
  ordered_json out{
      {"environment", sinter::bench::environment(device)}, {"parameters", 2 * kLayers}, {"samples", kSamples}};
  out["line_from_second_cache"] = line_reads();
  {
    const c10::NoGradGuard no_grad;
    out["modes"] = warm({{"read", [] { (void)Modes::current(); }}});
    out["inference"] = by_parameter(Checked(x, {}), Checked(x, {{"", layers.ptr()}}));
    out["inference"]["by_parameters"] = by_count(x);
    out["calls"] = whole_calls(x, layers);
  }
  out["grad_mode"] = by_parameter(Checked(x, {}), Checked(x, {{"", layers.ptr()}}));
  out["grad_mode"]["by_parameters"] = by_count(x);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && *argv[1] == '-')) {
    std::cerr << "usage: sinter_guards [FILE]\n";
    return 2;
  }
  at::set_num_threads(1);
  auto out = ordered_json::array();
  out.push_back(measure(at::kCPU));
  if (sinter::frontend::cuda::device_count() > 0) out.push_back(measure(at::Device(at::kCUDA, 0)));
  std::cout << out.dump(1) << "\n";
  if (argc > 1) std::ofstream(argv[1]) << out.dump(1) << "\n";
}
