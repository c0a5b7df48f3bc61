#include <torch/nn/modules/batchnorm.h>

#include <functional>

#include "where.h"

namespace sinter::test {
namespace {

class Writes : public OnDevice {
 protected:
  at::Tensor to_device(const at::Tensor& tensor) { return tensor.to(GetParam().device); }
  at::Tensor full(int64_t size, double value) { return to_device(at::full({size}, value, at::kFloat)); }
  Options options() const { return unlimited({.mode = GetParam().mode, .strict = true}); }

 private:
  c10::NoGradGuard no_grad_;
};

using Program = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;

/// One set of tensors a program works on: two arguments, and what it closes over.
struct World {
  at::Tensor x, y, state;
  explicit World(at::DeviceType device) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
    x = at::randn({4, 6}, generator, at::kFloat).to(device);
    y = at::randn({4, 6}, generator, at::kFloat).to(device);
    state = at::randn({8, 6}, generator, at::kFloat).to(device);
  }
};

/// Runs a program on two equal worlds, eager and compiled; results, arguments and state agree after every call, and
/// calls after the first are replays.
void agrees(const Where& where, const std::function<Program(World&)>& make) {
  World eager_world(where.device);
  World compiled_world(where.device);
  const Program eager = make(eager_world);
  auto fast = compile(make(compiled_world), unlimited({.mode = where.mode, .strict = true}));
  for (int call = 0; call < 7; ++call) {
    const at::Tensor expected = eager(eager_world.x, eager_world.y);
    const at::Tensor found = fast(compiled_world.x, compiled_world.y);
    SCOPED_TRACE("call " + std::to_string(call));
    ASSERT_TRUE(same(found, expected));
    ASSERT_TRUE(same(compiled_world.x, eager_world.x));
    ASSERT_TRUE(same(compiled_world.y, eager_world.y));
    ASSERT_TRUE(same(compiled_world.state, eager_world.state));
    ASSERT_EQ(found.is_alias_of(compiled_world.x), expected.is_alias_of(eager_world.x));
    ASSERT_EQ(found.is_alias_of(compiled_world.state), expected.is_alias_of(eager_world.state));
    ASSERT_EQ(found.storage_offset(), expected.storage_offset());
    ASSERT_EQ(compiled_world.x._version(), eager_world.x._version());
    ASSERT_EQ(compiled_world.state._version(), eager_world.state._version());
  }
  EXPECT_TRUE(unbroken(fast.report())) << fast.report();
  EXPECT_EQ(fast.stats().replayed, 6) << fast.report();
}

TEST_P(Writes, an_argument_updated_in_place) {
  agrees(GetParam(),
         [](World&) { return [](const at::Tensor& x, const at::Tensor& y) { return at::Tensor(x).add_(y, 0.5); }; });
}

TEST_P(Writes, a_row_of_an_argument) {
  agrees(GetParam(), [](World&) {
    return [](const at::Tensor& x, const at::Tensor& y) {
      x[1].zero_();
      x.select(1, 2).mul_(2);
      return at::add(x, y);
    };
  });
}

TEST_P(Writes, arguments_that_swap) {
  agrees(GetParam(), [](World&) {
    return [](const at::Tensor& x, const at::Tensor& y) {
      const auto old = x.clone();
      x.copy_(y);
      y.copy_(old);
      return at::sub(x, y);
    };
  });
}

TEST_P(Writes, what_was_read_before_keeps_its_value) {
  agrees(GetParam(), [](World&) {
    return [](const at::Tensor& x, const at::Tensor& y) {
      const auto before = at::mul(x, 3);
      x.add_(y);
      return at::add(before, x);
    };
  });
}

TEST_P(Writes, a_view_of_the_argument_is_returned) {
  agrees(GetParam(), [](World&) {
    return [](const at::Tensor& x, const at::Tensor& y) {
      x.sub_(y);
      return x.narrow(0, 1, 2);
    };
  });
}

TEST_P(Writes, a_cache_that_grows_is_read_back) {
  agrees(GetParam(), [](World& world) {
    return [state = world.state](const at::Tensor& x, const at::Tensor& y) {
      state.narrow(0, 2, 4).copy_(at::tanh(x));
      const auto past = state.narrow(0, 0, 6);
      return at::mm(past, at::transpose(y, 0, 1));
    };
  });
}

TEST_P(Writes, state_indexed_by_a_tensor) {
  agrees(GetParam(), [](World& world) {
    return [state = world.state](const at::Tensor& x, const at::Tensor& y) {
      const auto rows = at::arange(4, x.options().dtype(at::kLong));
      state.index_add_(0, rows, x);
      state.index_put_({rows}, y, true);
      return at::sum(state);
    };
  });
}

TEST_P(Writes, a_closed_over_tensor_that_only_operators_write) {
  agrees(GetParam(), [](World& world) {
    return [state = world.state](const at::Tensor& x, const at::Tensor&) {
      state.mul_(0.9).add_(0.1);
      return at::mm(state, at::transpose(x, 0, 1));
    };
  });
}

TEST_P(Writes, out_variants) {
  agrees(GetParam(), [](World&) {
    return [](const at::Tensor& x, const at::Tensor& y) {
      auto out = x;
      at::mul_out(out, x, y);
      at::sigmoid_out(out, y);
      return at::exp(out);
    };
  });
}

/// One write after the other leaves nothing of what the tensor was: no part is copied by a call of its own.
TEST_P(Writes, all_parts_of_a_tensor) {
  const auto normalise = [](const at::Tensor& x, const at::Tensor& y) {
    const at::Tensor image = (x + y).view({4, 2, 3});
    for (int64_t channel = 0; channel < 4; ++channel) image[channel].sub_(0.1 * channel).div_(2 + channel);
    return image;
  };
  const auto gates = [](const at::Tensor& x, const at::Tensor& y) {
    const auto parts = (x * y).chunk(3, 1);
    parts[0].sigmoid_();
    parts[1].tanh_();
    parts[2].relu_();
    return at::add(parts[0] * parts[1], parts[2]);
  };
  const auto loop = [](const at::Tensor& x, const at::Tensor& y) {
    at::Tensor rows = at::zeros_like(x);
    for (int64_t row = 0; row < x.size(0); ++row) {
      const at::Tensor last = row == 0 ? y[0] : rows[row - 1];
      rows[row].copy_(at::tanh(x[row] + last));
    }
    return rows;
  };
  for (const Program& program : {Program(normalise), Program(gates), Program(loop)}) {
    agrees(GetParam(), [&](World&) { return program; });
    World world(GetParam().device);
    auto fast = compile(program, options());
    for (int call = 0; call < 2; ++call) static_cast<void>(fast(world.x, world.y));
    for (const auto& entry : fast.report().entries) {
      for (const auto& call : entry.externs) EXPECT_TRUE(call.op != "aten::copy_" || call.calls == 1) << fast.report();
    }
  }
}

TEST_P(Writes, running_statistics_of_batch_norm_in_training) {
  torch::nn::BatchNorm1d eager(6);
  torch::nn::BatchNorm1d model(6);
  eager->to(GetParam().device);
  model->to(GetParam().device);
  auto fast = compile(model, unlimited({.mode = GetParam().mode, .strict = true}));
  for (int call = 0; call < 6; ++call) {
    const auto x = to_device(at::randn({5, 6}));
    ASSERT_TRUE(same(fast(x), eager->forward(x))) << "call " << call;
    ASSERT_TRUE(same(model->running_mean, eager->running_mean)) << "call " << call;
    ASSERT_TRUE(same(model->running_var, eager->running_var)) << "call " << call;
    ASSERT_TRUE(same(model->num_batches_tracked, eager->num_batches_tracked)) << "call " << call;
  }
  EXPECT_TRUE(unbroken(fast.report())) << fast.report();
  EXPECT_GT(fast.stats().replayed, 0);
}

TEST_P(Writes, a_replay_raises_the_version_as_eager_does) {
  auto fast = compile([](const at::Tensor& x) { return at::Tensor(x).add_(1); }, options());
  auto x = full(3, 0);
  for (int call = 0; call < 4; ++call) {
    const auto before = x._version();
    fast(x);
    EXPECT_EQ(x._version(), before + 1);
  }
  EXPECT_EQ(fast.stats().replayed, 3);
}

TEST_P(Writes, an_argument_that_lies_in_state_is_told_from_one_apart) {
  const auto state = full(4, 0);
  auto fast = compile(
      [state](const at::Tensor& x) {
        state.add_(1);
        return at::mul(x, 2);
      },
      options());
  const auto apart = full(4, 1);
  fast(apart);
  EXPECT_TRUE(same(fast(apart), full(4, 2.0)));
  EXPECT_TRUE(same(fast(state), full(4, 6.0)));
  EXPECT_TRUE(same(fast(state), full(4, 8.0)));
  EXPECT_TRUE(same(state, full(4, 4.0)));
}

TEST_P(Writes, arguments_that_overlap) {
  auto fast = compile(
      [](const at::Tensor& x, const at::Tensor& y) {
        x.add_(1);
        return at::mul(y, 2);
      },
      unlimited({.mode = GetParam().mode}));
  const auto memory = full(6, 0);
  for (int call = 1; call < 5; ++call) {
    EXPECT_TRUE(same(fast(memory.narrow(0, 0, 4), memory.narrow(0, 2, 4)).narrow(0, 0, 2), full(2, 2.0 * call)));
  }
}

/// On a GPU the device checks indices, and the operator throws nothing.
class CpuWrites : public Writes {};

INSTANTIATE_TEST_SUITE_P(Where, CpuWrites, ::testing::Values(Where{"cpu", at::kCPU, Mode::Default}), name_of);

TEST_P(CpuWrites, windows_that_overlap) {
  const auto program = [](const at::Tensor& x) { return x.clone().unfold(0, 2, 1).mul_(0.5); };
  auto fast = compile(program, unlimited());
  for (int call = 0; call < 4; ++call) {
    const auto x = at::randn({8});
    EXPECT_TRUE(same(fast(x), program(x))) << call;
  }
}

TEST_P(CpuWrites, an_operator_that_throws_leaves_what_eager_leaves) {
  const auto program = [](const at::Tensor& x, const at::Tensor& index) {
    x.add_(1);
    const auto picked = at::index_select(x, 0, index);
    x.add_(10);
    return picked;
  };
  auto fast = compile(program, options());
  const auto x = full(3, 0);
  const auto index = at::zeros({1}, at::kLong);
  fast(x, index);
  fast(x, index);
  index.fill_(7);
  EXPECT_THROW(fast(x, index), c10::Error);
  EXPECT_TRUE(same(x, full(3, 23.0))) << x;
}

TEST_P(CpuWrites, an_operator_that_writes_and_throws_leaves_what_was_written_before_it) {
  const auto sum = full(3, 0);
  const auto program = [sum](const at::Tensor& x, const at::Tensor& index) {
    x.fill_(-1);
    sum.index_add_(0, index, at::ones({1}));
    return x * 2;
  };
  auto fast = compile(program, options());
  const auto index = at::zeros({1}, at::kLong);
  for (int call = 0; call < 3; ++call) fast(full(2, 5), index);
  index.fill_(7);
  const auto x = full(2, 5);
  EXPECT_THROW(fast(x, index), c10::Error);
  EXPECT_TRUE(same(x, full(2, -1.0))) << x;
}

TEST_P(CpuWrites, an_operator_that_throws_after_a_host_read_does_so_whoever_needs_its_result) {
  const auto program = [](const at::Tensor& x, const at::Tensor& index) {
    if (at::sum(x).item<double>() < 0) return x * 3;
    (void)at::index_select(x, 0, index);
    return x * 2;
  };
  auto fast = compile(program, options());
  const auto index = at::zeros({1}, at::kLong);
  for (int call = 0; call < 4; ++call) fast(full(2, 5), index);
  ASSERT_GT(fast.stats().replayed, 0);
  index.fill_(7);
  EXPECT_THROW(fast(full(2, 5), index), c10::Error);
}

INSTANTIATE_TEST_SUITE_P(Where, Writes, everywhere(), name_of);

}  // namespace
}  // namespace sinter::test
