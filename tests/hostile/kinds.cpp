#include <torch/csrc/autograd/forward_grad.h>
#include <torch/library.h>

#include "groups.h"
#include "programs.h"

/// Tensors that are not dense real ones, and operators of the user's own.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

Tensor scale_plus_one(const Tensor& x, double factor) { return x * factor + 1; }
Tensor running_sum(const Tensor& x) { return x.cumsum(0); }

Tensor times_first(const Tensor& x) {
  const Tensor on_host = x.cpu().contiguous();
  return x * static_cast<double>(on_host.const_data_ptr<float>()[0]);
}

int64_t touched = 0;

Tensor touch(const Tensor& x) {
  ++touched;
  return x.clone();
}

Tensor accumulate(Tensor total, const Tensor& x) { return total.add_(x); }

}  // namespace

TORCH_LIBRARY(sinter_hostile, library) {
  library.def("scale_plus_one(Tensor x, float factor) -> Tensor", &scale_plus_one);
  library.def("running_sum(Tensor x) -> Tensor");
  library.impl("running_sum", c10::DispatchKey::CPU, &running_sum);
  library.impl("running_sum", c10::DispatchKey::CUDA, &running_sum);
  library.def("times_first(Tensor x) -> Tensor");
  library.impl("times_first", c10::DispatchKey::CPU, &times_first);
  library.impl("times_first", c10::DispatchKey::CUDA, &times_first);
  library.def("touch(Tensor x) -> Tensor");
  library.impl("touch", c10::DispatchKey::CPU, &touch);
  library.impl("touch", c10::DispatchKey::CUDA, &touch);
  library.def("accumulate_(Tensor(a!) total, Tensor x) -> Tensor(a!)");
  library.impl("accumulate_", c10::DispatchKey::CPU, &accumulate);
  library.impl("accumulate_", c10::DispatchKey::CUDA, &accumulate);
  library.def("nowhere(Tensor x) -> Tensor");
}

namespace {

template <class Signature>
auto custom_op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

void a_custom_op_of_other_ops(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return custom_op<Tensor(const Tensor&, double)>("sinter_hostile::scale_plus_one").call(x, 2.5) * 2;
  });
  for (int call = 0; call < 5; ++call) f(s.randn({3}));
}

void a_custom_op_with_kernels(Session& s) {
  auto f = s.compile(
      [](const Tensor& x) { return custom_op<Tensor(const Tensor&)>("sinter_hostile::running_sum").call(x * 2) + 1; });
  for (int call = 0; call < 5; ++call) f(s.randn({3}));
}

void a_custom_op_that_looks_at_memory(Session& s) {
  auto f = s.compile(
      [](const Tensor& x) { return custom_op<Tensor(const Tensor&)>("sinter_hostile::times_first").call(x + 1) * 2; });
  for (int call = 0; call < 5; ++call) f(s.randn({4}));
}

void a_custom_op_with_an_effect(Session& s) {
  touched = 0;
  auto f = s.compile([](const Tensor& x) {
    const auto op = custom_op<Tensor(const Tensor&)>("sinter_hostile::touch");
    (void)op.call(x);
    return op.call(x) + op.call(x);
  });
  for (int call = 0; call < 5; ++call) {
    f(s.randn({3}));
    s.show("touched", std::to_string(touched));
  }
}

void a_custom_op_that_writes(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor total = at::zeros({3}, x.options());
    const auto op = custom_op<Tensor(Tensor, const Tensor&)>("sinter_hostile::accumulate_");
    for (int i = 0; i < 3; ++i) op.call(total, x * i);
    return total * 2;
  });
  for (int call = 0; call < 5; ++call) f(s.randn({3}));
}

void a_custom_op_without_a_kernel(Session& s) {
  auto f = s.compile(
      [](const Tensor& x) { return custom_op<Tensor(const Tensor&)>("sinter_hostile::nowhere").call(x * 2); });
  for (int call = 0; call < 3; ++call) f(s.randn({3}));
}

void complex_arithmetic(Session& s) {
  auto f = s.compile([](const Tensor& z) {
    return Tensors{z * z, z.conj() * 2, z.abs(), at::angle(z), at::real(z) + 1, z.sum(), at::matmul(z, z.t().conj())};
  });
  for (int call = 0; call < 5; ++call) f(at::complex(s.randn({2, 3}), s.randn({2, 3})));
}

void a_conjugate_as_result(Session& s) {
  auto f = s.compile([](const Tensor& z) { return Tensors{z.conj(), (z * 2).conj(), at::imag(z.conj())}; });
  for (int call = 0; call < 4; ++call) f(at::complex(s.randn({3}), s.randn({3})));
}

void a_fourier_filter(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor spectrum = at::fft_rfft(x);
    return at::fft_irfft(spectrum * at::abs(spectrum), 8);
  });
  for (int call = 0; call < 5; ++call) f(s.randn({3, 8}));
}

void sparse_inputs(Session& s) {
  auto f = s.compile([](const Tensor& sparse, const Tensor& x) { return at::matmul(sparse, x) + 1; });
  for (int call = 0; call < 4; ++call) f(at::eye(3, s.options()).to_sparse(), s.randn({3, 2}));
}

