#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdint>
#include <vector>

#include "frontend/scopes.h"

namespace sinter::frontend {
namespace {

/// The code of one function.
struct Range {
  std::string name;
  uintptr_t begin = 0, end = 0;
};

std::vector<Range> step_functions() {
  struct Row {
    const char* name;
    const char* symbol;
  };
  constexpr std::array rows{Row{"SGD", "_ZN5torch5optim3SGD4stepESt8functionIFN2at6TensorEvEE"},
                            Row{"Adam", "_ZN5torch5optim4Adam4stepESt8functionIFN2at6TensorEvEE"},
                            Row{"AdamW", "_ZN5torch5optim5AdamW4stepESt8functionIFN2at6TensorEvEE"},
                            Row{"LBFGS", "_ZN5torch5optim5LBFGS4stepESt8functionIFN2at6TensorEvEE"},
                            Row{"Adagrad", "_ZN5torch5optim7Adagrad4stepESt8functionIFN2at6TensorEvEE"},
                            Row{"RMSprop", "_ZN5torch5optim7RMSprop4stepESt8functionIFN2at6TensorEvEE"}};
  std::vector<Range> ranges;
  for (const Row& row : rows) {
    void* address = dlsym(RTLD_DEFAULT, row.symbol);
    Dl_info info;
    ElfW(Sym)* symbol = nullptr;
    const bool known =
        address != nullptr && dladdr1(address, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0;
    if (!known || symbol == nullptr) continue;
    const auto begin = reinterpret_cast<uintptr_t>(address);
    ranges.push_back({std::string("torch::optim::") + row.name + "::step", begin, begin + symbol->st_size});
  }
  return ranges;
}

}  // namespace

std::optional<std::string> optimizer_step(const Frames& frames) {
  static const std::vector<Range> ranges = step_functions();
  for (void* frame : frames) {
    const auto address = reinterpret_cast<uintptr_t>(frame);
    for (const Range& range : ranges) {
      if (range.begin < address && address <= range.end) return range.name;
    }
  }
  return std::nullopt;
}

}  // namespace sinter::frontend
