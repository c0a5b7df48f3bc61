#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/meshgrid.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/stack.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/adaptive.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>

#include <array>
#include <cmath>

#include "bench/models/layers.h"
#include "bench/models/zoo.h"

namespace sinter::bench {
namespace {

constexpr int64_t window = 7;
constexpr int64_t window_tokens = window * window;

using at::indexing::Ellipsis;
using at::indexing::None;
using at::indexing::Slice;

torch::nn::LayerNorm layer_norm(int64_t width) { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})); }

/// For each pair of places in a window, the row of the table of biases: i64[window_tokens^2].
at::Tensor relative_positions() {
  const at::Tensor axis = at::arange(window);
  const at::Tensor places = at::stack(at::meshgrid({axis, axis}, "ij")).flatten(1);
  const at::Tensor offsets = places.unsqueeze(2) - places.unsqueeze(1) + (window - 1);
  return (offsets[0] * (2 * window - 1) + offsets[1]).flatten();
}

/// How [batch, height, width, channels] is cut into windows: padded to whole ones and, where there are several along an
/// axis, shifted by half a window.
struct Windows {
  Windows(const at::Tensor& x, bool shifted) : batch(x.size(0)), height(x.size(1)), width(x.size(2)) {
    rows = (height + window - 1) / window;
    columns = (width + window - 1) / window;
    shift_rows = shifted && rows > 1 ? window / 2 : 0;
    shift_columns = shifted && columns > 1 ? window / 2 : 0;
  }

  [[nodiscard]] bool shifts() const { return shift_rows + shift_columns > 0; }

  /// -> [batch * windows, window_tokens, channels].
  [[nodiscard]] at::Tensor cut(const at::Tensor& x) const {
    at::Tensor whole = at::pad(x, {0, 0, 0, columns * window - width, 0, rows * window - height});
    if (shifts()) whole = at::roll(whole, {-shift_rows, -shift_columns}, {1, 2});
    return whole.view({batch, rows, window, columns, window, x.size(3)})
        .permute({0, 1, 3, 2, 4, 5})
        .reshape({batch * rows * columns, window_tokens, x.size(3)});
  }

  /// The inverse of cut().
  [[nodiscard]] at::Tensor join(const at::Tensor& windows) const {
    const int64_t channels = windows.size(2);
    at::Tensor whole = windows.view({batch, rows, columns, window, window, channels})
                           .permute({0, 1, 3, 2, 4, 5})
                           .reshape({batch, rows * window, columns * window, channels});
    if (shifts()) whole = at::roll(whole, {shift_rows, shift_columns}, {1, 2});
    return whole.narrow(1, 0, height).narrow(2, 0, width).contiguous();
  }

  /// [windows, window_tokens, window_tokens]: -100 between tokens that only the shift made neighbours, 0 elsewhere.
  [[nodiscard]] at::Tensor mask(const at::TensorOptions& options) const {
    at::Tensor region = at::zeros({rows * window, columns * window}, options);
    const auto row_parts = parts(shift_rows);
    const auto column_parts = parts(shift_columns);
    double id = 0;
    for (const Slice& row : row_parts) {
      for (const Slice& column : column_parts) region.index({row, column}).fill_(id++);
    }
    region = region.view({rows, window, columns, window}).permute({0, 2, 1, 3}).reshape({-1, window_tokens});
    const at::Tensor distance = region.unsqueeze(1) - region.unsqueeze(2);
    return distance.masked_fill(distance != 0, -100.0).masked_fill(distance == 0, 0.0);
  }

  int64_t batch, height, width, rows = 0, columns = 0, shift_rows = 0, shift_columns = 0;

 private:
  static std::array<Slice, 3> parts(int64_t shift) {
    return {Slice(0, -window), Slice(-window, -shift), Slice(-shift, None)};
  }
};

struct ShiftedWindowAttentionImpl : torch::nn::Module {
  ShiftedWindowAttentionImpl(int64_t width, int64_t head_count, bool shift) : heads(head_count), shifted(shift) {
    constexpr int64_t offsets = (2 * window - 1) * (2 * window - 1);
    relative_position_bias_table = register_parameter("relative_position_bias_table", torch::empty({offsets, heads}));
    relative_position_index = register_buffer("relative_position_index", relative_positions());
    qkv = register_module("qkv", torch::nn::Linear(width, 3 * width));
    proj = register_module("proj", torch::nn::Linear(width, width));
  }

  /// [batch, height, width, channels] -> the same.
  at::Tensor forward(const at::Tensor& x) {
    const Windows windows(x, shifted);
    const at::Tensor tokens = windows.cut(x);
    const int64_t count = tokens.size(0);
    const int64_t channels = tokens.size(2);
    const at::Tensor parts =
        qkv->forward(tokens).reshape({count, window_tokens, 3, heads, channels / heads}).permute({2, 0, 3, 1, 4});
    const at::Tensor query = parts[0] * std::pow(static_cast<double>(channels / heads), -0.5);
    at::Tensor scores = query.matmul(parts[1].transpose(-2, -1)) + bias();
    if (windows.shifts()) {
      scores = scores.view({windows.batch, -1, heads, window_tokens, window_tokens}) +
               windows.mask(x.options()).unsqueeze(1).unsqueeze(0);
      scores = scores.view({-1, heads, window_tokens, window_tokens});
    }
    const at::Tensor mixed = scores.softmax(-1).matmul(parts[2]).transpose(1, 2).reshape(tokens.sizes());
    return windows.join(proj->forward(mixed));
  }

