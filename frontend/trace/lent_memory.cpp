#include "frontend/trace/lent_memory.h"

#include <algorithm>

namespace sinter::frontend {

bool is_lent(const c10::StorageImpl& storage) {
  const c10::DataPtr& data = const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks();
  return data.get() != nullptr && data.get_context() == nullptr;
}

bool LentMemory::knows(const c10::StorageImpl* storage) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(storage);
  return found != known_.end() && found->second.use_count() > 0;
}

void LentMemory::note(const c10::intrusive_ptr<c10::StorageImpl>& storage) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& known) { return known.second.use_count() == 0; });
  known_.emplace(storage.get(), storage);
}

bool LentInCall::lasts(const c10::StorageImpl& storage) const {
  if (!is_lent(storage)) return true;
  return std::ranges::find(arguments_, &storage) != arguments_.end() || known_.knows(&storage);
}

void LentInCall::end() {
  for (const auto& weak : met_) {
    if (auto storage = weak.lock(); storage.defined()) known_.note(storage);
  }
  met_.clear();
}

}  // namespace sinter::frontend
