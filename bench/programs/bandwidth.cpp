// sinter_bandwidth: kernels that should run as fast as memory allows (norms, softmax, reductions, movement, pooling),
// each compiled alone, beside eager and beside a copy of the same dtype. A case's bytes are the least that it must read
// and write. bench/peers/bandwidth.py measures the same cases under torch.compile. JSON to a file; --help says more.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <sinter/sinter.h>
#include <torch/csrc/autograd/autograd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/environment.h"
#include "bench/measure/timer.h"

namespace {

using at::Tensor;
using nlohmann::ordered_json;
using Tensors = std::vector<Tensor>;

struct Case {
  std::string name;
  std::function<Tensors()> inputs;
  std::function<Tensors(const Tensors&)> run;
  double bytes = 0;  ///< the least that must be read and written
  bool gradients = false;
};

constexpr int64_t kElements = int64_t{1} << 26;
constexpr double kEpsilon = 1e-5;

struct Place {
  c10::Device device = at::kCPU;
  int64_t elements = kElements;  ///< of the large tensors
};

Tensor drawn(at::IntArrayRef sizes, const Place& place, c10::ScalarType dtype) {
  return at::randn(sizes, at::TensorOptions(place.device).dtype(dtype));
}

double bytes_of(c10::ScalarType dtype) { return static_cast<double>(c10::elementSize(dtype)); }

std::string label(const std::string& what, c10::ScalarType dtype, int64_t columns) {
  return what + (dtype == at::kHalf ? " f16" : " f32") + " rows of " + std::to_string(columns);
}

/// A function of rows, of a weight and a bias of their length.
using RowFunction = std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias)>;

void add_rows(const std::string& name, const RowFunction& run, const Place& place, std::vector<Case>& cases) {
  for (const auto dtype : {at::kFloat, at::kHalf}) {
    for (const int64_t columns : {64, 256, 1024, 4096, 16384, 65536}) {
      const auto inputs = [=] {
        return Tensors{drawn({place.elements / columns, columns}, place, dtype), drawn({columns}, place, dtype),
                       drawn({columns}, place, dtype)};
      };
      const double tensor = bytes_of(dtype) * static_cast<double>(place.elements);
      cases.push_back({.name = label(name, dtype, columns),
                       .inputs = inputs,
                       .run = [run](const Tensors& in) { return Tensors{run(in[0], in[1], in[2])}; },
                       .bytes = 2 * tensor});
      const auto with_gradient = [=] {
        Tensors made = inputs();
        made.push_back(at::randn_like(made[0]));
        for (int i = 0; i < 3; ++i) made[i].set_requires_grad(true);
        return made;
      };
      const auto both = [run](const Tensors& in) {
        const Tensor y = run(in[0], in[1], in[2]);
        Tensors out = torch::autograd::grad({y}, {in[0], in[1], in[2]}, {in[3]}, std::nullopt, false, true);
        out.push_back(y.detach());
        std::erase_if(out, [](const Tensor& t) { return !t.defined(); });
        return out;
      };
      cases.push_back({.name = label(name + " forward and backward", dtype, columns),
                       .inputs = with_gradient,
                       .run = both,
                       .bytes = 5 * tensor,
                       .gradients = true});
    }
  }
}

void add_reductions(const Place& place, std::vector<Case>& cases) {
  for (const auto dtype : {at::kFloat, at::kHalf}) {
    const int64_t rows = place.elements / 8192;
    const auto inputs = [=] { return Tensors{drawn({rows, 8192}, place, dtype)}; };
    const double bytes = bytes_of(dtype) * static_cast<double>(place.elements);
    const std::string suffix = dtype == at::kHalf ? " f16" : " f32";
    cases.push_back(
        {"sum to a scalar" + suffix, inputs, [](const Tensors& in) { return Tensors{in[0].sum()}; }, bytes});
    cases.push_back({"sum of rows" + suffix, inputs, [](const Tensors& in) { return Tensors{in[0].sum(1)}; }, bytes});
    cases.push_back(
        {"sum of columns" + suffix, inputs, [](const Tensors& in) { return Tensors{in[0].sum(0)}; }, bytes});
  }
}

