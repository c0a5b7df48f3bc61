#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include "groups.h"
#include "programs.h"
#include "threads.h"

/// What only a GPU has: streams, graphs of the program's own, pinned memory, an allocator that keeps memory.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;

void another_stream_on_every_call(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(256, 256));
  auto f = s.compile([&](const Tensor& x) { return at::gelu(layer->forward(x)) * 2; });
  for (int call = 0; call < 9; ++call) {
    const Tensor x = s.randn({64, 256});
    const CUDAStream stream = c10::cuda::getStreamFromPool();
    c10::cuda::getCurrentCUDAStream().synchronize();
    const CUDAStreamGuard guard(stream);
    f(x);
    stream.synchronize();
  }
}

/// Half of the work on a stream of its own, joined by events.
void a_stream_forked_inside(Session& s) {
  const CUDAStream side = c10::cuda::getStreamFromPool();
  auto f = s.compile([&](const Tensor& x) {
    at::cuda::CUDAEvent begun, done;
    begun.record();
    Tensor left;
    {
      const CUDAStreamGuard guard(side);
      begun.block(side);
      left = at::matmul(x, x).relu() + 1;
      done.record(side);
    }
    const Tensor right = at::softmax(x * 3, -1);
    done.block(c10::cuda::getCurrentCUDAStream());
    return left + right;
  });
  for (int call = 0; call < 6; ++call) f(s.randn({512, 512}));
}

void pinned_memory_that_is_uploaded(Session& s) {
  const Tensor host = at::empty({1 << 16}, at::TensorOptions(at::kFloat).pinned_memory(true));
  auto f = s.compile([&](const Tensor& from) { return from.to(s.device(), /*non_blocking=*/true) * 2 + 1; });
  for (int call = 0; call < 6; ++call) {
    host.fill_(call);
    f(host);
    c10::cuda::getCurrentCUDAStream().synchronize();
  }
}

void a_number_on_the_host_that_changes(Session& s) {
  const Tensor scale = at::ones({});
  auto f = s.compile([&](const Tensor& x, const Tensor& number) { return x * number + scale; });
  for (int call = 0; call < 8; ++call) {
    scale.add_(0.5);
    f(s.randn({64}), at::full({}, 1.5 * call));
  }
}

void indices_on_the_host(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& rows) { return x.index({rows}) * 2; });
  for (int call = 0; call < 6; ++call) f(s.randn({16, 4}), s.integers(16, {5}).cpu());
}

void an_allocator_that_gives_memory_back(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(64, 64));
  auto f = s.compile([&](const Tensor& x) { return at::softmax(layer->forward(x / 8).matmul(x.t()), -1) * x.sum(); });
  for (int call = 0; call < 8; ++call) {
    f(s.randn({128, 64}));
    c10::cuda::CUDACachingAllocator::emptyCache();
    const Tensor noise = at::full({1 << 20}, std::nan(""), s.options());
  }
}

void results_written_by_their_caller(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(32, 32));
  auto f = s.compile([&](const Tensor& x) { return std::vector<Tensor>{layer->forward(x), x * 2}; });
  std::vector<Tensor> kept;
  for (int call = 0; call < 8; ++call) {
    auto results = f(s.randn({8, 32}));
    for (Tensor& result : *results) kept.push_back(result.mul_(-1));
  }
  for (const Tensor& result : kept) s.show("kept", result);
}

/// The program records a graph of its own around calls of the function.
void a_graph_of_the_program(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(32, 32));
  auto f = s.compile([&](const Tensor& x) { return at::tanh(layer->forward(x * 2)) + x; });
  const Tensor x = s.randn({8, 32});
  for (int call = 0; call < 5; ++call) f(x);
  const CUDAStream stream = c10::cuda::getStreamFromPool();
  c10::cuda::getCurrentCUDAStream().synchronize();
  at::cuda::CUDAGraph graph;
  Tensor y;
  {
    const CUDAStreamGuard guard(stream);
    graph.capture_begin();
    y = f.quietly(x);
    graph.capture_end();
  }
  for (int replay = 0; replay < 3; ++replay) {
    x.copy_(s.randn({8, 32}));
    c10::cuda::device_synchronize();
    graph.replay();
    c10::cuda::device_synchronize();
    s.show("replayed", y.clone());
  }
  f(x);
}

void functions_that_take_turns(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(64, 64));
  auto f = s.compile([&](const Tensor& x) { return at::gelu(layer->forward(x)); });
  auto g = s.compile([&](const Tensor& x) { return at::softmax(layer->forward(x), -1) - x; });
  Tensor x = s.randn({16, 64});
  for (int call = 0; call < 8; ++call) x = g(*f(x))->clamp(-1, 1);  // else each round would double its error
}

