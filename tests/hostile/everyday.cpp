#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/parameterdict.h>

#include <map>
#include <optional>

#include "groups.h"
#include "programs.h"

/// What programs of every trade do: cells by hand, containers of modules, structs in and out, odd sizes, quantised
/// numbers, sorting.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;

struct Detection {
  Tensor boxes;
  std::optional<Tensor> masks;
  int64_t count = 0;
};

void a_struct_in_and_out(Session& s) {
  auto f = s.compile([](const Detection& in, double threshold) {
    Detection out{.boxes = in.boxes * 2, .masks = {}, .count = in.count + 1};
    if (in.masks) out.masks = *in.masks > threshold;
    return out;
  });
  for (int call = 0; call < 10; ++call) {
    Detection in{.boxes = s.randn({3, 4}), .masks = {}, .count = call % 2};
    if (call % 3 == 0) in.masks = s.randn({3, 5});
    const auto out = f(in, 0.5);
    if (!out) continue;
    s.show("boxes", out->boxes);
    s.show("masks", out->masks.value_or(Tensor()));
    s.show("count", std::to_string(out->count));
  }
}

/// Gates computed by hand over a sequence; the state is returned and given again.
void a_cell_by_hand(Session& s) {
  const Tensor w = s.randn({7, 16}) * 0.3, b = s.randn({16}) * 0.1;
  auto f = s.compile([&](const Tensor& x, const std::pair<Tensor, Tensor>& state) {
    auto [h, c] = state;
    for (const Tensor& now : x.unbind(0)) {
      const auto gates = at::addmm(b, at::cat({now, h}, 1), w).chunk(4, 1);
      c = at::sigmoid(gates[1]) * c + at::sigmoid(gates[0]) * at::tanh(gates[2]);
      h = at::sigmoid(gates[3]) * at::tanh(c);
    }
    return std::make_pair(h, c);
  });
  std::pair state(at::zeros({2, 4}, s.options()), at::zeros({2, 4}, s.options()));
  for (int call = 0; call < 8; ++call) {
    const auto next = f(s.randn({3, 2, 3}), state);
    if (next) state = *next;
  }
}

struct MixtureImpl : nn::Module {
  MixtureImpl() {
    for (int64_t i = 0; i < 3; ++i) experts->push_back(nn::Sequential(nn::Linear(4, 5), nn::ReLU(), nn::Linear(5, 4)));
    register_module("experts", experts);
    register_module("scales", scales);
    scales->insert("in", at::ones({4}));
    scales->insert("out", at::ones({4}));
    gate = register_module("gate", nn::Linear(4, 3));
  }
  Tensor forward(const Tensor& x) {
    const Tensor scaled = x * (*scales)["in"];
    const auto [weight, who] = at::softmax(gate->forward(scaled), -1).topk(2, -1);
    Tensor out = at::zeros_like(x);
    for (int64_t i = 0; i < 3; ++i) {
      const Tensor share = (weight * (who == i)).sum(-1, true);
      out = out + share * experts[i]->as<nn::Sequential>()->forward(scaled);
    }
    return out * (*scales)["out"];
  }
  nn::ModuleList experts;
  nn::ParameterDict scales;
  nn::Linear gate{nullptr};
};
TORCH_MODULE(Mixture);

void experts_chosen_by_a_gate(Session& s) {
  auto f = s.compile(s.adopt(Mixture()));
  for (int call = 0; call < 8; ++call) f(s.randn({5, 4}));
}

/// Each expert is given the rows that chose it, as many as these are.
void rows_sent_to_experts(Session& s) {
  std::vector<nn::Linear> experts;
  for (int i = 0; i < 3; ++i) experts.push_back(s.adopt(nn::Linear(4, 4)));
  auto f = s.compile([&](const Tensor& x, const Tensor& who) {
    Tensor out = at::zeros_like(x);
    for (int64_t i = 0; i < 3; ++i) {
      const Tensor rows = at::nonzero(who == i).squeeze(1);
      if (rows.numel() == 0) continue;
      out.index_copy_(0, rows, experts[i]->forward(x.index_select(0, rows)));
    }
    return out;
  });
  const Tensor balanced = s.counting({6}, at::kLong).remainder(3);
  for (int call = 0; call < 9; ++call) f(s.randn({6, 4}), call < 4 ? balanced.roll(call) : s.integers(3, {6}));
}

void modules_of_any_kind(Session& s) {
  auto linear = s.adopt(nn::Linear(4, 4));
  auto norm = s.adopt(nn::BatchNorm1d(4));
  std::vector<nn::AnyModule> chain{nn::AnyModule(linear), nn::AnyModule(norm), nn::AnyModule(nn::Dropout(0.5))};
  auto f = s.compile([&](Tensor x) {
    for (auto& one : chain) x = one.forward(x);
    return x;
  });
  for (int call = 0; call < 12; ++call) {
    const bool training = call % 6 < 3;
    norm->train(training);
    chain[2].ptr()->train(training);
    f(s.randn({5, 4}));
  }
}