void add_movement(const Place& place, std::vector<Case>& cases) {
  const double tensor = 2.0 * static_cast<double>(place.elements);
  cases.push_back({"transpose f16", [=] { return Tensors{drawn({place.elements / 8192, 8192}, place, at::kHalf)}; },
                   [](const Tensors& in) { return Tensors{in[0].t().contiguous()}; }, 2 * tensor});
  const int64_t channels = std::max<int64_t>(1, place.elements / (16 * 56 * 56 * 64)) * 64;
  cases.push_back({"window partition and roll f16",
                   [=] { return Tensors{drawn({16, 56, 56, channels}, place, at::kHalf)}; },
                   [](const Tensors& in) {
                     const auto c = in[0].size(3);
                     return Tensors{at::roll(in[0], {-3, -3}, {1, 2})
                                        .view({16, 8, 7, 8, 7, c})
                                        .permute({0, 1, 3, 2, 4, 5})
                                        .reshape({16 * 64, 49, c})};
                   },
                   2 * 2.0 * static_cast<double>(16 * 56 * 56 * channels)});
}

void add_images(const Place& place, std::vector<Case>& cases) {
  const auto scaled = [&](int64_t batch) { return std::max<int64_t>(1, batch * place.elements / kElements); };
  const auto count = [](at::IntArrayRef sizes) { return static_cast<double>(c10::multiply_integers(sizes)); };
  for (const bool last : {false, true}) {
    const std::string suffix = last ? " f16 channels last" : " f16";
    const auto image = [=](at::IntArrayRef sizes) {
      const Tensor x = drawn(sizes, place, at::kHalf);
      return last ? x.contiguous(at::MemoryFormat::ChannelsLast) : x;
    };
    const int64_t b128 = scaled(128), b32 = scaled(32), b16 = scaled(16), b64 = scaled(64);
    cases.push_back({"max pool 3x3" + suffix, [=] { return Tensors{image({b128, 64, 112, 112})}; },
                     [](const Tensors& in) { return Tensors{at::max_pool2d(in[0], 3, 2, 1)}; },
                     2 * count({b128, 64, 112, 112}) * 1.25});
    cases.push_back({"depthwise 7x7" + suffix,
                     [=] {
                       return Tensors{image({b32, 192, 56, 56}), drawn({192, 1, 7, 7}, place, at::kHalf),
                                      drawn({192}, place, at::kHalf)};
                     },
                     [](const Tensors& in) { return Tensors{at::conv2d(in[0], in[1], in[2], 1, 3, 1, 192)}; },
                     2 * count({b32, 192, 56, 56}) * 2});
    cases.push_back({"group norm and SiLU" + suffix,
                     [=] {
                       return Tensors{image({b16, 320, 64, 64}), drawn({320}, place, at::kHalf),
                                      drawn({320}, place, at::kHalf)};
                     },
                     [](const Tensors& in) { return Tensors{at::silu(at::group_norm(in[0], 32, in[1], in[2]))}; },
                     2 * count({b16, 320, 64, 64}) * 2});
    const auto norm_inputs = [=] {
      Tensors in{image({b64, 256, 56, 56}), drawn({256}, place, at::kFloat), drawn({256}, place, at::kFloat),
                 at::zeros({256}, at::TensorOptions(place.device)), at::ones({256}, at::TensorOptions(place.device))};
      in.push_back(at::randn_like(in[0]));
      for (int i = 0; i < 3; ++i) in[i].set_requires_grad(true);
      return in;
    };
    // Forward: statistics need one pass before the result; backward: two sums before the gradient.
    cases.push_back({"batch norm forward and backward" + suffix, norm_inputs,
                     [](const Tensors& in) {
                       const Tensor y = at::batch_norm(in[0], in[1], in[2], in[3], in[4], true, 0.1, kEpsilon, true);
                       Tensors out = torch::autograd::grad({y}, {in[0], in[1], in[2]}, {in[5]});
                       out.push_back(y.detach());
                       return out;
                     },
                     2 * count({b64, 256, 56, 56}) * 8, true});
  }
}

