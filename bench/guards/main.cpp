// sinter_guards: what checking an entry's guards costs a call, as JSON: for one tensor, and for a module with many
// parameters, with caches warm and cold.
#include <ATen/Parallel.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <sinter/sinter.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "frontend/guards.h"

namespace {

using nlohmann::ordered_json;
using sinter::frontend::Guards;
using sinter::frontend::Modes;

constexpr int kSamples = 101;
constexpr double kSampleNanoseconds = 2e5;  // long enough for the clock, too short to lose the core often
constexpr int kLayers = 200;                // a weight and a bias each
constexpr size_t kEvictingBytes = size_t{96} << 20;

double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ordered_json spread(std::vector<double> nanoseconds) {
  std::sort(nanoseconds.begin(), nanoseconds.end());
  const auto at = [&](double share) {
    return nanoseconds[static_cast<size_t>(share * static_cast<double>(nanoseconds.size() - 1))];
  };
  return {{"median_ns", at(0.5)}, {"quartile_1_ns", at(0.25)}, {"quartile_3_ns", at(0.75)}};
}

/// A call's time, caches warm.
template <class Call>
ordered_json warm(const Call& call) {
  constexpr int kWarmUp = 200;
  const double begin = now();
  for (int i = 0; i < kWarmUp; ++i) call();
  const int calls = 1 + static_cast<int>(kSampleNanoseconds / ((now() - begin) / kWarmUp));
  std::vector<double> samples;
  for (int sample = 0; sample < kSamples; ++sample) {
    const double start = now();
    for (int i = 0; i < calls; ++i) call();
    samples.push_back((now() - start) / calls);
  }
  return spread(std::move(samples));
}

/// A call's time after as much other memory was written as caches hold.
template <class Call>
ordered_json cold(const Call& call) {
  std::vector<char> other(kEvictingBytes);
  std::vector<double> samples;
  for (int sample = 0; sample < kSamples; ++sample) {
    for (size_t i = 0; i < other.size(); i += 64) ++other[i];
    const double start = now();
    call();
    samples.push_back(now() - start);
  }
  return spread(std::move(samples));
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
    Guards guards(flat, Modes::current(), modules);
    std::vector<sinter::frontend::StateSlot> states;
    for (auto& named : sinter::frontend::named_tensors(modules)) states.push_back({named.name, named.tensor, {}});
    guards.add_states(states, {});
    return guards;
  }

  at::Tensor x_;
  Guards guards_;
};

ordered_json calls(const at::Tensor& x) {
  const auto gelu = [](const at::Tensor& t) { return at::gelu(t); };
  auto fast = sinter::compile(gelu, {.verify = sinter::Verify::off});
  for (int call = 0; call < 4; ++call) (void)fast(x);
  return {{"eager", warm([&] { (void)gelu(x); })}, {"compiled", warm([&] { (void)fast(x); })}};
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const c10::NoGradGuard no_grad;
  const at::Device device(argc > 1 ? argv[1] : "cpu");
  const auto x = at::randn({4096}, at::TensorOptions(device));
  torch::nn::Sequential layers;
  for (int i = 0; i < kLayers; ++i) layers->push_back(torch::nn::Linear(8, 8));
  layers->to(device);

  const Checked one(x, {});
  const Checked many(x, {{"", layers.ptr()}});
  ordered_json out{{"device", device.str()}, {"parameters", 2 * kLayers}, {"samples", kSamples}};
  out["modes"] = warm([] { (void)Modes::current(); });
  out["one_tensor"] = warm(one);
  out["many_parameters"] = {{"warm", warm(many)}, {"cold", cold(many)}};
  const double extra =
      out["many_parameters"]["warm"]["median_ns"].get<double>() - out["one_tensor"]["median_ns"].get<double>();
  out["ns_a_parameter"] = extra / (2 * kLayers);
  out["gelu_4096"] = calls(x);
  std::cout << out.dump(1) << "\n";
  if (argc > 2) std::ofstream(argv[2]) << out.dump(1) << "\n";
}
