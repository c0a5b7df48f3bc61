// sinter_programs: programs whose course, shapes or state change from call to call, which a compiler is tempted to
// record again and again. Total time of many calls, recording and compiling included: eager and checked, in turns. JSON
// to a file or to standard output; --help says more.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sinter/sinter.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "bench/measure/environment.h"

namespace {

using at::Tensor;
using nlohmann::ordered_json;

/// A run of a program: its state and its callable. `step(i)` is its i-th call.
struct Run {
  std::function<void(int)> step;
  std::function<int64_t()> replayed = [] { return int64_t{0}; };
  std::function<sinter::Report()> report = [] { return sinter::Report{}; };
};

/// Makes the callable of a run: as it is, or compiled.
struct Maker {
  bool compiles = false;

  template <class Callable, class Step>
  [[nodiscard]] Run make(Callable callable, Step step) const {
    if (!compiles) return {[=](int call) mutable { step(callable, call); }};
    auto compiled = std::make_shared<decltype(sinter::compile(callable))>(sinter::compile(callable));
    return {[=](int call) mutable { step(*compiled, call); }, [=] { return compiled->stats().replayed; },
            [=] { return compiled->report(); }};
  }
};

Run suppression(const Maker& maker) {  // greedy non-maximum suppression
  const Tensor boxes = at::rand({24, 2}).repeat({1, 2}) + at::tensor({0.0, 0.0, 0.2, 0.2});
  const auto keep = [](const Tensor& b, const Tensor& scores) {
    std::vector<int64_t> kept;
    Tensor order = scores.argsort(0, /*descending=*/true);
    while (order.numel() > 0) {
      const int64_t best = order[0].item<int64_t>();
      kept.push_back(best);
      const Tensor rest = b.index_select(0, order);
      const Tensor low = at::maximum(b[best].slice(0, 0, 2), rest.slice(1, 0, 2));
      const Tensor high = at::minimum(b[best].slice(0, 2, 4), rest.slice(1, 2, 4));
      const Tensor overlap = (high - low).clamp_min(0).prod(1) / 0.04;
      order = order.masked_select(overlap < 0.5);
    }
    return static_cast<int64_t>(kept.size());
  };
  return maker.make(keep, [=](auto& f, int) { (void)f(boxes, at::rand({24})); });
}

Run one_hot(const Maker& maker) {  // as many classes as the largest label
  const auto classes = [](const Tensor& labels) { return at::one_hot(labels); };
  return maker.make(classes, [](auto& f, int) { (void)f(at::randint(10, {16}, at::kLong)); });
}

Run positions(const Maker& maker) {  // a table of positions for each length, made when it is first met
  auto tables = std::make_shared<std::map<int64_t, Tensor>>();
  const auto add = [tables](const Tensor& x) {
    Tensor& table = (*tables)[x.size(0)];
    if (!table.defined()) {
      const Tensor place = at::arange(x.size(0), at::kFloat).unsqueeze(1);
      const Tensor rate = at::exp(at::arange(x.size(1), at::kFloat) * -0.1);
      table = at::sin(place * rate);
    }
    return x + table;
  };
  return maker.make(add, [](auto& f, int call) { (void)f(at::rand({8 + call % 60, 32})); });
}

Run distillation(const Maker& maker) {  // a student learns from a frozen teacher
  namespace nn = torch::nn;
  const auto net = [](int64_t width) {
    return nn::Sequential(nn::Linear(32, width), nn::ReLU(), nn::Linear(width, 10));
  };
  nn::Sequential teacher = net(64), student = net(16);
  auto optimizer = std::make_shared<torch::optim::SGD>(student->parameters(), torch::optim::SGDOptions(0.1));
  const auto learn = [=](const Tensor& x) mutable {
    Tensor wanted;
    {
      const at::NoGradGuard no_grad;
      wanted = at::softmax(teacher->forward(x) / 2, 1);
    }
    optimizer->zero_grad();
    const Tensor loss = -(wanted * at::log_softmax(student->forward(x) / 2, 1)).sum(1).mean();
    loss.backward();
    optimizer->step();
    return loss.detach();
  };
  return maker.make(learn, [](auto& f, int) { (void)f(at::rand({16, 32})); });
}

Run teacher_forcing(const Maker& maker) {  // a decoder that flips a coin for each word
  const Tensor in = at::rand({32, 32}) * 0.1, back = at::rand({32, 32}) * 0.1, words = at::rand({50, 32});
  auto coin = std::make_shared<std::mt19937>(7);
  const auto decode = [=](const Tensor& sentence) {
    Tensor state = at::zeros({1, 32}), word = words[0].unsqueeze(0);
    for (int64_t i = 0; i < sentence.size(0); ++i) {
      state = at::tanh(at::mm(word, in) + at::mm(state, back));
      const bool forced = ((*coin)() & 1) != 0;
      word = forced ? words.index_select(0, sentence[i].unsqueeze(0)) : at::softmax(state, 1).mm(words.slice(0, 0, 32));
    }
    return state;
  };
  return maker.make(decode, [](auto& f, int) { (void)f(at::randint(50, {10}, at::kLong)); });
}

Run replaced(const Maker& maker) {  // a closed-over tensor is another one before each call
  auto weight = std::make_shared<Tensor>(at::rand({64}));
  const auto scale = [weight](const Tensor& x) { return x * *weight + 1; };
  return maker.make(scale, [weight](auto& f, int) {
    *weight = at::rand({64});
    (void)f(at::rand({64, 64}));
  });
}

Run k_means(const Maker& maker) {
  const auto cluster = [](const Tensor& points) {
    Tensor centres = points.slice(0, 0, 4).clone();
    for (int i = 0; i < 50; ++i) {
      const Tensor nearest = at::cdist(points, centres).argmin(1);
      const Tensor member = at::one_hot(nearest, 4).to(at::kFloat);
      const Tensor next = member.t().mm(points) / member.sum(0).clamp_min(1).unsqueeze(1);
      const bool same = (next - centres).abs().max().item<float>() < 1e-4F;
      centres = next;
      if (same) break;
    }
    return centres;
  };
  return maker.make(cluster, [](auto& f, int) { (void)f(at::rand({200, 2})); });
}

Run power_iteration(const Maker& maker) {
  const auto largest = [](const Tensor& matrix) {
    Tensor v = at::ones({matrix.size(0)}, matrix.options());
    float before = 0;
    for (int i = 0; i < 200; ++i) {
      v = at::mv(matrix, v);
      const Tensor norm = v.norm();
      v = v / norm;
      const auto now = norm.item<float>();
      if (std::abs(now - before) < 1e-6F * now) break;
      before = now;
    }
    return v;
  };
  return maker.make(largest, [](auto& f, int) { (void)f(at::rand({64, 64})); });
}

Run conjugate_gradients(const Maker& maker) {
  const auto solve = [](const Tensor& a, const Tensor& b) {
    Tensor x = at::zeros_like(b), r = b.clone(), p = r.clone(), rr = at::dot(r, r);
    for (int i = 0; i < 64 && rr.item<float>() > 1e-8F; ++i) {
      const Tensor ap = at::mv(a, p);
      const Tensor alpha = rr / at::dot(p, ap);
      x = x + alpha * p;
      r = r - alpha * ap;
      const Tensor next = at::dot(r, r);
      p = r + next / rr * p;
      rr = next;
    }
    return x;
  };
  return maker.make(solve, [](auto& f, int) {
    const Tensor m = at::rand({48, 48});
    (void)f(m.mm(m.t()) + at::eye(48), at::rand({48}));
  });
}

Run newton(const Maker& maker) {
  const auto root = [](const Tensor& a) {
    Tensor x = a.clone();
    for (int i = 0; i < 60; ++i) {
      const Tensor step = (x * x * x - a) / (3 * x * x);
      x = x - step;
      if (step.abs().max().item<float>() < 1e-6F) break;
    }
    return x;
  };
  return maker.make(root, [](auto& f, int) { (void)f(at::rand({1000}) + 0.5); });
}

Run mandelbrot(const Maker& maker) {
  const Tensor re = at::linspace(-2, 0.5, 64).unsqueeze(0).expand({64, 64});
  const Tensor im = at::linspace(-1.2, 1.2, 64).unsqueeze(1).expand({64, 64});
  const auto draw = [=](double zoom) {
    const Tensor cx = re * zoom, cy = im * zoom;
    Tensor x = at::zeros_like(cx), y = at::zeros_like(cy), count = at::zeros_like(cx);
    for (int i = 0; i < 40; ++i) {
      const Tensor inside = (x * x + y * y) < 4;
      if (!inside.any().item<bool>()) break;
      const Tensor next = at::where(inside, x * x - y * y + cx, x);
      y = at::where(inside, 2 * x * y + cy, y);
      x = next;
      count = count + inside.to(at::kFloat);
    }
    return count;
  };
  return maker.make(draw, [](auto& f, int call) { (void)f(1 + 0.01 * (call % 100)); });
}

struct Program {
  const char* name;
  Run (*make)(const Maker&);
  bool gradients = false;
};

constexpr Program programs[] = {{"non-maximum suppression", suppression},
                                {"one-hot with automatic classes", one_hot},
                                {"positional table cached by length", positions},
                                {"distillation", distillation, true},
                                {"decoder with teacher forcing", teacher_forcing},
                                {"closed-over tensor replaced", replaced},
                                {"k-means", k_means},
                                {"power iteration", power_iteration},
                                {"conjugate gradients", conjugate_gradients},
                                {"Newton's method", newton},
                                {"Mandelbrot set", mandelbrot}};

double seconds_of(Run& run, int first, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int call = first; call < first + calls; ++call) run.step(call);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

ordered_json measure(const Program& program, int calls) {
  const at::AutoGradMode gradients(program.gradients);
  const std::pair<const char*, Maker> ways[] = {{"eager", {}}, {"checked", {.compiles = true}}};
  std::vector<Run> runs;
  std::vector<double> seconds(std::size(ways));
  for (const auto& [name, maker] : ways) {
    at::manual_seed(3);
    runs.push_back(program.make(maker));
  }
  constexpr int block = 50;
  for (int first = 0; first < calls; first += block) {
    for (size_t i = 0; i < runs.size(); ++i) {
      at::manual_seed(static_cast<uint64_t>(first));
      seconds[i] += seconds_of(runs[i], first, std::min(block, calls - first));
    }
  }
  ordered_json row{{"program", program.name}, {"calls", calls}};
  for (size_t i = 0; i < runs.size(); ++i) {
    row[ways[i].first] = {{"ms_a_call", seconds[i] / calls * 1e3},
                          {"of_eager", seconds[i] / seconds[0]},
                          {"replayed", runs[i].replayed()},
                          {"notes", runs[i].report().notes}};
  }
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  int calls = 1000;
  std::string only, file;
  CLI::App app{"programs whose course changes from call to call: eager and checked"};
  app.add_option("--calls", calls, "of each program")->check(CLI::PositiveNumber);
  app.add_option("--only", only, "programs whose names hold this");
  app.add_option("--json", file, "the result file");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  ordered_json rows = ordered_json::array();
  for (const Program& program : programs) {
    if (std::string(program.name).find(only) == std::string::npos) continue;
    rows.push_back(measure(program, calls));
    const auto& row = rows.back();
    std::printf("%-34s eager %8.3f ms   checked %6.2fx  (%ld of %d calls replayed)\n", program.name,
                row["eager"]["ms_a_call"].get<double>(), row["checked"]["of_eager"].get<double>(),
                row["checked"]["replayed"].get<int64_t>(), calls);
    std::fflush(stdout);
  }
  if (!file.empty()) {
    std::ofstream(file)
        << ordered_json{{"environment", sinter::bench::environment(c10::Device(c10::kCPU))}, {"rows", rows}}.dump(1)
        << "\n";
  }
  return 0;
}
