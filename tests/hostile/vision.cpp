#include "groups.h"
#include "programs.h"

/// Images: detectors, networks that halve and double sizes, warps, filters and masks.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct UNetImpl : nn::Module {
  UNetImpl() {
    down1 = register_module("down1", nn::Conv2d(nn::Conv2dOptions(1, 4, 3).padding(1)));
    down2 = register_module("down2", nn::Conv2d(nn::Conv2dOptions(4, 8, 3).padding(1)));
    up = register_module("up", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 4, 2).stride(2)));
    last = register_module("last", nn::Conv2d(nn::Conv2dOptions(8, 2, 1)));
    norm = register_module("norm", nn::GroupNorm(nn::GroupNormOptions(2, 8)));
  }
  Tensor forward(const Tensor& x) {
    const Tensor a = at::relu(down1->forward(x));
    const Tensor b = at::silu(norm->forward(down2->forward(at::max_pool2d(a, 2))));
    return last->forward(at::cat({a, up->forward(b)}, 1));
  }
  nn::Conv2d down1{nullptr}, down2{nullptr}, last{nullptr};
  nn::ConvTranspose2d up{nullptr};
  nn::GroupNorm norm{nullptr};
};
TORCH_MODULE(UNet);

void a_u_net_over_images_of_several_sizes(Session& s) {
  auto f = s.compile(s.adopt(UNet()));
  for (int call = 0; call < 8; ++call) f(s.randn({1, 1, 8 + 4 * (call / 4), 8}));
}

void an_image_warped(Session& s) {
  auto f = s.compile([](const Tensor& image, const Tensor& angle) {
    const Tensor zero = at::zeros_like(angle);
    const Tensor rows = at::stack({angle.cos(), -angle.sin(), zero, angle.sin(), angle.cos(), zero}, -1);
    const Tensor grid = F::affine_grid(rows.view({-1, 2, 3}), image.sizes(), false);
    return F::grid_sample(
        image, grid,
        F::GridSampleFuncOptions().mode(torch::kBilinear).padding_mode(torch::kBorder).align_corners(false));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 3, 6, 7}), s.randn({2}));
}

void an_image_taken_apart_and_put_together(Session& s) {
  auto f = s.compile([](const Tensor& image) {
    const Tensor columns = F::unfold(image, F::UnfoldFuncOptions({3, 3}).padding(1));
    const Tensor middle = std::get<0>(columns.view({image.size(0), image.size(1), 9, -1}).median(2));
    const Tensor back = F::fold(columns, F::FoldFuncOptions({image.size(2), image.size(3)}, {3, 3}).padding(1));
    return std::make_pair(middle.view_as(image), back);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 2, 5, 6}));
}

void an_image_enlarged_in_several_ways(Session& s) {
  auto f = s.compile([](const Tensor& image, int64_t factor) {
    const std::vector<double> by{static_cast<double>(factor), static_cast<double>(factor)};
    const auto sized = F::InterpolateFuncOptions().scale_factor(by);
    auto nearest = sized, linear = sized, cubic = sized;
    const Tensor a = F::interpolate(image, nearest.mode(torch::kNearest));
    const Tensor b = F::interpolate(image, linear.mode(torch::kBilinear).align_corners(false));
    const Tensor c = F::interpolate(image, cubic.mode(torch::kBicubic).align_corners(true));
    return std::vector<Tensor>{a, b, c, at::pixel_unshuffle(a, factor), at::adaptive_avg_pool2d(b, {3, 2})};
  });
  for (int call = 0; call < 8; ++call) f(s.randn({1, 2, 4, 6}), 2);
}

