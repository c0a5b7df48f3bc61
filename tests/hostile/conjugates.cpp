#include "groups.h"
#include "programs.h"

/// Views that read their memory conjugated or negated.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

Tensor complex_numbers(Session& s, c10::IntArrayRef sizes) { return at::complex(s.randn(sizes), s.randn(sizes)); }

void conjugates_between_other_work(Session& s) {
  auto f = s.compile([](const Tensor& z) {
    const Tensor y = z * 2 + 1;
    return Tensors{at::matmul(y.conj(), y), y.t().conj() + y.t(), y.conj().conj() * y, at::real(y * y.conj())};
  });
  for (int call = 0; call < 6; ++call) f(complex_numbers(s, {3, 3}));
}

/// Composite operators, which are answered as a whole once their steps are known.
void adjoints_of_what_is_computed(Session& s) {
  auto f = s.compile([](const Tensor& z) {
    const Tensor y = z * 2;
    const Tensor adjoint = at::adjoint(y);
    return Tensors{adjoint, at::matmul(adjoint, y), at::vdot(y[0], y[1]), y.mH() + at::conj(y),
                   at::linalg_vecdot(y, z)};
  });
  for (int call = 0; call < 8; ++call) f(complex_numbers(s, {3, 3}));
}

void a_conjugate_of_what_is_written_afterwards(Session& s) {
  auto f = s.compile([](const Tensor& z) {
    const Tensor y = z * 2;
    const Tensor conjugate = y.conj();
    const Tensor before = conjugate * 1;
    y.add_(1);
    return Tensors{before, conjugate + y, conjugate, y};
  });
  for (int call = 0; call < 6; ++call) f(complex_numbers(s, {4}));
}

void a_conjugate_of_what_was_written(Session& s) {
  auto f = s.compile([](const Tensor& z) {
    z.mul_(2);
    const Tensor y = z * 3;
    y.add_(1);
    return Tensors{z.conj() + y.conj(), y.conj(), at::imag(y.conj())};
  });
  for (int call = 0; call < 6; ++call) f(complex_numbers(s, {4}));
}

void a_write_through_a_conjugate(Session& s) {
  Tensor state = complex_numbers(s, {4});
  s.watch("state", &state);
  auto f = s.compile([&state](const Tensor& z) {
    const Tensor y = z * 2;
    y.conj().mul_(z);
    state.conj().add_(y);
    y.conj().slice(0, 0, 2).copy_(z.slice(0, 2, 4));
    return Tensors{y, y.conj(), state.conj()};
  });
  for (int call = 0; call < 6; ++call) f(complex_numbers(s, {4}));
}

void negative_views_of_imaginary_parts(Session& s) {
  auto f = s.compile([](const Tensor& z) {
    const Tensor y = z * 2;
    const Tensor part = at::imag(y.conj());
    const Tensor sum = part + at::real(y.conj());
    return Tensors{sum * 2, part, at::matmul(part, part.t()), part.clone(),
                   at::view_as_real(at::resolve_conj(y.conj()))};
  });
  for (int call = 0; call < 6; ++call) f(complex_numbers(s, {3, 3}));
}

void a_conjugate_kept_until_the_next_call(Session& s) {
  Tensor kept = complex_numbers(s, {3});
  s.watch("kept", &kept);
  auto f = s.compile([&kept](const Tensor& z) {
    const Tensor y = kept * z;
    kept = (y + 1).conj();
    return y.conj() * kept;
  });
  for (int call = 0; call < 8; ++call) f(complex_numbers(s, {3}));
}

void inputs_that_are_conjugates_in_some_calls(Session& s) {
  auto f = s.compile([](const Tensor& z) { return Tensors{at::matmul(z, z), z.conj(), z.clone() + 1}; });
  for (int call = 0; call < 10; ++call) {
    const Tensor z = complex_numbers(s, {3, 3});
    f(call % 3 == 2 ? z.conj() : z);
  }
}

void gradients_through_conjugates(Session& s) {
  const at::AutoGradMode grad(true);
  Tensor weight = complex_numbers(s, {3, 3}).requires_grad_();
  s.watch("weight", &weight);
  auto f = s.compile([&weight](const Tensor& z) {
    weight.mutable_grad().reset();
    const Tensor y = at::matmul(weight, z).conj() * weight;
    at::real(at::sum(y * y.conj())).backward();
    return y.detach();
  });
  for (int call = 0; call < 6; ++call) f(complex_numbers(s, {3, 3}));
}

const Program programs[] = {
    {"conjugates_between_other_work", conjugates_between_other_work},
    {"adjoints_of_what_is_computed", adjoints_of_what_is_computed},
    {"a_conjugate_of_what_is_written_afterwards", a_conjugate_of_what_is_written_afterwards},
    {"a_conjugate_of_what_was_written", a_conjugate_of_what_was_written},
    {"a_write_through_a_conjugate", a_write_through_a_conjugate},
    {"negative_views_of_imaginary_parts", negative_views_of_imaginary_parts},
    {"a_conjugate_kept_until_the_next_call", a_conjugate_kept_until_the_next_call},
    {"inputs_that_are_conjugates_in_some_calls", inputs_that_are_conjugates_in_some_calls},
    {"gradients_through_conjugates", gradients_through_conjugates},
};

}  // namespace

std::span<const Program> conjugate_programs() { return programs; }

}  // namespace sinter::test::hostile
