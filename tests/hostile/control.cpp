#include <stdexcept>
#include <thread>

#include "groups.h"
#include "programs.h"
#include "threads.h"

/// How calls begin and end: exceptions, calls inside calls, threads, results of changing kind.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void an_exception_of_the_callable(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    if (x.size(0) > 3) throw std::range_error("more than three rows");
    return x + 1;
  });
  for (int call = 0; call < 3; ++call) f(s.randn({4}));
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
  f(s.randn({4}));
  f(s.randn({3}));
}

void an_error_of_an_operator(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) { return at::matmul(a * 2, b); });
  for (int call = 0; call < 3; ++call) f(s.randn({2, 3}), s.randn({4, 5}));
  for (int call = 0; call < 4; ++call) f(s.randn({2, 3}), s.randn({3, 5}));
}

void an_error_that_depends_on_data(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& index) { return x.index_select(0, index) * 2; });
  const Tensor x = s.randn({4, 2});
  for (int call = 0; call < 3; ++call) f(x.cpu(), s.integers(4, {3}).cpu());
  f(x.cpu(), at::full({3}, 9, at::TensorOptions(at::kLong)));
  for (int call = 0; call < 4; ++call) f(x.cpu(), s.integers(4, {3}).cpu());
}

void an_exception_after_a_write_to_state(Session& s) {
  Tensor state = at::zeros({3}, s.options());
  s.watch("state", &state);
  bool fails = true;
  auto f = s.compile([&](const Tensor& x) {
    state.add_(x);
    if (fails) throw std::runtime_error("half way");
    return state * 2;
  });
  for (int call = 0; call < 2; ++call) f(s.randn({3}));
  fails = false;
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
}

void an_exception_that_is_no_exception_class(Session& s) {
  auto f = s.compile([](const Tensor& x, int64_t code) -> Tensor {
    if (code != 0) throw static_cast<int>(code);
    return x * 2;
  });
  f(s.randn({3}), int64_t{42});
  for (int call = 0; call < 4; ++call) f(s.randn({3}), int64_t{0});
}

void an_exception_caught_inside(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    try {
      return at::matmul(x, x);
    } catch (const c10::Error&) {
      return at::matmul(x, x.t());
    }
  });
  for (int call = 0; call < 5; ++call) f(s.randn({2, 3}));
}

void a_compiled_function_inside_another(Session& s) {
  Tensor weight = s.randn({3});
  const auto inner = compile([&weight](const Tensor& x) { return at::tanh(x) * weight; });
  auto f = s.compile([inner](const Tensor& x) { return inner(x) + inner(x * 2); });
  for (int call = 0; call < 6; ++call) f(s.randn({3}));
}

void a_function_that_calls_itself(Session& s) {
  const std::function<Tensor(const Tensor&, int)> nest = [&nest](const Tensor& x, int depth) {
    return depth == 0 ? x : nest(x * 2 + 1, depth - 1);
  };
  auto f = s.compile([&nest](const Tensor& x, int depth) { return nest(x, depth); });
  for (int call = 0; call < 4; ++call) f(s.randn({3}), 3);
  for (int call = 0; call < 4; ++call) f(s.randn({3}), 2);
}

void two_threads_with_two_shapes(Session& s) {
  Tensor weight = s.randn({8});
  auto f = s.compile([&weight](const Tensor& x) { return at::relu(x * weight) - 1; });
  f(s.randn({2, 8}));
  f(s.randn({3, 8}));
  const Tensor inputs[] = {s.randn({2, 8}), s.randn({3, 8})};
  call_from_threads(s, f, inputs);
  f(inputs[0]);
}

void a_thread_started_inside(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    Tensor y;
    std::thread([&] {
      const c10::NoGradGuard no_grad;
      y = x * 3;
    }).join();
    return y + 1;
  });
  for (int call = 0; call < 5; ++call) f(s.randn({3}));
}

void another_number_of_results(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    if (x.size(0) > 2) return x.unbind(0);
    return std::vector<Tensor>{x * 2};
  });
  for (int64_t size = 1; size < 5; ++size) {
    for (int call = 0; call < 4; ++call) f(s.randn({size, 2}));
  }
}

void a_number_of_results_that_grows_on_its_own(Session& s) {
  size_t count = 0;
  auto f = s.compile([&count](const Tensor& x) { return std::vector<Tensor>(++count, x * 2); });
  for (int call = 0; call < 5; ++call) f(s.randn({2}));
}

void an_optional_result_that_comes_and_goes(Session& s) {
  auto f = s.compile([](const Tensor& x, bool wanted) -> std::optional<Tensor> {
    if (!wanted) return std::nullopt;
    return x + 1;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2}), call % 2 == 0);
}

void undefined_tensors_in_and_out(Session& s) {
  auto f = s.compile(
      [](const Tensor& x, const Tensor& mask) { return std::make_pair(mask.defined() ? x * mask : x * 2, mask); });
  for (int call = 0; call < 4; ++call) f(s.randn({3}), Tensor());
  for (int call = 0; call < 4; ++call) f(s.randn({3}), s.randn({3}));
}

void no_result_and_no_effect(Session& s) {
  auto f = s.compile([](const Tensor& x) { (void)at::relu(x); });
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
}

void a_function_that_is_copied_and_destroyed(Session& s) {
  Tensor kept;
  for (int round = 0; round < 3; ++round) {
    auto f = s.compile([](const Tensor& x) { return x.view({-1}).exp(); });
    for (int call = 0; call < 4; ++call) {
      if (auto y = f(s.randn({2, 2}))) kept = *y;
    }
  }
  s.show("kept", kept);
}

/// The function is compiled for another shape by a thread while the number that it closes over is already another one.
void a_captured_number_changed_while_another_thread_compiles(Session& s) {
  double factor = 1;
  auto f = s.compile([&factor](const Tensor& x) { return x * factor + at::tanh(x); });
  for (int64_t call = 0; call < 20; ++call) {
    if (call % 4 == 1) factor += 0.5;
    std::thread other([&] {
      const c10::NoGradGuard no_grad;
      (void)f.quietly(at::ones({64 + call}, s.options()));
    });
    f(s.randn({5}));
    other.join();
  }
}

const Program programs[] = {
    {"an_exception_of_the_callable", an_exception_of_the_callable},
    {"an_error_of_an_operator", an_error_of_an_operator},
    {"an_error_that_depends_on_data", an_error_that_depends_on_data},
    {"an_exception_after_a_write_to_state", an_exception_after_a_write_to_state},
    {"an_exception_that_is_no_exception_class", an_exception_that_is_no_exception_class},
    {"an_exception_caught_inside", an_exception_caught_inside},
    {"a_compiled_function_inside_another", a_compiled_function_inside_another},
    {"a_function_that_calls_itself", a_function_that_calls_itself},
    {"two_threads_with_two_shapes", two_threads_with_two_shapes},
    {"a_thread_started_inside", a_thread_started_inside},
    {"another_number_of_results", another_number_of_results},
    {"a_number_of_results_that_grows_on_its_own", a_number_of_results_that_grows_on_its_own},
    {"an_optional_result_that_comes_and_goes", an_optional_result_that_comes_and_goes},
    {"undefined_tensors_in_and_out", undefined_tensors_in_and_out},
    {"no_result_and_no_effect", no_result_and_no_effect},
    {"a_function_that_is_copied_and_destroyed", a_function_that_is_copied_and_destroyed},
    {"a_captured_number_changed_while_another_thread_compiles",
     a_captured_number_changed_while_another_thread_compiles},
};

}  // namespace

std::span<const Program> control_programs() { return programs; }

}  // namespace sinter::test::hostile