void edges_found(Session& s) {
  const Tensor sobel = at::tensor({-1, 0, 1, -2, 0, 2, -1, 0, 1}, at::kFloat).view({1, 1, 3, 3}).to(s.device());
  const Tensor both = at::cat({sobel, sobel.transpose(2, 3)}).repeat({3, 1, 1, 1});
  auto f = s.compile([&](const Tensor& image) {
    const Tensor slopes =
        at::conv2d(at::pad(image, {1, 1, 1, 1}, "reflect"), both, Tensor(), 1, at::IntArrayRef(0), 1, 3);
    const Tensor parts = slopes.unflatten(1, {3, 2});
    const Tensor size = parts.square().sum(2).sqrt();
    const Tensor thick = -at::max_pool2d(-at::max_pool2d((size > 1).to(at::kFloat), 3, 1, 1), 3, 1, 1);
    return std::make_tuple(size, at::atan2(parts.select(2, 0), parts.select(2, 1)), thick.to(at::kByte));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({1, 3, 8, 9}));
}

void bytes_to_a_network_and_back(Session& s) {
  auto layer = s.adopt(nn::Conv2d(nn::Conv2dOptions(3, 3, 3).padding(1)));
  const Tensor mean = s.randn({3, 1, 1}) * 0.1, spread = s.randn({3, 1, 1}).abs() + 1;
  auto f = s.compile([&](const Tensor& bytes) {
    const Tensor image = bytes.permute({0, 3, 1, 2}).to(at::kFloat).div(255);
    const Tensor out = layer->forward((image - mean) / spread);
    return (at::sigmoid(out) * 255).round().clamp(0, 255).to(at::kByte).permute({0, 2, 3, 1}).contiguous();
  });
  for (int call = 0; call < 8; ++call) f(s.integers(256, {1, 6, 5, 3}, at::kByte));
}

void a_histogram_equalised(Session& s) {
  auto f = s.compile([](const Tensor& image) {
    const Tensor counts = at::bincount(image.flatten(), {}, 256);
    const Tensor sums = counts.cumsum(0);
    const Tensor table = (sums * 255).div(sums[-1], "floor").to(at::kByte);
    return table.index({image}).view_as(image);
  });
  for (int call = 0; call < 8; ++call) f(s.integers(200, {9, 10}));
}

/// Pieces of several sizes, cut at places that the host reads.
void pieces_cut_out(Session& s) {
  auto f = s.compile([](const Tensor& image, const Tensor& boxes) {
    std::vector<Tensor> pieces;
    const auto at = boxes.accessor<int64_t, 2>();
    for (int64_t i = 0; i < boxes.size(0); ++i) {
      const Tensor piece = image.slice(1, at[i][0], at[i][2]).slice(2, at[i][1], at[i][3]);
      pieces.push_back(std::get<0>(at::adaptive_max_pool2d(piece, {2, 2})));
    }
    return at::stack(pieces);
  });
  const Tensor boxes = at::tensor({0, 0, 4, 4, 2, 1, 6, 7, 1, 3, 3, 8}, at::kLong).view({3, 4});
  for (int call = 0; call < 8; ++call) f(s.randn({2, 8, 8}), boxes.roll(call % 2, 0));
}

void masks_painted_in_place(Session& s) {
  Tensor canvas = at::zeros({3, 8, 8}, s.options());
  s.watch("canvas", &canvas);
  auto f = s.compile([&](const Tensor& mask, const Tensor& color) {
    canvas.mul_(0.9);
    canvas.masked_fill_(mask, 1.0);
    canvas.index_put_({torch::indexing::Slice(), 2, torch::indexing::Slice(1, 5)}, color);
    canvas.select(0, 1).diagonal().zero_();
    return canvas.clamp(0, 1).mul(255).to(at::kByte);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({8, 8}) > 1, s.randn({3, 1}));
}

const Program programs[] = {
    {"a_u_net_over_images_of_several_sizes", a_u_net_over_images_of_several_sizes},
    {"an_image_warped", an_image_warped},
    {"an_image_taken_apart_and_put_together", an_image_taken_apart_and_put_together},
    {"an_image_enlarged_in_several_ways", an_image_enlarged_in_several_ways},
    {"edges_found", edges_found},
    {"bytes_to_a_network_and_back", bytes_to_a_network_and_back},
    {"a_histogram_equalised", a_histogram_equalised},
    {"pieces_cut_out", pieces_cut_out},
    {"masks_painted_in_place", masks_painted_in_place},
};

}  // namespace

std::span<const Program> vision_programs() { return programs; }

}  // namespace sinter::test::hostile
