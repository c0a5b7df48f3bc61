#include "frontend/profile/module_table.h"

#include <torch/nn/module.h>

namespace sinter::frontend {
namespace {

std::string parent_path(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

}  // namespace

ModuleTable::ModuleTable(const std::vector<NamedModule>& modules) : tensors_(named_tensors(modules)) {
  for (const auto& [name, module] : modules) {
    for (const auto& item : module->named_modules(name)) add(item.key(), item.value()->name());
  }
  for (const NamedTensor& named : tensors_) {
    const at::Tensor tensor = lock(named.tensor);
    if (!tensor.defined()) continue;
    const TensorOwner owner{TensorOwner::Role::parameter, intern(named.module)};
    by_tensor_.emplace(tensor.unsafeGetTensorImpl(), owner);
    if (!tensor.has_storage()) continue;
    const auto [known, added] = by_storage_.emplace(tensor.storage().unsafeGetStorageImpl(), owner);
    if (!added && known->second.module != owner.module) known->second = {};
  }
}

ModuleIndex ModuleTable::add(const std::string& path, const std::string& class_name) {
  const auto known = by_path_.find(path);
  if (known != by_path_.end()) {
    std::string& name = rows_[static_cast<size_t>(known->second)].class_name;
    if (name.empty()) name = class_name;
    return known->second;
  }
  Row row{.path = path, .class_name = class_name};
  if (!path.empty()) {
    row.parent = intern(parent_path(path));
    row.depth = rows_[static_cast<size_t>(row.parent)].depth + 1;
  }
  rows_.push_back(std::move(row));
  const auto index = static_cast<ModuleIndex>(rows_.size()) - 1;
  by_path_.emplace(path, index);
  return index;
}

ModuleIndex ModuleTable::intern(const std::string& path) {
  const auto known = by_path_.find(path);
  return known != by_path_.end() ? known->second : add(path, "");
}

ModuleIndex ModuleTable::common(ModuleIndex a, ModuleIndex b) const {
  while (a != b) {
    if (a < 0 || b < 0) return no_module;
    ModuleIndex& deeper = rows_[static_cast<size_t>(a)].depth >= rows_[static_cast<size_t>(b)].depth ? a : b;
    deeper = rows_[static_cast<size_t>(deeper)].parent;
  }
  return a;
}

TensorOwner ModuleTable::owner_of(const at::Tensor& tensor) const {
  if (!tensor.defined()) return {};
  const auto found = by_tensor_.find(tensor.unsafeGetTensorImpl());
  if (found != by_tensor_.end()) return found->second;
  if (!tensor.has_storage()) return {};
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const auto by_memory = by_storage_.find(storage);
  if (by_memory != by_storage_.end()) return by_memory->second;
  const auto given = given_.find(storage);
  return given == given_.end() || given->second.storage.expired() ? TensorOwner{} : given->second.owner;
}

void ModuleTable::give_memory(const at::Tensor& tensor, TensorOwner owner) {
  if (!tensor.defined() || !tensor.has_storage() || owner_of(tensor).role != TensorOwner::Role::none) return;
  const c10::Storage storage = tensor.storage();
  const c10::StorageImpl* address = storage.unsafeGetStorageImpl();
  given_.insert_or_assign(address, Owned{WeakStorage(storage.getWeakStorageImpl()), owner});
}

void ModuleTable::refresh_gradients() {
  std::erase_if(given_, [](const auto& item) { return item.second.storage.expired(); });
  for (const NamedTensor& named : tensors_) {
    const at::Tensor tensor = lock(named.tensor);
    if (!tensor.defined() || !tensor.is_leaf() || !tensor.grad().defined()) continue;
    give_memory(tensor.grad(), {TensorOwner::Role::gradient, intern(named.module)});
  }
}

void ModuleTable::visit_given_memory(
    const std::function<void(const c10::StorageImpl&, const TensorOwner&)>& visit) const {
  for (const auto& [address, owned] : given_) {
    const auto alive = owned.storage.lock();
    if (alive.get() != nullptr) visit(*alive, owned.owner);
  }
}

}  // namespace sinter::frontend
