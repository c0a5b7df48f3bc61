#include "frontend/trace/memory_tag.h"

namespace sinter::frontend {
namespace {

/// Tells missing memory from other memory by its address. There is nothing to free.
void forget(void* /*number*/) {}

}  // namespace

c10::DataPtr missing_memory(c10::Device device, uint32_t number) {
  return {nullptr, reinterpret_cast<void*>(static_cast<uintptr_t>(number) + 1), &forget, device};
}

std::optional<uint32_t> number_of_missing(const c10::StorageImpl& storage) {
  const c10::DataPtr& memory = const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks();
  if (memory.get_deleter() != &forget) return std::nullopt;
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(memory.get_context()) - 1);
}

}  // namespace sinter::frontend
