#include <map>
#include <string>

#include "groups.h"
#include "programs.h"

/// Arguments and results that are no tensors, and containers of tensors.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void scalars_by_value(Session& s) {
  auto f =
      s.compile([](const Tensor& x, double factor, int64_t dim, bool keep) { return (x * factor).sum(dim, keep); });
  for (int call = 0; call < 4; ++call) f(s.randn({2, 3}), 2.0, int64_t{0}, false);
  for (int call = 0; call < 4; ++call) f(s.randn({2, 3}), 2.5, int64_t{0}, false);
  for (int call = 0; call < 4; ++call) f(s.randn({2, 3}), 2.5, int64_t{1}, false);
  for (int call = 0; call < 4; ++call) f(s.randn({2, 3}), 2.5, int64_t{1}, true);
}

void scalars_that_look_alike(Session& s) {
  auto f = s.compile([](const Tensor& x, double factor) { return x * factor; });
  for (const double factor : {0.0, -0.0, std::nan("")}) {
    for (int call = 0; call < 4; ++call) f(s.randn({3}), factor);
  }
}

void an_integer_and_then_a_real(Session& s) {
  auto f = s.compile([](const Tensor& x, auto number) { return x * number; });
  const Tensor x = s.integers(9, {3, 33});
  for (int call = 0; call < 4; ++call) f(x, int64_t{2});
  for (int call = 0; call < 4; ++call) f(x, 2.0);
  for (int call = 0; call < 4; ++call) f(x, true);
}

void a_string_that_selects(Session& s) {
  auto f = s.compile([](const Tensor& x, const std::string& how) { return how == "mean" ? x.mean() : x.sum(); });
  for (int call = 0; call < 4; ++call) f(s.randn({3}), std::string("mean"));
  for (int call = 0; call < 4; ++call) f(s.randn({3}), std::string("sum"));
}

void a_map_of_tensors(Session& s) {
  auto f = s.compile([](const std::map<std::string, Tensor>& in) {
    std::map<std::string, Tensor> out;
    for (const auto& [key, tensor] : in) out[key + "_out"] = tensor * 2;
    return out;
  });
  for (int call = 0; call < 4; ++call) f(std::map<std::string, Tensor>{{"a", s.randn({2})}, {"b", s.randn({3})}});
  for (int call = 0; call < 4; ++call) f(std::map<std::string, Tensor>{{"a", s.randn({2})}, {"c", s.randn({3})}});
}

void a_list_of_another_length(Session& s) {
  auto f = s.compile([](const std::vector<Tensor>& in) { return at::cat(in) * 2; });
  for (size_t count = 1; count < 4; ++count) {
    for (int call = 0; call < 4; ++call) f(std::vector<Tensor>(count, s.randn({2})));
  }
}

void nested_containers(Session& s) {
  using Pair = std::pair<Tensor, std::optional<Tensor>>;
  auto f = s.compile([](const std::vector<Pair>& in, std::tuple<int64_t, std::string> how) {
    Tensor sum = in[0].first * std::get<0>(how);
    for (const Pair& pair : in) {
      if (pair.second) sum = sum + *pair.second;
    }
    return std::make_tuple(sum, std::get<1>(how), std::vector<Pair>{{sum, std::nullopt}});
  });
  for (int call = 0; call < 4; ++call) {
    f(std::vector<Pair>{{s.randn({2}), s.randn({2})}, {s.randn({2}), std::nullopt}}, std::make_tuple(int64_t{3}, "x"));
  }
}

void a_foreign_argument(Session& s) {
  struct Factor {
    double value;
  };
  auto f = s.compile([](const Tensor& x, const Factor& factor) { return x * factor.value; });
  for (int call = 0; call < 4; ++call) f(s.randn({3}), Factor{1.0 + call});
}

void a_scalar_tensor_on_the_cpu(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& factor) { return x * factor; });
  for (int call = 0; call < 6; ++call) f(s.randn({3}), at::scalar_tensor(2.5 + call));
}

void a_result_computed_from_sizes(Session& s) {
  auto f = s.compile([](const Tensor& x) { return std::make_tuple(x * 2, x.numel(), x.size(-1), x.dim() > 1); });
  for (int call = 0; call < 4; ++call) f(s.randn({2, 3}));
  for (int call = 0; call < 4; ++call) f(s.randn({7}));
}

void more_combinations_than_are_compiled(Session& s) {
  auto f = s.compile([](const Tensor& x, int64_t shift) { return x + shift; });
  for (int64_t shift = 0; shift < 20; ++shift) f(s.randn({3}), shift);
  for (int call = 0; call < 4; ++call) f(s.randn({3}), int64_t{2});
}

const Program programs[] = {
    {"scalars_by_value", scalars_by_value},
    {"scalars_that_look_alike", scalars_that_look_alike, Numbers::exact},
    {"an_integer_and_then_a_real", an_integer_and_then_a_real},
    {"a_string_that_selects", a_string_that_selects},
    {"a_map_of_tensors", a_map_of_tensors},
    {"a_list_of_another_length", a_list_of_another_length},
    {"nested_containers", nested_containers},
    {"a_foreign_argument", a_foreign_argument},
    {"a_scalar_tensor_on_the_cpu", a_scalar_tensor_on_the_cpu},
    {"a_result_computed_from_sizes", a_result_computed_from_sizes},
    {"more_combinations_than_are_compiled", more_combinations_than_are_compiled},
};

}  // namespace

std::span<const Program> argument_programs() { return programs; }

}  // namespace sinter::test::hostile