void sparse_inside(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::matmul(at::eye(3, x.options()).to_sparse(), x); });
  for (int call = 0; call < 4; ++call) f(s.randn({3, 2}));
}

void quantized_inside(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::quantize_per_tensor(x, 0.1, 3, at::kQUInt8).dequantize() * 2; });
  for (int call = 0; call < 4; ++call) f(s.randn({3, 2}));
}

void a_meta_tensor_inside(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor shape = at::matmul(at::empty({3, 2}, at::kMeta), at::empty({2, 5}, at::kMeta));
    return x * static_cast<double>(shape.size(1));
  });
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
}

void meta_inputs(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x * 2 + 1; });
  for (int call = 0; call < 3; ++call) f(at::empty({3, 2}, at::kMeta));
  for (int call = 0; call < 4; ++call) f(s.randn({3, 2}));
}

void a_nested_tensor_inside(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    return at::nested_to_padded_tensor(at::_nested_tensor_from_tensor_list({a, b}), 0) * 2;
  });
  for (int call = 0; call < 4; ++call) f(s.randn({3, 2}), s.randn({2, 2}));
}

/// A nested tensor has no sizes that could be compared with recorded ones.
void nested_inputs_among_dense_ones(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x * 2; });
  const Tensor dense = s.randn({2, 3});
  for (int call = 0; call < 3; ++call) f(s.randn({2, 3}));
  f(at::_nested_tensor_from_tensor_list({dense, s.randn({4, 3})}));
  for (int call = 0; call < 3; ++call) f(s.randn({2, 3}));
}

void zeros_without_memory_as_inputs(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x + 1; });
  for (int call = 0; call < 5; ++call) f(at::_efficientzerotensor({3}, s.options()));
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
}

void a_zero_without_memory_among_others(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x * 2 + 1; });
  for (int call = 0; call < 8; ++call) {
    const bool zero = call == 2 || call == 5;
    f(zero ? at::_efficientzerotensor({3}, s.options()) : s.randn({3}));
  }
}

std::string tangent_of(const Tensor& y, uint64_t level) {
  const Tensor tangent = std::get<1>(at::_unpack_dual(y, static_cast<int64_t>(level)));
  return tangent.defined() ? std::to_string(tangent.sum().item<double>()) : "none";
}

void a_dual_tensor_among_others(Session& s) {
  const at::AutoGradMode grad(true);
  const uint64_t level = torch::autograd::ForwardADLevel::get_next_idx();
  auto f = s.compile([](const Tensor& x) { return at::tanh(x) * x; });
  for (int call = 0; call < 8; ++call) {
    Tensor x = s.randn({4});
    if (call == 2 || call == 5) x = at::_make_dual(x, s.randn({4}), static_cast<int64_t>(level));
    const auto y = f(x);
    if (y) s.show("tangent", tangent_of(*y, level));
  }
  torch::autograd::ForwardADLevel::release_idx(level);
}

/// A tangent is put on a tensor that stays the same in all else.
void captured_state_that_gets_a_tangent(Session& s) {
  const at::AutoGradMode grad(true);
  const uint64_t level = torch::autograd::ForwardADLevel::get_next_idx();
  const Tensor weight = s.randn({4});
  auto f = s.compile([&weight](const Tensor& x) { return at::tanh(x) * weight; });
  for (int call = 0; call < 8; ++call) {
    if (call == 5) weight._set_fw_grad(s.randn({4}), level, /*is_inplace_op=*/false);
    const auto y = f(s.randn({4}));
    if (y) s.show("tangent", tangent_of(*y, level));
  }
  torch::autograd::ForwardADLevel::release_idx(level);
}

const Program programs[] = {
    {"a_custom_op_of_other_ops", a_custom_op_of_other_ops},
    {"a_custom_op_with_kernels", a_custom_op_with_kernels},
    {"a_custom_op_that_looks_at_memory", a_custom_op_that_looks_at_memory},
    {"a_custom_op_with_an_effect", a_custom_op_with_an_effect},
    {"a_custom_op_that_writes", a_custom_op_that_writes},
    {"a_custom_op_without_a_kernel", a_custom_op_without_a_kernel},
    {"complex_arithmetic", complex_arithmetic},
    {"a_conjugate_as_result", a_conjugate_as_result},
    {"a_fourier_filter", a_fourier_filter},
    {"sparse_inputs", sparse_inputs},
    {"sparse_inside", sparse_inside},
    {"quantized_inside", quantized_inside},
    {"a_meta_tensor_inside", a_meta_tensor_inside},
    {"meta_inputs", meta_inputs},
    {"nested_inputs_among_dense_ones", nested_inputs_among_dense_ones},
    {"zeros_without_memory_as_inputs", zeros_without_memory_as_inputs},
    {"a_nested_tensor_inside", a_nested_tensor_inside},
    {"a_zero_without_memory_among_others", a_zero_without_memory_among_others},
    {"a_dual_tensor_among_others", a_dual_tensor_among_others},
    {"captured_state_that_gets_a_tangent", captured_state_that_gets_a_tangent},
};

}  // namespace

std::span<const Program> kind_programs() { return programs; }

}  // namespace sinter::test::hostile