/// Elements at places that tensors tell, or that are computed.
void add_places(const Place& place, std::vector<Case>& cases) {
  const auto places = [=](at::IntArrayRef sizes, int64_t end) {
    return at::randint(0, end, sizes, at::TensorOptions(place.device).dtype(at::kLong));
  };
  const int64_t words = place.elements / 1024, rows = place.elements / 256;
  const int64_t images = std::max<int64_t>(1, place.elements / 4194304);
  cases.push_back({"places: words and layer norm f16",
                   [=] {
                     return Tensors{drawn({32768, 768}, place, at::kHalf), places({words}, 32768),
                                    drawn({768}, place, at::kHalf), drawn({768}, place, at::kHalf)};
                   },
                   [](const Tensors& in) {
                     return Tensors{at::layer_norm(at::embedding(in[0], in[1]), {768}, in[2], in[3], kEpsilon)};
                   },
                   static_cast<double>(words) * (2 * 768 * 2 + 8)});
  cases.push_back({"places: rows of 128 f32",
                   [=] { return Tensors{drawn({rows, 128}, place, at::kFloat), places({rows}, rows)}; },
                   [](const Tensors& in) { return Tensors{in[0].index_select(0, in[1])}; },
                   static_cast<double>(rows) * (4 * 128 * 2 + 8)});
  cases.push_back({"places: an element each f16",
                   [=] { return Tensors{drawn({rows / 32, 4096}, place, at::kHalf), places({rows / 32, 4096}, 4096)}; },
                   [](const Tensors& in) { return Tensors{in[0].gather(1, in[1])}; },
                   static_cast<double>(rows) / 32 * 4096 * 12});
  cases.push_back(
      {"places: upper triangles f16", [=] { return Tensors{drawn({images, 2048, 2048}, place, at::kHalf)}; },
       [](const Tensors& in) { return Tensors{at::triu(in[0], 1)}; }, 4.0 * static_cast<double>(images * 2048 * 2048)});
  // Scores must be read twice, for the gradient needs what all of a row and all rows have in common.
  cases.push_back({"places: cross entropy forward and backward f32",
                   [=] {
                     Tensors in{drawn({place.elements / 32768, 32768}, place, at::kFloat),
                                places({place.elements / 32768}, 32768)};
                     in[0].set_requires_grad(true);
                     return in;
                   },
                   [](const Tensors& in) {
                     const Tensor loss = at::cross_entropy_loss(in[0], in[1]);
                     return Tensors{torch::autograd::grad({loss}, {in[0]})[0], loss.detach()};
                   },
                   3 * 4.0 * static_cast<double>(place.elements), true});
  for (const bool last : {false, true}) {
    const std::string suffix = last ? " f16 channels last" : " f16";
    const auto image = [=] {
      const Tensor x = drawn({images, 64, 64, 64}, place, at::kHalf);
      return Tensors{last ? x.contiguous(at::MemoryFormat::ChannelsLast) : x};
    };
    const double bytes = 2.0 * static_cast<double>(images) * 64 * (64 * 64 + 256 * 256);
    cases.push_back({"places: bilinear with aligned corners" + suffix, image,
                     [](const Tensors& in) { return Tensors{at::upsample_bilinear2d(in[0], {256, 256}, true)}; },
                     bytes});
    cases.push_back({"places: nearest by 1.5" + suffix, image,
                     [](const Tensors& in) { return Tensors{at::upsample_nearest2d(in[0], {96, 96})}; },
                     2.0 * static_cast<double>(images) * 64 * (64 * 64 + 96 * 96)});
  }
}

