#include "groups.h"
#include "programs.h"

/// Sound and measured series: spectra, filters that remember, networks over time.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;

void a_low_pass_by_spectrum(Session& s) {
  auto f = s.compile([](const Tensor& x, double cutoff) {
    const Tensor spectrum = at::fft_rfft(x, {}, -1);
    const Tensor frequency = at::fft_rfftfreq(x.size(-1), 1.0, x.options());
    return at::fft_irfft(spectrum * (frequency < cutoff), x.size(-1), -1);
  });
  for (int call = 0; call < 9; ++call) f(s.randn({2, 32}), 0.1 * (1 + call % 3));
}

void frames_denoised(Session& s) {
  const Tensor window = at::hann_window(16, s.options());
  auto f = s.compile([&](const Tensor& x) {
    const Tensor frames =
        at::stft(x, 16, 4, 16, window, /*normalized=*/false, /*onesided=*/true, /*return_complex=*/true);
    const Tensor size = frames.abs();
    const Tensor gain = at::relu(1 - 0.5 * size.mean(-1, true) / (size + 1e-6));
    return at::istft(at::polar(size * gain, frames.angle()), 16, 4, 16, window, true, false, true, x.size(-1));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({1, 64}));
}

void an_envelope_by_the_analytic_signal(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    Tensor h = at::zeros({x.size(-1)}, x.options());
    h.slice(0, 1, x.size(-1) / 2).fill_(2);
    h[0] = 1;
    h[x.size(-1) / 2] = 1;
    const Tensor analytic = at::fft_ifft(at::fft_fft(x) * h);
    const Tensor phase = at::angle(analytic);
    return std::make_tuple(analytic.abs(), at::real(analytic), at::diff(phase).sin());
  });
  for (int call = 0; call < 8; ++call) f(s.randn({24}, at::kDouble));
}

/// One sample after the other through a filter of second order, its memory kept.
void a_filter_that_remembers(Session& s) {
  Tensor memory = at::zeros({2, 2}, s.options());
  s.watch("memory", &memory);
  auto f = s.compile([&](const Tensor& x) {
    Tensor y = at::empty_like(x);
    for (int64_t t = 0; t < x.size(1); ++t) {
      const Tensor out = 0.2 * x.select(1, t) + memory.select(0, 0);
      memory.select(0, 0).copy_(0.3 * x.select(1, t) - 0.4 * out + memory.select(0, 1));
      memory.select(0, 1).copy_(0.1 * x.select(1, t) - 0.2 * out);
      y.select(1, t).copy_(out);
    }
    return y;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 6}));
}

struct WaveImpl : nn::Module {
  WaveImpl() {
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t dilation = int64_t{1} << i;
      layers->push_back(nn::Conv1d(nn::Conv1dOptions(4, 8, 2).dilation(dilation)));
    }
    register_module("layers", layers);
  }
  Tensor forward(Tensor x) {
    Tensor skip = at::zeros_like(x);
    for (size_t i = 0; i < layers->size(); ++i) {
      const auto halves =
          layers->ptr<nn::Conv1dImpl>(i)->forward(at::constant_pad_nd(x, {int64_t{1} << i, 0}, 0)).chunk(2, 1);
      const Tensor gated = at::tanh(halves[0]) * at::sigmoid(halves[1]);
      skip += gated;
      x = x + gated;
    }
    return at::avg_pool1d(skip, 2);
  }
  nn::ModuleList layers;
};
TORCH_MODULE(Wave);

void dilated_layers_over_time(Session& s) {
  auto f = s.compile(s.adopt(Wave()));
  for (int call = 0; call < 9; ++call) f(s.randn({1, 4, 12 + 2 * (call % 3)}));
}

/// h = a h + b x by products and sums that run along.
void a_scan_by_cumulated_products(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& decay) {
    const Tensor logs = at::log_sigmoid(decay).cumsum(1);
    const Tensor scan = (x * at::exp(-logs)).cumsum(1) * at::exp(logs);
    const Tensor product = at::cumprod(at::sigmoid(decay), 1);
    return std::make_pair(scan, product.flip(1) + at::logcumsumexp(x, 1));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 7, 3}), s.randn({2, 7, 3}) + 2);
}

