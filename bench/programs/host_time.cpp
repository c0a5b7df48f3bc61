// sinter_host_time: what a call of a compiled function costs the host, an operator. Models of many small operators,
// whose kernels take next to nothing: eager, checked and trusted in turns, without gradients and as training steps.
// JSON to a file; --help says more.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sinter/sinter.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/sgd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/measure/environment.h"
#include "bench/measure/timer.h"

namespace {

using at::Tensor;
using nlohmann::ordered_json;
namespace nn = torch::nn;

constexpr int64_t kWidth = 32, kHeads = 4, kTokens = 16;

/// A transformer layer: attention by LibTorch's fused operator, residuals, a feed-forward part.
struct Layer : nn::Module {
  nn::LayerNorm before{nullptr}, between{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};

  Layer() {
    before = register_module("before", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    between = register_module("between", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth));
    out = register_module("out", nn::Linear(kWidth, kWidth));
    up = register_module("up", nn::Linear(kWidth, 2 * kWidth));
    down = register_module("down", nn::Linear(2 * kWidth, kWidth));
  }
  Tensor attend(const Tensor& x) {
    const auto parts =
        qkv(x).reshape({x.size(0), kTokens, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const Tensor attended = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    return out(attended.transpose(1, 2).reshape({x.size(0), kTokens, kWidth}));
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = x + attend(before(x));
    return y + down(at::gelu(up(between(y))));
  }
};

/// A layer over shifted windows: rolls, permutations and copies around an attention written out.
struct WindowLayer : nn::Module {
  nn::LayerNorm norm{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr};
  Tensor bias;

  WindowLayer() {
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth));
    out = register_module("out", nn::Linear(kWidth, kWidth));
    bias = register_parameter("bias", at::randn({1, kHeads, 4, 4}));
  }
  Tensor forward(const Tensor& tokens) {
    const int64_t batch = tokens.size(0);
    const Tensor image = norm(tokens).view({batch, 4, 4, kWidth});
    const Tensor windows = at::roll(image, {-1, -1}, {1, 2})
                               .view({batch, 2, 2, 2, 2, kWidth})
                               .permute({0, 1, 3, 2, 4, 5})
                               .reshape({batch * 4, 4, kWidth});
    const Tensor parts = qkv(windows).reshape({batch * 4, 4, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4});
    const Tensor query = parts[0] * 0.35, key = parts[1], value = parts[2];
    const Tensor weights = at::softmax(query.matmul(key.transpose(-2, -1)) + bias, -1);
    const Tensor mixed = out(weights.matmul(value).transpose(1, 2).reshape({batch * 4, 4, kWidth}));
    const Tensor back =
        mixed.view({batch, 2, 2, 2, 2, kWidth}).permute({0, 1, 3, 2, 4, 5}).reshape({batch, 4, 4, kWidth});
    return tokens + at::roll(back, {1, 1}, {1, 2}).view({batch, kTokens, kWidth});
  }
};

template <class Block>
struct Stack : nn::Module {
  std::vector<std::shared_ptr<Block>> layers;

  explicit Stack(int count) {
    for (int i = 0; i < count; ++i)
      layers.push_back(register_module("layer" + std::to_string(i), std::make_shared<Block>()));
  }
  Tensor forward(Tensor x) {
    for (const auto& layer : layers) x = layer->forward(x);
    return x;
  }
};

struct Way {
  std::string name;
  std::function<void()> call;
  std::function<sinter::Report()> report{};  ///< of a compiled one
};

template <class Callable>
Way compiled(const std::string& name, const Callable& callable, const Tensor& x, sinter::Options options) {
  auto fast = std::make_shared<decltype(sinter::compile(callable, options))>(sinter::compile(callable, options));
  return {name, [=] { (void)(*fast)(x); }, [=] { return fast->report(); }};
}

double microseconds(const Way& way, int calls, c10::Device device) {
  sinter::bench::synchronize(device);
  const auto start = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) way.call();
  sinter::bench::synchronize(device);
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / calls;
}

int64_t operators(const sinter::Report& report) {
  int64_t most = 0;
  for (const auto& entry : report.entries) most = std::max(most, entry.captured_calls);
  return most;
}

/// What is measured, and how often.
struct Plan {
  int calls = 100, rounds = 15;
  std::string only{}, way{};  ///< for profilers: of the programs, and of the ways
};

