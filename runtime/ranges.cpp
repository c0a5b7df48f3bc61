#include "runtime/ranges.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <atomic>

#include "compiler/support/environment.h"

namespace sinter::runtime {
namespace {

class NvtxRanges final : public Ranges {
 public:
  using Ranges::push;
  void push(const std::string& text) override {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = text.c_str();
    nvtxDomainRangePushEx(domain_, &attributes);
  }
  void pop() noexcept override { nvtxDomainRangePop(domain_); }

 private:
  nvtxDomainHandle_t domain_ = nvtxDomainCreateA("sinter");
};

/// Looked at once a call.
std::atomic<Ranges*> range_listener = nullptr;

/// "features.0: aten::convolution"
std::string behind(const std::string& module, const std::string& what) {
  return module.empty() ? what : module + ": " + what;
}

}  // namespace

void Ranges::push(const KernelSource& kernel) { push(step_text(kernel)); }
void Ranges::push(const ExternCall& call) { push(step_text(call)); }

void listen_to_ranges(Ranges* listener) { range_listener.store(listener, std::memory_order_release); }

Ranges* listening_ranges(Ranges* otherwise) {
  Ranges* listener = range_listener.load(std::memory_order_acquire);
  return listener != nullptr ? listener : otherwise;
}

Ranges* nvtx_ranges() {
  // Never destroyed: calls may run until the process ends.
  static Ranges* const ranges = is_switched_on("SINTER_NVTX") ? new NvtxRanges() : nullptr;
  return ranges;
}

std::string step_text(const KernelSource& kernel) {
  std::string modules;
  for (auto module = kernel.modules.begin(); module != kernel.modules.end(); ++module) {
    const bool repeated = std::find(kernel.modules.begin(), module, *module) != module;
    if (module->empty() || repeated) continue;
    modules += (modules.empty() ? "" : ", ") + *module;
  }
  return behind(modules, kernel.name);
}

std::string step_text(const ExternCall& call) { return behind(call.module, call.op); }

}  // namespace sinter::runtime