/// The same step by step, with a matrix for each input, as state space models do it.
void a_selective_scan(Session& s) {
  const at::AutoGradMode grad(true);
  auto project = s.adopt(nn::Linear(4, 4 + 3 + 3));
  const Tensor rates = s.randn({4, 3}).requires_grad_();
  auto f = s.compile([&](const Tensor& x) {
    project->zero_grad();
    const auto parts = project->forward(x).split_with_sizes({4, 3, 3}, -1);
    const Tensor step = at::softplus(parts[0]);
    const Tensor decay = at::exp(-at::einsum("bld,dn->bldn", {step, rates.exp()}));
    const Tensor drive = at::einsum("bld,bln,bld->bldn", {step, parts[1], x});
    Tensor state = at::zeros({x.size(0), 4, 3}, x.options());
    std::vector<Tensor> out;
    for (int64_t t = 0; t < x.size(1); ++t) {
      state = decay.select(1, t) * state + drive.select(1, t);
      out.push_back(at::einsum("bdn,bn->bd", {state, parts[2].select(1, t)}));
    }
    const Tensor y = at::stack(out, 1);
    y.square().mean().backward();
    return y.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 5, 4}));
}

void sound_in_eight_bits(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor loud = x.sign() * at::log1p(255 * x.abs()) / std::log(256.0);
    const Tensor code = ((loud + 1) / 2 * 255 + 0.5).to(at::kByte);
    const Tensor back = code.to(at::kFloat) / 255 * 2 - 1;
    return std::make_pair(code, back.sign() * (at::pow(256.0, back.abs()) - 1) / 255);
  });
  for (int call = 0; call < 8; ++call) f(at::tanh(s.randn({40})));
}

void a_series_aligned_to_another(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    const Tensor cost = (a.unsqueeze(1) - b.unsqueeze(0)).abs();
    const double far = std::numeric_limits<double>::infinity();
    Tensor table = at::full({a.size(0) + 1, b.size(0) + 1}, far, a.options());
    table[0][0] = 0;
    for (int64_t i = 0; i < a.size(0); ++i) {
      for (int64_t j = 0; j < b.size(0); ++j) {
        table[i + 1][j + 1] = cost[i][j] + at::min(at::min(table[i][j], table[i][j + 1]), table[i + 1][j]);
      }
    }
    return table[-1][-1];
  });
  for (int call = 0; call < 8; ++call) f(s.randn({3}), s.randn({4}));
}

void correlated_with_itself(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& filter) {
    const Tensor spectrum = at::fft_fft(x, 2 * x.size(0));
    const Tensor power = spectrum * spectrum.conj();
    const Tensor lags = at::real(at::fft_ifft(power)).slice(0, 0, x.size(0));
    const Tensor filtered = at::conv1d(x.view({1, 1, -1}), filter.flip(0).view({1, 1, -1}), {}, 2, 1);
    return std::make_pair(lags / lags[0], filtered.flatten());
  });
  for (int call = 0; call < 8; ++call) f(s.randn({20}), s.randn({3}));
}

const Program programs[] = {
    {"a_low_pass_by_spectrum", a_low_pass_by_spectrum},
    {"frames_denoised", frames_denoised},
    {"an_envelope_by_the_analytic_signal", an_envelope_by_the_analytic_signal},
    {"a_filter_that_remembers", a_filter_that_remembers},
    {"dilated_layers_over_time", dilated_layers_over_time},
    {"a_scan_by_cumulated_products", a_scan_by_cumulated_products},
    {"a_selective_scan", a_selective_scan},
    {"sound_in_eight_bits", sound_in_eight_bits},
    {"a_series_aligned_to_another", a_series_aligned_to_another},
    {"correlated_with_itself", correlated_with_itself},
};

}  // namespace

std::span<const Program> signal_programs() { return programs; }

}  // namespace sinter::test::hostile