std::vector<Case> all_cases(const Place& place) {
  std::vector<Case> cases;
  add_rows("softmax", [](const Tensor& x, const Tensor&, const Tensor&) { return at::softmax(x, -1); }, place, cases);
  const auto layer_norm = [](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return at::layer_norm(x, {x.size(-1)}, weight, bias, kEpsilon);
  };
  add_rows("layer norm", layer_norm, place, cases);
  add_rows(
      "RMS norm",
      [](const Tensor& x, const Tensor& weight, const Tensor&) {
        return at::rms_norm(x, {x.size(-1)}, weight, kEpsilon);
      },
      place, cases);
  add_rows(
      "softmax and layer norm",
      [layer_norm](const Tensor& x, const Tensor& weight, const Tensor& bias) {
        return layer_norm(at::softmax(x, -1), weight, bias);
      },
      place, cases);
  add_reductions(place, cases);
  add_movement(place, cases);
  add_images(place, cases);
  add_places(place, cases);
  return cases;
}

double copy_bandwidth(const Place& place, c10::ScalarType dtype, double budget) {
  const Tensor from = drawn({place.elements}, place, dtype);
  Tensor to = at::empty_like(from);
  const auto timing = sinter::bench::steady(place.device, [&](int64_t) { to.copy_(from); }, budget);
  return 2 * bytes_of(dtype) * static_cast<double>(place.elements) / (timing.median * 1e-3);
}

/// Adds a row of eager and one of Sinter.
void measure(const Case& what, const Place& place, double copy, double budget, ordered_json& rows) {
  const c10::AutoGradMode mode(what.gradients);
  const Tensors inputs = what.inputs();
  const auto add = [&](const char* who, const std::function<void(int64_t)>& call) {
    const auto timing = sinter::bench::steady(place.device, call, budget);
    const double of_copy = what.bytes / (timing.median * 1e-3) / copy;
    rows.push_back({{"case", what.name},
                    {"mode", who},
                    {"bytes", what.bytes},
                    {"ms", timing.median},
                    {"quartiles", {timing.first_quartile, timing.third_quartile}},
                    {"percent_of_copy", 100 * of_copy}});
    std::printf("%-62s %-6s %8.3f ms  %5.1f %% of the copy's bandwidth\n", what.name.c_str(), who, timing.median,
                100 * of_copy);
    std::fflush(stdout);
  };
  add("eager", [&](int64_t) { (void)what.run(inputs); });
  auto fast =
      sinter::compile(what.run, {.mode = place.device.is_cuda() ? sinter::Mode::ReduceOverhead : sinter::Mode::Default,
                                 .compile_budget = std::numeric_limits<double>::infinity()});
  add("sinter", [&](int64_t) { (void)fast(inputs); });
}

}  // namespace

int main(int argc, char** argv) {
  std::string only, file, device = "cuda";
  double budget = 0.05;
  Place place;
  CLI::App app{"kernels bound by memory, beside a copy: eager and compiled"};
  app.add_option("--only", only, "cases whose names hold this");
  app.add_option("--device", device, "cpu or cuda");
  app.add_option("--elements", place.elements, "of the large tensors")->check(CLI::Range(int64_t{1} << 20, kElements));
  app.add_option("--budget", budget, "seconds of timing a measure")->check(CLI::PositiveNumber);
  app.add_option("--json", file, "the result file");
  CLI11_PARSE(app, argc, argv);
  place.device = c10::Device(device);
  at::manual_seed(1);
  const double f32 = copy_bandwidth(place, at::kFloat, budget), f16 = copy_bandwidth(place, at::kHalf, budget);
  std::printf("copies: f32 %.0f, f16 %.0f GB/s\n", f32 * 1e-9, f16 * 1e-9);
  ordered_json rows = ordered_json::array();
  for (const Case& what : all_cases(place)) {
    if (what.name.find(only) == std::string::npos) continue;
    measure(what, place, what.name.find("f16") == std::string::npos ? f32 : f16, budget, rows);
  }
  if (!file.empty()) {
    std::ofstream(file) << ordered_json{{"environment", sinter::bench::environment(place.device)},
                                        {"copy_bytes_per_s", {{"f32", f32}, {"f16", f16}}},
                                        {"rows", rows}}
                               .dump(1)
                        << "\n";
  }
  return 0;
}
