#include "frontend/closure.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <functional>

namespace sinter::frontend {
namespace {

using Modules = std::vector<std::shared_ptr<torch::nn::Module>>;

template <class Closure>
Modules modules_of(const Closure& closure) {
  return modules_in(std::as_bytes(std::span(&closure, 1)));
}

struct Net : torch::nn::Module {
  auto closure() {
    return [this] { return is_training(); };
  }
};

/// A class whose part of Module does not come first.
struct Named {
  virtual ~Named() = default;
  int64_t number = 1;
};
struct Joined : Named, Net {};

TEST(ModulesIn, finds_what_a_closure_holds_and_refers_to) {
  torch::nn::Linear linear(2, 2);
  torch::nn::Sequential layers(torch::nn::Linear(2, 2));
  const auto net = std::make_shared<Net>();
  const auto joined = std::make_shared<Joined>();
  Net* const raw = net.get();
  const std::function<bool()> small = [&linear] { return linear->is_training(); };

  EXPECT_EQ(modules_of([linear] { return linear->is_training(); }), Modules{linear.ptr()});
  EXPECT_EQ(modules_of([&linear] { return linear->is_training(); }), Modules{linear.ptr()});
  EXPECT_EQ(modules_of([&net] { return net->is_training(); }), Modules{net});
  EXPECT_EQ(modules_of([raw] { return raw->is_training(); }), Modules{net});
  EXPECT_EQ(modules_of(net->closure()), Modules{net});
  EXPECT_EQ(modules_of([joined] { return joined->is_training(); }), Modules{joined});
  EXPECT_EQ(modules_of([a = int64_t{1}, &linear, layers, &net] { return a + linear->is_training(); }),
            (Modules{linear.ptr(), layers.ptr(), net}));
  EXPECT_EQ(modules_of([linear, &l = linear] { return l.ptr() == linear.ptr(); }), Modules{linear.ptr()});
  EXPECT_EQ(modules_of(small), Modules{linear.ptr()});
}

TEST(ModulesIn, believes_nothing_else) {
  const auto net = std::make_shared<Net>();
  auto gone = std::make_shared<Net>();
  const std::weak_ptr<Net> weak = gone;
  gone.reset();
  const std::shared_ptr<Net> none;
  const std::string text(100, 'x');
  const auto numbers = std::make_shared<std::vector<int64_t>>(8, 1);
  const at::Tensor tensor = at::ones({3});
  Net unowned;
  const std::array<uintptr_t, 6> words{1,
                                       8,
                                       ~uintptr_t{0},
                                       reinterpret_cast<uintptr_t>(net.get()) + 1,
                                       reinterpret_cast<uintptr_t>(&typeid(Net)),
                                       *reinterpret_cast<const uintptr_t*>(net.get())};

  EXPECT_TRUE(modules_of([weak] { return weak.expired(); }).empty());
  EXPECT_TRUE(modules_of([none] { return none == nullptr; }).empty());
  EXPECT_TRUE(modules_of([&text, numbers, &tensor] { return text.size() + numbers->size() + tensor.numel(); }).empty());
  EXPECT_TRUE(modules_of([&unowned] { return unowned.is_training(); }).empty());
  EXPECT_TRUE(modules_of([words] { return words[0]; }).empty());
  EXPECT_TRUE(modules_in({}).empty());
}

}  // namespace
}  // namespace sinter::frontend
