#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "frontend/torch/scopes.h"

namespace sinter::frontend {
namespace {

/// The code of one function.
struct Range {
  std::string name;
  uintptr_t begin = 0, end = 0;
};

/// A function of LibTorch, by its exported symbol.
struct Known {
  const char* name;
  const char* symbol;
};

constexpr std::array steps{
    Known{"torch::optim::SGD::step", "_ZN5torch5optim3SGD4stepESt8functionIFN2at6TensorEvEE"},
    Known{"torch::optim::Adam::step", "_ZN5torch5optim4Adam4stepESt8functionIFN2at6TensorEvEE"},
    Known{"torch::optim::AdamW::step", "_ZN5torch5optim5AdamW4stepESt8functionIFN2at6TensorEvEE"},
    Known{"torch::optim::LBFGS::step", "_ZN5torch5optim5LBFGS4stepESt8functionIFN2at6TensorEvEE"},
    Known{"torch::optim::Adagrad::step", "_ZN5torch5optim7Adagrad4stepESt8functionIFN2at6TensorEvEE"},
    Known{"torch::optim::RMSprop::step", "_ZN5torch5optim7RMSprop4stepESt8functionIFN2at6TensorEvEE"}};

std::vector<Range> ranges_of(std::span<const Known> functions) {
  std::vector<Range> ranges;
  for (const Known& function : functions) {
    void* address = dlsym(RTLD_DEFAULT, function.symbol);
    Dl_info info;
    ElfW(Sym)* symbol = nullptr;
    const bool known =
        address != nullptr && dladdr1(address, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0;
    if (!known || symbol == nullptr) continue;
    const auto begin = reinterpret_cast<uintptr_t>(address);
    ranges.push_back({function.name, begin, begin + symbol->st_size});
  }
  return ranges;
}

std::optional<std::string> innermost(const Frames& frames, std::span<const Range> ranges) {
  for (void* frame : frames) {
    const auto address = reinterpret_cast<uintptr_t>(frame);
    for (const Range& range : ranges) {
      if (range.begin < address && address <= range.end) return range.name;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> optimizer_step(const Frames& frames) {
  static const std::vector<Range> ranges = ranges_of(steps);
  return innermost(frames, ranges);
}

}  // namespace sinter::frontend
