#include <ATen/ops/stack.h>

#include <functional>
#include <random>

#include "where.h"

namespace sinter::test {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Program = std::function<Tensor(const Tensors&)>;

constexpr int calls = 40;

/// Programs whose arguments share memory in another way in every call.
class SharedMemory : public OnDevice {
 protected:
  /// Draws arguments out of a buffer twice alike, and runs the program eager and compiled: results and buffers agree
  /// after every call. The report of the compiled one.
  Report agrees(const Program& program, const std::function<Tensors(const Tensor&, std::mt19937&)>& draw) {
    auto fast = compile(program, unlimited({.mode = GetParam().mode}));
    const Tensor eager_buffer = at::randn({8, 12}).to(GetParam().device);
    const Tensor buffer = eager_buffer.clone();
    std::mt19937 eager_engine(3), engine(3);
    for (int call = 0; call < calls; ++call) {
      const Tensor expected = program(draw(eager_buffer, eager_engine));
      EXPECT_TRUE(same(fast(draw(buffer, engine)), expected)) << "call " << call;
      EXPECT_TRUE(same(buffer, eager_buffer)) << "call " << call;
    }
    return fast.report();
  }

  static Tensors rows(const Tensor& buffer, std::mt19937& engine, size_t count) {
    Tensors drawn;
    for (size_t i = 0; i < count; ++i) drawn.push_back(buffer[static_cast<int64_t>(engine() % 8)]);
    return drawn;
  }

  /// Writes the first argument, and reads both.
  static Tensor move_half_way(const Tensors& x) {
    x[0].mul_(0.5).add_(x[1], 0.5);
    return x[0] * 2;
  }