void weights_in_eight_bits(Session& s) {
  const Tensor w = s.randn({6, 5});
  const Tensor scale = w.abs().amax(1, true) / 127;
  const Tensor q = (w / scale).round().clamp(-128, 127).to(at::kChar);
  auto f = s.compile([&](const Tensor& x) {
    const Tensor step = x.abs().amax() / 127;
    const Tensor codes = (x / step).round().to(at::kChar);
    const Tensor sums = codes.to(at::kInt).matmul(q.to(at::kInt).t());
    return sums.to(at::kFloat) * step * scale.squeeze(1);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({3, 5}));
}

/// Two numbers of four bits to a byte.
void bits_packed_and_unpacked(Session& s) {
  auto f = s.compile([](const Tensor& numbers) {
    const Tensor pairs = numbers.view({-1, 2});
    const Tensor packed = pairs.select(1, 0) | at::bitwise_left_shift(pairs.select(1, 1), 4);
    const Tensor low = packed.bitwise_and(0x0f), high = at::bitwise_right_shift(packed, 4);
    return std::make_pair(packed, at::stack({low, high}, 1).flatten());
  });
  for (int call = 0; call < 8; ++call) f(s.integers(16, {80}, at::kByte));
}

void sizes_down_to_nothing(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor sums = x.sum(0), most = x.numel() > 0 ? x.amax(0) : at::zeros({3}, x.options());
    return std::make_tuple(at::cat({x, sums.unsqueeze(0)}), most, at::softmax(x, -1), x.flatten().cumsum(0));
  });
  for (const int64_t rows : {2, 2, 2, 0, 1, 2, 0, 1, 5, 0, 1, 3}) f(s.randn({rows, 3}));
}

void everything_in_another_layout(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor y = (x * 2).sigmoid_();
    return std::make_tuple(y, x.mean(at::IntArrayRef{0, 1}), x.reshape({-1}), x.transpose(0, 1) + y.transpose(0, 1));
  });
  for (int call = 0; call < 16; ++call) {
    const Tensor x = s.randn({4, 6});
    const Tensor windows = s.randn({9}).unfold(0, 6, 1);
    switch (call / 4) {
      case 0:
        f(x);
        break;
      case 1:
        f(s.randn({6, 4}).t());
        break;
      case 2:
        f(s.randn({1, 6}).expand({4, 6}));
        break;
      default:
        f(windows);
        break;
    }
  }
}

void dtypes_in_turns(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& y) {
    return std::make_tuple(x + y, x * 3, at::maximum(x.to(y.scalar_type()), y), (x > y).sum(),
                           at::mean(y.to(at::kDouble)));
  });
  const at::ScalarType kinds[] = {at::kFloat, at::kDouble, at::kLong, at::kHalf, at::kBFloat16, at::kShort};
  for (int call = 0; call < 18; ++call) {
    f(s.integers(50, {70}, kinds[call / 3]), s.integers(50, {70}, kinds[(call / 3 + 1) % 6]));
  }
}

void ranks_by_sorting(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& table) {
    const auto [sorted, order] = x.sort(1, /*descending=*/true);
    const Tensor rank =
        at::empty_like(order).scatter_(1, order, at::arange(x.size(1), order.options()).expand_as(order));
    const auto [value, index] = x.kthvalue(2, 1);
    return std::make_tuple(rank, value, at::searchsorted(table, x), std::get<0>(x.median(1)), at::isin(order, index));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({3, 25}), std::get<0>(s.randn({9}).sort()));
}

void squares_of_complex_numbers(Session& s) {
  auto f = s.compile([](const Tensor& c) {
    Tensor z = at::zeros_like(c);
    Tensor count = at::zeros(c.sizes(), c.options().dtype(at::kInt));
    for (int i = 0; i < 6; ++i) {
      z = z * z + c;
      count += (z.abs() < 2).to(at::kInt);
    }
    return std::make_pair(count, at::view_as_real(z.conj().resolve_conj()).nan_to_num(0, 9, -9).clamp(-9, 9));
  });
  for (int call = 0; call < 8; ++call) f(at::complex(s.randn({4, 5}), s.randn({4, 5})));
}

const Program programs[] = {
    {"a_struct_in_and_out", a_struct_in_and_out},
    {"a_cell_by_hand", a_cell_by_hand},
    {"experts_chosen_by_a_gate", experts_chosen_by_a_gate},
    {"rows_sent_to_experts", rows_sent_to_experts},
    {"modules_of_any_kind", modules_of_any_kind},
    {"weights_in_eight_bits", weights_in_eight_bits},
    {"bits_packed_and_unpacked", bits_packed_and_unpacked},
    {"sizes_down_to_nothing", sizes_down_to_nothing},
    {"everything_in_another_layout", everything_in_another_layout},
    {"dtypes_in_turns", dtypes_in_turns},
    {"ranks_by_sorting", ranks_by_sorting},
    {"squares_of_complex_numbers", squares_of_complex_numbers},
};

}  // namespace

std::span<const Program> everyday_programs() { return programs; }

}  // namespace sinter::test::hostile