  int64_t heads;
  bool shifted;
  at::Tensor relative_position_bias_table, relative_position_index;
  torch::nn::Linear qkv{nullptr}, proj{nullptr};

 private:
  /// [1, heads, window_tokens, window_tokens].
  at::Tensor bias() const {
    return relative_position_bias_table.index({relative_position_index})
        .view({window_tokens, window_tokens, -1})
        .permute({2, 0, 1})
        .contiguous()
        .unsqueeze(0);
  }
};
TORCH_MODULE(ShiftedWindowAttention);

struct SwinBlockImpl : torch::nn::Module {
  SwinBlockImpl(int64_t width, int64_t heads, bool shifted) {
    norm1 = register_module("norm1", layer_norm(width));
    attn = register_module("attn", ShiftedWindowAttention(width, heads, shifted));
    norm2 = register_module("norm2", layer_norm(width));
    mlp = register_module(
        "mlp", torch::nn::Sequential(torch::nn::Linear(width, 4 * width), torch::nn::GELU(), torch::nn::Dropout(0.0),
                                     torch::nn::Linear(4 * width, width), torch::nn::Dropout(0.0)));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor attended = x + attn->forward(norm1->forward(x));
    return attended + mlp->forward(norm2->forward(attended));
  }

  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  ShiftedWindowAttention attn{nullptr};
  torch::nn::Sequential mlp{nullptr};
};
TORCH_MODULE(SwinBlock);

/// [batch, height, width, channels] -> [batch, height / 2, width / 2, 2 * channels], halves rounded up.
struct PatchMergingImpl : torch::nn::Module {
  explicit PatchMergingImpl(int64_t width) {
    reduction =
        register_module("reduction", torch::nn::Linear(torch::nn::LinearOptions(4 * width, 2 * width).bias(false)));
    norm = register_module("norm", layer_norm(4 * width));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor even = at::pad(x, {0, 0, 0, x.size(2) % 2, 0, x.size(1) % 2});
    const auto from = [&](int64_t row, int64_t column) {
      return even.index({Ellipsis, Slice(row, None, 2), Slice(column, None, 2), Slice()});
    };
    return reduction->forward(norm->forward(at::cat({from(0, 0), from(1, 0), from(0, 1), from(1, 1)}, -1)));
  }

  torch::nn::Linear reduction{nullptr};
  torch::nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(PatchMerging);

struct Shape {
  int64_t width;  ///< of the first stage; every stage doubles it
  std::array<int64_t, 4> depths;
  std::array<int64_t, 4> heads;
};

struct SwinImpl : torch::nn::Module {
  explicit SwinImpl(const Shape& shape) {
    features = register_module("features", torch::nn::Sequential());
    const auto patches = torch::nn::Conv2dOptions(3, shape.width, 4).stride(4);
    features->push_back(Stage(torch::nn::Conv2d(patches), permute({0, 2, 3, 1}), layer_norm(shape.width)));
    int64_t width = shape.width;
    for (size_t stage = 0; stage < shape.depths.size(); ++stage) {
      if (stage > 0) {
        features->push_back(PatchMerging(width));
        width *= 2;
      }
      Stage blocks;
      for (int64_t i = 0; i < shape.depths[stage]; ++i) {
        blocks->push_back(SwinBlock(width, shape.heads[stage], i % 2 == 1));
      }
      features->push_back(blocks);
    }
    norm = register_module("norm", layer_norm(width));
    avgpool = torch::nn::AdaptiveAvgPool2d(torch::nn::AdaptiveAvgPool2dOptions(1));
    head = register_module("head", torch::nn::Linear(width, 1000));
    randomise(*this);
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor normed = norm->forward(features->forward(x)).permute({0, 3, 1, 2});
    return head->forward(avgpool->forward(normed).flatten(1));
  }

  torch::nn::Sequential features{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::AdaptiveAvgPool2d avgpool{nullptr};
  torch::nn::Linear head{nullptr};
};

Model make(const Shape& shape) {
  auto module = std::make_shared<SwinImpl>(shape);
  module->eval();
  return {module, [module](const std::vector<at::Tensor>& inputs) { return module->forward(inputs.at(0)); }};
}

}  // namespace

Model make_swin_t(const Settings& settings) {
  return make({.width = integer_of(settings, "width"),
               .depths = {2, 2, integer_of(settings, "depth"), 2},
               .heads = {3, 6, 12, 24}});
}

Model make_swin_b(const Settings& settings) {
  return make({.width = integer_of(settings, "width"),
               .depths = {2, 2, integer_of(settings, "depth"), 2},
               .heads = {4, 8, 16, 32}});
}

}  // namespace sinter::bench