void a_function_destroyed_while_it_runs(Session& s) {
  Tensor weight = s.randn({1024, 1024});
  const Tensor x = s.randn({1024, 1024});
  for (int round = 0; round < 2; ++round) {
    std::vector<Tensor> results;
    {
      auto f = s.compile([&](const Tensor& a) { return at::matmul(at::matmul(a, weight).relu(), weight) + 1; });
      for (int call = 0; call < 6; ++call) results.push_back(*f(x * call));
    }
    for (const Tensor& result : results) s.show("result", result);
  }
}

/// What it keeps was made on one stream; it goes while another one still reads that.
void a_frozen_function_destroyed_while_another_stream_runs(Session& s) {
  const Tensor weight = s.randn({1 << 18});
  const Tensor x = s.randn({1 << 18});
  Tensor result;
  {
    auto f = s.compile([&](const Tensor& a) { return a * (weight * 2 + 1).tanh(); }, {.freeze = true});
    for (int call = 0; call < 4; ++call) f(x);
    c10::cuda::device_synchronize();
    const CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
    at::cuda::sleep(int64_t{1} << 29);
    result = f.quietly(x);
  }
  std::vector<Tensor> noise;
  for (int block = 0; block < 16; ++block) noise.push_back(at::full({1 << 18}, std::nan(""), s.options()));
  c10::cuda::device_synchronize();
  s.show("result", result);
}

/// A stream that is current, and waited for at the end.
struct StreamOfItsOwn {
  CUDAStreamGuard guard{c10::cuda::getStreamFromPool()};

  ~StreamOfItsOwn() { guard.current_stream().synchronize(); }
};

void threads_on_streams_of_their_own(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(128, 128));
  auto f = s.compile([&](const Tensor& x) { return at::gelu(layer->forward(x)).matmul(x.t()); });
  const Tensor x = s.randn({64, 128});
  f(x);
  f(x);
  const Tensor inputs[] = {x, x + 1, x + 2, x + 3};
  c10::cuda::device_synchronize();
  call_from_threads(s, f, inputs, [] { return StreamOfItsOwn{}; });
  f(x);
}

void more_memory_than_there_is(Session& s) {
  auto f = s.compile([](const Tensor& x, int64_t copies) { return (x * 2).repeat({copies, 1}).sum(0); });
  for (int call = 0; call < 3; ++call) f(s.randn({1024}), int64_t{4});
  for (int call = 0; call < 2; ++call) {
    try {
      f.quietly(s.randn({1024}), int64_t{1} << 40);
    } catch (const c10::OutOfMemoryError&) {  // its text tells how much there is
      s.show("threw", "no memory");
    }
  }
  for (int call = 0; call < 3; ++call) f(s.randn({1024}), int64_t{4});
}

void a_weight_updated_on_another_stream(Session& s) {
  Tensor weight = s.randn({512, 512});
  s.watch("weight", &weight);
  const CUDAStream side = c10::cuda::getStreamFromPool();
  auto f = s.compile([&](const Tensor& x) { return at::matmul(x, weight).relu(); });
  for (int call = 0; call < 8; ++call) {
    {
      const CUDAStreamGuard guard(side);
      at::cuda::CUDAEvent before;
      before.record(c10::cuda::getDefaultCUDAStream());
      before.block(side);
      weight.mul_(1.01);
    }
    at::cuda::CUDAEvent updated;
    updated.record(side);
    updated.block(c10::cuda::getCurrentCUDAStream());
    f(s.randn({64, 512}));
  }
}

const Program programs[] = {
    {"another_stream_on_every_call", another_stream_on_every_call},
    {"a_stream_forked_inside", a_stream_forked_inside},
    {"pinned_memory_that_is_uploaded", pinned_memory_that_is_uploaded},
    {"a_number_on_the_host_that_changes", a_number_on_the_host_that_changes},
    {"indices_on_the_host", indices_on_the_host},
    {"an_allocator_that_gives_memory_back", an_allocator_that_gives_memory_back},
    {"results_written_by_their_caller", results_written_by_their_caller},
    {"a_graph_of_the_program", a_graph_of_the_program},
    {"functions_that_take_turns", functions_that_take_turns},
    {"a_function_destroyed_while_it_runs", a_function_destroyed_while_it_runs},
    {"a_frozen_function_destroyed_while_another_stream_runs", a_frozen_function_destroyed_while_another_stream_runs},
    {"threads_on_streams_of_their_own", threads_on_streams_of_their_own},
    {"more_memory_than_there_is", more_memory_than_there_is},
    {"a_weight_updated_on_another_stream", a_weight_updated_on_another_stream},
};

}  // namespace

std::span<const Program> stream_programs() { return programs; }

}  // namespace sinter::test::hostile
