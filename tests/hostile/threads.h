#pragma once

#include <span>
#include <thread>
#include <vector>

#include "programs.h"

namespace sinter::test::hostile {

/// Calls a subject twenty times from each of several threads, one for each input, and shows the sums of the results.
/// What `enter` makes lives in a thread as long as it calls.
template <class Subject, class Enter>
void call_from_threads(Session& s, Subject& f, std::span<const at::Tensor> inputs, const Enter& enter) {
  std::vector<at::Tensor> sums(inputs.size());
  std::vector<std::thread> threads;
  for (size_t index = 0; index < inputs.size(); ++index) {
    threads.emplace_back([&, index] {
      const c10::NoGradGuard no_grad;
      [[maybe_unused]] const auto scope = enter();
      at::Tensor& sum = sums[index];
      for (int call = 0; call < 20; ++call) {
        const at::Tensor result = f.quietly(inputs[index] + call);
        sum = sum.defined() ? sum + result : result;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const at::Tensor& sum : sums) s.show("sum", sum);
}

template <class Subject>
void call_from_threads(Session& s, Subject& f, std::span<const at::Tensor> inputs) {
  call_from_threads(s, f, inputs, [] { return 0; });
}

}  // namespace sinter::test::hostile
