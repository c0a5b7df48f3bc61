#include "frontend/replay/stand_in.h"

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/Exception.h>

#include <string_view>

#include "frontend/trace/memory_tag.h"

namespace sinter::frontend {
namespace {

/// StorageImpl's own switch for memory that must not be looked at. LibTorch can switch it on only; the language lets an
/// explicit instantiation name it, and the build fails where a version of LibTorch has it no more.
using Switch = bool c10::StorageImpl::*;
template <Switch found>
struct Find {
  friend Switch memory_missing() { return found; }
};
Switch memory_missing();
template struct Find<&c10::StorageImpl::throw_on_immutable_data_ptr_>;

/// Also brings the switch that LibTorch derives from this one up to date.
void set_missing(c10::StorageImpl& storage, bool missing) {
  storage.*memory_missing() = missing;
  auto memory = std::move(storage._mutable_data_ptr_no_checks());
  storage.set_data_ptr_noswap(std::move(memory));
}

}  // namespace

c10::Storage stand_in_storage(c10::Device device, size_t bytes, uint32_t number) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, c10::DataPtr(),
                                                       c10::GetAllocator(device.type()), /*resizable=*/true);
  (*storage).*memory_missing() = true;
  storage->set_data_ptr_noswap(missing_memory(device, number));
  return c10::Storage(std::move(storage));
}

void give_memory(c10::StorageImpl& stand_in, at::Tensor data) {
  const c10::Storage own = data.storage();
  data.reset();
  c10::StorageImpl& source = *own.unsafeGetStorageImpl();
  stand_in.set_data_ptr_noswap(std::move(source._mutable_data_ptr_no_checks()));
  stand_in.set_nbytes(source.nbytes());
  set_missing(stand_in, false);
}

void ClosedStorages::close(const c10::Storage& storage) {
  set_missing(*storage.unsafeGetStorageImpl(), true);
  storages_.push_back(storage);
}

void ClosedStorages::open() {
  for (const c10::Storage& storage : storages_) set_missing(*storage.unsafeGetStorageImpl(), false);
  storages_.clear();
}

bool is_memory_missing(const std::exception& error) {
  // what() of LibTorch's errors looks every frame of the stack up by name, which takes milliseconds.
  const auto* of_libtorch = dynamic_cast<const c10::Error*>(&error);
  const std::string_view text = of_libtorch != nullptr ? of_libtorch->what_without_backtrace() : error.what();
  return text.find("Cannot access data pointer of Storage that is invalid") != std::string_view::npos;
}

}  // namespace sinter::frontend
