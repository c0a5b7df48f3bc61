#include "frontend/closure.h"

#include <cxxabi.h>
#include <sys/uio.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <typeinfo>

namespace sinter::frontend {
namespace {

using torch::nn::Module;

/// An address that may be none.
using Word = uintptr_t;

/// What lies at an address; nothing where no memory is. Never faults.
template <class T>
std::optional<T> look(Word address) {
  T value;
  iovec to{&value, sizeof(T)};
  iovec from{std::bit_cast<void*>(address), sizeof(T)};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(sizeof(T))) return std::nullopt;
  return value;
}

Word word_of(const void* pointer) { return std::bit_cast<Word>(pointer); }

struct Plain {};
struct Other {};
struct Derived : Plain {};
struct Joined : Plain, Other {};

/// True for the address of what typeid gives for a class: descriptions of classes are of three kinds.
bool describes_class(Word type) {
  const auto kind_of = [](const std::type_info& info) { return *std::bit_cast<const Word*>(&info); };
  static const std::array kinds{kind_of(typeid(Plain)), kind_of(typeid(Derived)), kind_of(typeid(Joined))};
  const auto kind = look<Word>(type);
  return kind && std::find(kinds.begin(), kinds.end(), *kind) != kinds.end();
}

/// The part of class `Base` of the object at an address; null where no object of such a class lies.
template <class Base>
const void* part(Word object) {
  struct Header {
    Word offset_to_top, type;
  };
  const auto table = look<Word>(object);
  if (!table || object % alignof(void*) != 0) return nullptr;
  const auto header = look<Header>(*table - sizeof(Header));  // Itanium C++ ABI, 2.5.2
  if (!header || header->offset_to_top != 0 || !describes_class(header->type)) return nullptr;
  void* found = std::bit_cast<void*>(object);
  const auto* type = std::bit_cast<const std::type_info*>(header->type);
  const auto* base = static_cast<const abi::__class_type_info*>(&typeid(Base));
  return type->__do_upcast(base, &found) ? found : nullptr;
}

/// How libstdc++ lays out shared and weak pointers.
struct Owner {
  Word object;
  Word count;
};
using CountBase = std::_Sp_counted_base<__gnu_cxx::__default_lock_policy>;

/// The module at an address, where one lies that a shared pointer owns.
std::shared_ptr<Module> module_at(Word address) {
  const auto* module = static_cast<const Module*>(part<Module>(address));
  if (module == nullptr) return nullptr;
  // The module knows its owner: enable_shared_from_this. That is looked at before it is used.
  const auto* base = static_cast<const std::enable_shared_from_this<Module>*>(module);
  const auto owner = look<Owner>(word_of(base));
  if (!owner || owner->object != word_of(module) || owner->count == 0) return nullptr;
  const void* count = part<CountBase>(owner->count);
  if (count == nullptr) return nullptr;
  return const_cast<Module*>(module)->weak_from_this().lock();  // empty where its last owner has gone
}

}  // namespace

std::vector<std::shared_ptr<Module>> modules_in(std::span<const std::byte> closure) {
  std::vector<std::shared_ptr<Module>> found;
  const auto take = [&found](std::shared_ptr<Module> module) {
    if (module != nullptr && std::find(found.begin(), found.end(), module) == found.end()) found.push_back(module);
    return module != nullptr;
  };
  for (size_t at = 0; at + sizeof(Word) <= closure.size(); at += sizeof(Word)) {
    Word word = 0;
    std::memcpy(&word, closure.data() + at, sizeof(Word));
    if (take(module_at(word))) continue;
    if (const auto first = word % alignof(void*) == 0 ? look<Word>(word) : std::nullopt) take(module_at(*first));
  }
  return found;
}

}  // namespace sinter::frontend