void measure(const std::string& name, std::vector<Way> ways, const Plan& plan, c10::Device device, ordered_json& rows) {
  if (name.find(plan.only) == std::string::npos) return;
  if (!plan.way.empty()) {
    std::erase_if(ways, [&](const Way& way) { return way.name != plan.way; });
    for (const Way& way : ways) {
      std::printf("%s, %s: %.1f us\n", name.c_str(), way.name.c_str(),
                  microseconds(way, plan.calls * plan.rounds, device));
      if (way.report) std::cout << way.report() << std::flush;
    }
    return;
  }
  for (const Way& way : ways) (void)microseconds(way, 20, device);
  std::vector<std::vector<double>> times(ways.size());
  for (int round = 0; round < plan.rounds; ++round) {
    for (size_t i = 0; i < ways.size(); ++i) times[i].push_back(microseconds(ways[i], plan.calls, device));
  }
  const auto count = static_cast<double>(operators(ways[1].report()));
  ordered_json row{{"program", name}, {"operators", count}};
  for (size_t i = 0; i < ways.size(); ++i) {
    std::ranges::sort(times[i]);
    row[ways[i].name] = {{"us", times[i][times[i].size() / 2]}, {"least", times[i].front()}, {"most", times[i].back()}};
  }
  const auto of = [&](const char* way) { return row[way]["us"].template get<double>(); };
  const double beyond = row.contains("trusted") ? of("trusted") : 0;
  row["us_an_operator"] = (of("checked") - beyond) / count;
  row["eager_us_an_operator"] = of("eager") / count;
  std::printf("%-32s %4.0f operators: eager %.3f, checked %.3f us an operator; a call %.1f, %.1f, %.1f us\n",
              name.c_str(), count, of("eager") / count, (of("checked") - beyond) / count, of("eager"), of("checked"),
              beyond);
  std::fflush(stdout);
  rows.push_back(std::move(row));
}

sinter::Options options_for(const Tensor& x, sinter::Replay replay) {
  return {.mode = x.is_cuda() ? sinter::Mode::ReduceOverhead : sinter::Mode::Default,
          .replay = replay,
          .compile_budget = std::numeric_limits<double>::infinity()};
}

template <class Callable>
void measure_inference(const std::string& name, const Callable& run, const Tensor& x, const Plan& plan,
                       ordered_json& rows) {
  const at::NoGradGuard no_gradients;
  measure(name,
          {{"eager", [=] { (void)run(x); }},
           compiled("checked", run, x, options_for(x, sinter::Replay::checked)),
           compiled("trusted", run, x, options_for(x, sinter::Replay::trusted))},
          plan, x.device(), rows);
}

template <class Model>
void measure_model(const std::string& name, Model& model, const Tensor& x, const Plan& plan, ordered_json& rows) {
  measure_inference(
      name + ", inference", [model](const Tensor& input) { return model->forward(input); }, x, plan, rows);
  auto optimizer = std::make_shared<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(1e-3));
  const auto step = [model, optimizer](const Tensor& input) {
    optimizer->zero_grad();
    Tensor loss = model->forward(input).square().mean();
    loss.backward();
    optimizer->step();
    return loss.detach();
  };
  measure(name + ", training step",
          {{"eager", [=] { (void)step(x); }}, compiled("checked", step, x, options_for(x, sinter::Replay::checked))},
          plan, x.device(), rows);
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  std::string file, device = "cpu";
  CLI::App app{"host time an operator: eager, checked and trusted"};
  app.add_option("--calls", plan.calls, "between two looks at the clock")->check(CLI::PositiveNumber);
  app.add_option("--rounds", plan.rounds, "of each way, in turns")->check(CLI::PositiveNumber);
  app.add_option("--only", plan.only, "programs whose names hold this");
  app.add_option("--way", plan.way, "this way alone, without turns, for a profiler; with its report");
  app.add_option("--device", device, "cpu or cuda");
  app.add_option("--json", file, "the result file");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  at::manual_seed(1);
  const c10::Device place(device);
  const Tensor x = at::randn({1, kTokens, kWidth}).to(place);
  ordered_json rows = ordered_json::array();
  measure_inference("one operator", [](const Tensor& input) { return at::gelu(input); }, x, plan, rows);
  const auto layers = std::make_shared<Stack<Layer>>(6);
  layers->to(place);
  measure_model("transformer", layers, x, plan, rows);
  const auto windows = std::make_shared<Stack<WindowLayer>>(6);
  windows->to(place);
  measure_model("shifted windows", windows, x, plan, rows);
  if (!file.empty()) {
    std::ofstream(file) << ordered_json{{"environment", sinter::bench::environment(place)}, {"rows", rows}}.dump(1)
                        << "\n";
  }
  return 0;
}