 private:
  c10::NoGradGuard no_grad_;
};

/// A number that the host puts into a few elements waits for steps that see them as part of another tensor.
TEST_P(SharedMemory, a_number_put_into_one_tensor_is_not_seen_by_steps_before_that_read_another) {
  agrees(
      [](const Tensors& x) {
        const Tensor sum = x[0].cumsum(0);
        x[1].select(0, 1).fill_(0.25);
        return sum;
      },
      [](const Tensor& buffer, std::mt19937& engine) {
        const auto at = static_cast<int64_t>(engine() % 3);
        buffer.add_(1);
        return Tensors{buffer[2].narrow(0, 0, 6), buffer[2].narrow(0, 2 + at, 4)};
      });
}

TEST_P(SharedMemory, a_number_put_into_a_part_of_a_complex_tensor_is_not_seen_by_steps_before) {
  agrees(
      [](const Tensors& x) {
        const Tensor sum = at::view_as_complex(x[0]).cumsum(0);
        at::imag(at::view_as_complex(x[1])).fill_(0.25);
        return at::view_as_real(sum);
      },
      [](const Tensor& buffer, std::mt19937& engine) {
        const auto at = static_cast<int64_t>(engine() % 3);
        buffer.add_(1);
        return Tensors{buffer[2].view({6, 2}).narrow(0, 0, 3), buffer[2].view({6, 2}).narrow(0, at, 2)};
      });
}

TEST_P(SharedMemory, a_list_of_rows_drawn_with_repetition_is_one_program) {
  const auto report = agrees([](const Tensors& rows) { return at::relu(at::stack(rows) * 2 + 1).sum(0); },
                             [](const Tensor& buffer, std::mt19937& engine) { return rows(buffer, engine, 5); });
  EXPECT_EQ(report.entries.size(), 1) << report;
}

TEST_P(SharedMemory, a_list_of_tensors_drawn_with_repetition_is_one_program) {
  Tensors pool;
  for (int i = 0; i < 6; ++i) pool.push_back(at::randn({12}).to(GetParam().device));
  const auto report = agrees([](const Tensors& some) { return (at::cat(some) - 1).tanh(); },
                             [&pool](const Tensor&, std::mt19937& engine) {
                               Tensors drawn;
                               for (int i = 0; i < 5; ++i) drawn.push_back(pool[engine() % pool.size()]);
                               return drawn;
                             });
  EXPECT_EQ(report.entries.size(), 1) << report;
}

TEST_P(SharedMemory, what_is_read_may_be_one_tensor_or_two) {
  const auto report = agrees([](const Tensors& x) { return (x[0] * x[1] + x[2]).exp(); },
                             [](const Tensor& buffer, std::mt19937& engine) { return rows(buffer, engine, 3); });
  EXPECT_LE(report.entries.size(), 3) << report;
}

TEST_P(SharedMemory, a_write_is_seen_through_the_other_argument) {
  agrees(
      [](const Tensors& x) {
        x[0].mul_(0.5);
        return x[1] + x[2] * x[0];
      },
      [](const Tensor& buffer, std::mt19937& engine) { return rows(buffer, engine, 3); });
}

TEST_P(SharedMemory, a_write_after_reads_is_seen_too) {
  agrees(
      [](const Tensors& x) {
        const Tensor sum = x[1] + x[2];
        x[0].add_(sum, 0.25);
        return x[1] - x[2];
      },
      [](const Tensor& buffer, std::mt19937& engine) { return rows(buffer, engine, 3); });
}

TEST_P(SharedMemory, rows_that_are_apart_are_written_by_one_program) {
  const auto report = agrees(move_half_way, [](const Tensor& buffer, std::mt19937& engine) {
    const auto row = static_cast<int64_t>(engine() % 8);
    return Tensors{buffer[row], buffer[(row + 1 + static_cast<int64_t>(engine() % 7)) % 8]};
  });
  EXPECT_EQ(report.entries.size(), 1) << report;
}

TEST_P(SharedMemory, columns_that_are_apart_are_written_by_one_program) {
  const auto report = agrees(move_half_way, [](const Tensor& buffer, std::mt19937& engine) {
    const auto block = static_cast<int64_t>(engine() % 3);
    return Tensors{buffer.narrow(1, 4 * block, 4), buffer.narrow(1, 4 * ((block + 1) % 3), 4)};
  });
  EXPECT_EQ(report.entries.size(), 1) << report;
}

TEST_P(SharedMemory, parts_that_overlap_are_written_in_order) {
  agrees(
      [](const Tensors& x) {
        x[0].mul_(0.5);
        x[1].add_(1);
        return x[0] * x[1];
      },
      [](const Tensor& buffer, std::mt19937& engine) {
        const Tensor flat = buffer.view({-1});
        return Tensors{flat.narrow(0, static_cast<int64_t>(engine() % 64), 16),
                       flat.narrow(0, static_cast<int64_t>(engine() % 64), 16)};
      });
}

TEST_P(SharedMemory, views_of_what_was_met_twice_lie_where_they_lie) {
  agrees(
      [](const Tensors& x) {
        const Tensor all = at::stack(x);
        const Tensor part = x[2].slice(0, 2, 8);
        return (all.sum(0).slice(0, 2, 8) + part) * x[1].slice(0, 4, 10);
      },
      [](const Tensor& buffer, std::mt19937& engine) { return rows(buffer, engine, 3); });
}

TEST_P(SharedMemory, views_are_returned_where_they_lie) {
  auto fast = compile(
      [](const Tensor& a, const Tensor& b) {
        const Tensor sum = a + b;
        return std::make_tuple(b.slice(0, 1, 3), sum);
      },
      unlimited({.mode = GetParam().mode}));
  const Tensor buffer = at::arange(64).to(at::kFloat).to(GetParam().device);
  const auto part = [&](int64_t at) { return buffer.narrow(0, at, 4); };
  for (const auto& [a, b] : {std::pair{0, 8}, {0, 8}, {0, 12}, {8, 0}, {2, 0}, {0, 0}, {4, 6}}) {
    const auto [view, sum] = fast(part(a), part(b));
    EXPECT_TRUE(view.is_alias_of(buffer));
    EXPECT_EQ(view.storage_offset(), b + 1);
    EXPECT_TRUE(same(sum, part(a) + part(b)));
  }
}

/// A loop over rows of one buffer that ends in an operator over rows which the loop has written and others.
TEST_P(SharedMemory, rows_that_were_written_are_read_with_others) {
  Tensor buffer = at::arange(36).to(at::kFloat).view({12, 3}).to(GetParam().device);
  int64_t runs = 0;
  const auto program = [&](int64_t begin, int64_t end) {
    ++runs;
    for (int64_t at = begin; at < end; ++at) buffer[at % 12].copy_(buffer[(at + 11) % 12] * 2 - 1);
    return buffer.narrow(0, begin % 9, 3).sum(0);
  };
  auto fast = compile(program, unlimited({.mode = GetParam().mode}));
  int64_t done = 0;
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>{10, 12}, {1, 4}, {4, 4}, {1, 2}, {5, 6}, {7, 8}, {1, 2}}) {
    const Tensor before = buffer.clone();
    const Tensor result = fast(begin, end);
    EXPECT_EQ(runs, ++done) << "the call ran again";
    const Tensor written = std::exchange(buffer, before);
    EXPECT_TRUE(same(result, program(begin, end)));
    EXPECT_TRUE(same(written, buffer));
    buffer = written;
    runs = done;
  }
  EXPECT_EQ(fast.stats().breaks, 0);
}

/// An operator that runs at once reads a row; a step has written another one of the same buffer.
TEST_P(SharedMemory, a_row_is_read_at_once_while_another_is_to_be_written) {
  Tensor buffer = at::arange(36).to(at::kFloat).view({12, 3}).to(GetParam().device);
  int64_t runs = 0;
  auto fast = compile(
      [&](const Tensor& x, int64_t from, int64_t to) {
        ++runs;
        const Tensor read = x * buffer[from];
        buffer[to].copy_(read + 1);
        return buffer[(to + 1) % 12].max().item<double>() + buffer[from].nonzero().size(0);
      },
      unlimited({.mode = GetParam().mode}));
  for (int64_t call = 0; call < 10; ++call) {
    const int64_t from = call % 5, to = 5 + call % 7;
    const Tensor x = at::full({3}, 0.5 + static_cast<double>(call), buffer.options());
    const Tensor expected = x * buffer[from] + 1, next = buffer[(to + 1) % 12].clone();
    const double result = fast(x, from, to);
    EXPECT_DOUBLE_EQ(result, next.max().item<double>() + static_cast<double>(buffer[from].nonzero().size(0)));
    EXPECT_TRUE(same(buffer[to], expected));
    EXPECT_EQ(runs, call + 1) << "the call ran again";
  }
  EXPECT_EQ(fast.stats().breaks, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, SharedMemory, everywhere(), name_of);

}  // namespace
}  // namespace sinter::test
