#include "frontend/left_behind.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cstring>
#include <mutex>

namespace sinter::frontend {
namespace {

struct Generator {
  uint64_t seed;
  at::Tensor state;
};

Generator default_generator() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return {generator.current_seed(), generator.get_state()};
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace

Surroundings::Surroundings() : modes_(Modes::current()) {
  auto [seed, state] = default_generator();
  seed_ = seed;
  generator_ = std::move(state);
}

std::optional<GraphBreak> Surroundings::changed(bool draws) const {
  if (const auto modes = modes_.differences(Modes::current()); !modes.empty()) {
    return GraphBreak{BreakCode::unsupported_op,
                      {},
                      {},
                      "leaves a mode changed: " + modes[0].guard + " was " + modes[0].was + ", is " + modes[0].is,
                      "change it outside the compiled callable, or put it back"};
  }
  const auto now = default_generator();
  if (now.seed == seed_ && !(draws && same_bytes(now.state, generator_))) return std::nullopt;
  return GraphBreak{BreakCode::unsupported_op,
                    "at::manual_seed",
                    {},
                    "seeds LibTorch's generators",
                    "seed them outside the compiled callable, or draw from a generator of its own"};
}

}  // namespace sinter::frontend
