#include "frontend/trusted/trusted_call.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "compiler/support/planted.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/read_as.h"

namespace sinter::frontend {
namespace {

using detail::Flat;

/// A tensor object for an implementation that somebody else holds meanwhile.
class Borrowed {
 public:
  explicit Borrowed(c10::TensorImpl* impl)
      : tensor_(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim(impl)) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() { (void)tensor_.unsafeReleaseTensorImpl(); }
  const at::Tensor& operator*() const { return tensor_; }

 private:
  at::Tensor tensor_;
};

std::string_view text_of(const Flat& flat) { return {flat.structure.data(), flat.structure.size()}; }

const c10::StorageImpl* memory_of(const at::Tensor& tensor) { return storage_of(*tensor.unsafeGetTensorImpl()); }

int64_t alignment_of(const at::Tensor& tensor) {
  return alignment_up_to(ir::full_alignment, address_of(*tensor.unsafeGetTensorImpl()));
}

void count_write(const at::Tensor& tensor) {
  if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
}

/// Why a call cannot be answered without its host code.
struct Untrusted {
  std::string reason;
};

}  // namespace

/// Works out what a logged call did in terms of what it was given. Throws Untrusted.
class TrustedCall::Maker {
 public:
  Maker(const Flat& arguments, const CallLog& log, const Flat& result)
      : given_(arguments), log_(log), result_(result), call_(new TrustedCall) {}

  std::shared_ptr<TrustedCall> make(const Modes& modes) {
    if (!log_.refusal().empty()) throw Untrusted{log_.refusal()};
    if (log_.path() == nullptr) throw Untrusted{"it runs no segment"};
    if (given_.unknown != nullptr || result_.unknown != nullptr) throw Untrusted{"a type that cannot be taken apart"};
    call_->structure_ = text_of(given_);
    call_->result_structure_ = text_of(result_);
    call_->modes_ = modes;
    call_->cuda_device_ = current_cuda_device();
    call_->path_ = log_.path();
    add_arguments();
    note_tensors();
    for (const CallLog::Input& input : log_.inputs()) {
      call_->inputs_.push_back({place_of(input.storage), input.dtype, input.offset});
    }
    for (const c10::StorageImpl* storage : log_.frozen()) (void)place_of(storage);
    for (const c10::StorageImpl* storage : log_.written()) call_->written_.push_back(place_of(storage));
    for (size_t i = 0; i < result_.tensors.size(); ++i) add_result(i);
    refuse_what_is_kept();
    keep_apart();
    return std::move(call_);
  }

 private:
  void add_arguments() {
    for (uint32_t i = 0; i < given_.tensors.size(); ++i) {
      const at::Tensor& tensor = *given_.tensors[i];
      if (!is_guardable(tensor)) throw Untrusted{fmt::format("argument {} is no dense tensor", i)};
      if (!places_.emplace(memory_of(tensor), Place{From::argument, i}).second) {
        throw Untrusted{fmt::format("argument {} lies in the memory of another one", i)};
      }
      call_->arguments_.push_back({TensorGuard(tensor), alignment_of(tensor)});
    }
  }

  /// What the program holds, by where it lies.
  void note_tensors() {
    for (uint32_t i = 0; i < log_.given().size(); ++i) {
      const auto storage = log_.given()[i].lock();
      if (storage.get() != nullptr) outputs_.emplace(storage.get(), i);
    }
    for (uint32_t i = 0; i < log_.made().size(); ++i) made_.emplace(log_.made()[i].storage._unsafe_get_target(), i);
    for (at::Tensor& tensor : log_.tensors()) {
      if (!tensor.has_storage() || outputs_.contains(memory_of(tensor)) || made_.contains(memory_of(tensor))) continue;
      tensors_[memory_of(tensor)].push_back(std::move(tensor));
    }
  }

  Place place_of(const c10::StorageImpl* storage) {
    if (const auto known = places_.find(storage); known != places_.end()) return known->second;
    return places_.emplace(storage, new_place_of(storage)).first->second;
  }

  Place new_place_of(const c10::StorageImpl* storage) {
    if (const auto made = made_.find(storage); made != made_.end()) {
      call_->made_.push_back(log_.made()[made->second]);
      return {From::made, static_cast<uint32_t>(call_->made_.size() - 1)};
    }
    const auto found = tensors_.find(storage);
    if (found == tensors_.end()) throw Untrusted{"it reads a tensor that the program makes in every call"};
    const auto first = static_cast<uint32_t>(call_->states_.size());
    for (const at::Tensor& tensor : found->second) add_state(tensor);
    return {From::state, first};
  }

  uint32_t add_state(const at::Tensor& tensor) {
    if (!is_guardable(tensor)) throw Untrusted{"it reads a tensor that is not dense"};
    call_->states_.push_back({weaken(tensor), memory_of(tensor), TensorGuard(tensor)});
    return static_cast<uint32_t>(call_->states_.size() - 1);
  }

  void add_result(size_t index) {
    const at::Tensor& tensor = *result_.tensors[index];
    if (!is_guardable(tensor)) throw Untrusted{fmt::format("result {} is no dense tensor", index)};
    if (tensor.requires_grad()) {
      throw Untrusted{fmt::format("result {} takes part in gradients; call under NoGradGuard", index)};
    }
    Result result{.place = {}, .elements = Elements::of(tensor)};
    for (size_t i = 0; i < index; ++i) {
      if (result_.tensors[i]->is_same(tensor)) result.same_as = static_cast<int64_t>(i);
    }
    if (const auto output = outputs_.find(memory_of(tensor)); output != outputs_.end()) {
      result.place = {From::output, output->second};
    } else {
      find_place(tensor, index, result);
    }
    if (result.place.from == From::output || result.place.from == From::made) find_base(tensor, result);
    call_->results_.push_back(std::move(result));
  }

  /// Of a result in memory of the call. Tensors of inference mode count no writes and are no views.
  void find_base(const at::Tensor& tensor, Result& result) {
    if (tensor.is_inference()) return;
    const at::Tensor base = tensor.is_view() ? at::Tensor(tensor._base()) : tensor;
    const auto [known, is_new] = bases_.emplace(base.unsafeGetTensorImpl(), call_->bases_.size());
    if (is_new) call_->bases_.push_back({result.place, Elements::of(base), tensor._version()});
    result.base = static_cast<int64_t>(known->second);
    const Elements& seen = call_->bases_[known->second].elements;
    result.is_view = tensor.is_view() && seen.dtype == result.elements.dtype && seen.reading.plain();
    if (!result.is_view) return;
    const auto* meta = torch::autograd::impl::get_view_autograd_meta(tensor);
    result.no_grad = meta->get_creation_meta() != torch::autograd::CreationMeta::DEFAULT;
  }

  /// Of a result in memory that was there before the segment.
  void find_place(const at::Tensor& tensor, size_t index, Result& result) {
    const auto known = places_.find(memory_of(tensor));
    const bool made = made_.contains(memory_of(tensor));
    if (known == places_.end() && !made && !tensors_.contains(memory_of(tensor))) {
      result.place = {From::state, add_state(tensor)};  // one that no operator was given
      result.itself = true;
      return;
    }
    result.place = place_of(memory_of(tensor));
    if (result.place.from == From::made) return;
    if (result.place.from == From::argument) {
      result.itself = given_.tensors[result.place.index]->is_same(tensor);
    } else {
      const auto& states = call_->states_;
      const auto same = std::ranges::find(states, tensor.unsafeGetTensorImpl(), &State::impl);
      result.itself = same != states.end();
      if (result.itself) result.place.index = static_cast<uint32_t>(same - states.begin());
    }
    const TensorGuard& base = result.place.from == From::argument ? call_->arguments_[result.place.index].guard
                                                                  : call_->states_[result.place.index].guard;
    result.detached = base.requires_grad() && !(tensor.is_view() && tensor._base().requires_grad());
    const bool plain = base.elements().reading.plain() && base.elements().dtype == result.elements.dtype;
    if (!result.itself && !plain) throw Untrusted{fmt::format("result {} sees memory in another dtype", index)};
  }

  /// Tensors that the call makes and somebody holds beside the results would be others in every call.
  void refuse_what_is_kept() const {
    std::set<const c10::TensorImpl*> known;
    std::unordered_map<const c10::StorageImpl*, size_t> holders;
    std::unordered_map<const c10::TensorImpl*, size_t> uses;
    const auto note = [&](const at::Tensor& tensor) {
      ++uses[tensor.unsafeGetTensorImpl()];
      if (known.insert(tensor.unsafeGetTensorImpl()).second) ++holders[memory_of(tensor)];
    };
    std::set<const c10::TensorImpl*> bases;
    for (const at::Tensor* tensor : result_.tensors) {
      note(*tensor);
      if (!tensor->is_view() || !bases.insert(tensor->unsafeGetTensorImpl()).second) continue;
      note(at::Tensor(tensor->_base()));
    }
    const auto is_kept = [&](const CallLog::WeakStorage& storage) {
      return holders[storage._unsafe_get_target()] != static_cast<size_t>(storage.use_count());
    };
    if (std::ranges::any_of(log_.given(), is_kept)) throw Untrusted{kept_};
    if (std::ranges::any_of(log_.made(), is_kept, &CallLog::Made::storage)) throw Untrusted{kept_};
    for (const Result& result : call_->results_) {
      if (result.place.from != From::output) continue;
      const at::Tensor& tensor = *result_.tensors[static_cast<size_t>(&result - call_->results_.data())];
      if (tensor.use_count() > uses[tensor.unsafeGetTensorImpl()]) throw Untrusted{kept_};
    }
  }

  void keep_apart() {
    for (const State& state : call_->states_) call_->apart_.push_back(state.storage);
    std::ranges::sort(call_->apart_);
  }

  static constexpr const char* kept_ = "a tensor that it makes is kept beside its results (a gradient, a cache)";

  const Flat& given_;
  const CallLog& log_;
  const Flat& result_;
  std::shared_ptr<TrustedCall> call_;
  std::unordered_map<const c10::StorageImpl*, Place> places_;
  std::unordered_map<const c10::StorageImpl*, std::vector<at::Tensor>> tensors_;
  std::unordered_map<const c10::StorageImpl*, uint32_t> outputs_, made_;
  std::unordered_map<const c10::TensorImpl*, size_t> bases_;
};

std::variant<std::shared_ptr<TrustedCall>, std::string> TrustedCall::of(const Flat& arguments, const Modes& modes,
                                                                        const CallLog& log, const Flat& result) {
  try {
    return Maker(arguments, log, result).make(modes);
  } catch (const Untrusted& untrusted) {
    return untrusted.reason;
  }
}

bool TrustedCall::does_what(const TrustedCall& other) const {
  const auto same_state = [](const State& a, const State& b) {
    return a.impl() == b.impl() && a.storage == b.storage && a.guard == b.guard;
  };
  const auto same_memory = [](const CallLog::Made& a, const CallLog::Made& b) {
    return a.op == b.op && a.arguments == b.arguments && a.bytes == b.bytes && a.device == b.device;
  };
  return path_ == other.path_ && inputs_ == other.inputs_ && written_ == other.written_ && bases_ == other.bases_ &&
         results_ == other.results_ && result_structure_ == other.result_structure_ && arguments_ == other.arguments_ &&
         std::ranges::equal(states_, other.states_, same_state) && std::ranges::equal(made_, other.made_, same_memory);
}

bool TrustedCall::is_for(const Flat& arguments, const Modes& modes) const {
  if (text_of(arguments) != structure_ && !planted(Bug::scalars_not_guarded)) return false;
  if (arguments.tensors.size() != arguments_.size() || !(modes == modes_)) return false;
  if (current_cuda_device() != cuda_device_) return false;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (!argument_holds(i, arguments)) return false;
  }
  return true;
}

bool TrustedCall::argument_holds(size_t index, const Flat& arguments) const {
  const at::Tensor& tensor = *arguments.tensors[index];
  const Argument& known = arguments_[index];
  if (!known.guard.holds(tensor)) return false;
  const auto address = address_of(*tensor.unsafeGetTensorImpl());
  if (address % static_cast<uintptr_t>(known.alignment) != 0 && !planted(Bug::alignment_not_guarded)) return false;
  const c10::StorageImpl* storage = memory_of(tensor);
  if (std::ranges::binary_search(apart_, storage)) return false;
  for (size_t i = 0; i < index; ++i) {
    if (memory_of(*arguments.tensors[i]) == storage) return false;
  }
  return true;
}

bool TrustedCall::State::holds() const {
  if (tensor.use_count() == 0) return false;
  const Borrowed now(tensor._unsafe_get_target());
  return guard.holds(*now) && memory_of(*now) == storage;
}

bool TrustedCall::state_holds() const {
  return planted(Bug::stale_weight) || std::ranges::all_of(states_, [](const State& state) { return state.holds(); });
}

std::vector<c10::Storage> TrustedCall::make_memory() const {
  std::vector<c10::Storage> made;
  for (const CallLog::Made& memory : made_) {
    if (!memory.op) {
      const auto bytes = static_cast<int64_t>(memory.bytes);
      made.push_back(at::empty({bytes}, at::TensorOptions(memory.device).dtype(at::kByte)).storage());
      continue;
    }
    torch::jit::Stack stack(memory.arguments);
    memory.op->callBoxed(stack);
    made.push_back(stack.front().toTensor().storage());
  }
  return made;
}

const c10::Storage& TrustedCall::storage_at(Place place, const Flat& arguments,
                                            std::span<const c10::Storage> made) const {
  switch (place.from) {
    case From::argument:
      return arguments.tensors[place.index]->storage();
    case From::state:
      return states_[place.index].impl()->storage();
    case From::made:
    case From::output:
      break;
  }
  return made[place.index];
}

void TrustedCall::count_writes(const Flat& arguments) const {
  for (const Place& place : written_) {
    if (place.from == From::argument) count_write(*arguments.tensors[place.index]);
    if (place.from == From::state) count_write(lock(states_[place.index].tensor));
  }
}

bool TrustedCall::run(const Flat& arguments, detail::Replay& replay) const {
  const std::vector<c10::Storage> made = make_memory();
  std::vector<InputMemory> inputs;
  inputs.reserve(inputs_.size());
  for (const Input& input : inputs_) {
    inputs.push_back({&storage_at(input.place, arguments, made), input.dtype, input.offset});
  }
  bool wrote = false;
  std::vector<at::Tensor> outputs;
  try {
    outputs = path_->run(inputs, wrote);
  } catch (const std::exception&) {
    if (wrote) throw;
    return false;
  }
  count_writes(arguments);
  const OwnMemory memory{made, outputs};
  const std::vector<at::Tensor> bases = make_bases(memory);
  for (const Result& result : results_) {
    replay.tensors.push_back(result.same_as < 0 ? result_of(result, arguments, memory, bases)
                                                : replay.tensors[static_cast<size_t>(result.same_as)]);
  }
  replay.structure = result_structure_;
  return true;
}

const c10::Storage& TrustedCall::OwnMemory::at(Place place) const {
  return place.from == From::output ? outputs[place.index].storage() : made[place.index];
}

std::vector<at::Tensor> TrustedCall::make_bases(const OwnMemory& memory) const {
  std::vector<at::Tensor> bases;
  for (const Base& base : bases_) {
    const c10::Storage& storage = memory.at(base.place);
    bases.push_back(tensor_over(storage, base.elements, storage.device()));
    c10::TensorImpl& impl = *bases.back().unsafeGetTensorImpl();
    const auto first = std::ranges::find(bases_, base.place, &Base::place) - bases_.begin();
    c10::VariableVersion counter = bases[static_cast<size_t>(first)].unsafeGetTensorImpl()->version_counter();
    if (base.writes > 0) counter.set_version(base.writes);
    impl.set_version_counter(counter);
  }
  return bases;
}

at::Tensor TrustedCall::result_of(const Result& result, const Flat& arguments, const OwnMemory& memory,
                                  std::span<const at::Tensor> bases) const {
  const Elements& elements = result.elements;
  if (result.is_view) {
    const at::AutoGradMode grad(!result.no_grad);
    const at::Tensor& base = bases[static_cast<size_t>(result.base)];
    return read_as(at::as_strided(base, elements.sizes, elements.strides, elements.offset), elements.reading);
  }
  if (result.base >= 0 && bases_[static_cast<size_t>(result.base)].elements == elements) {
    return bases[static_cast<size_t>(result.base)];
  }
  if (result.place.from == From::output || result.place.from == From::made) {
    const c10::Storage& storage = memory.at(result.place);
    at::Tensor tensor = tensor_over(storage, elements, storage.device());
    if (result.base >= 0) {
      const at::Tensor& base = bases[static_cast<size_t>(result.base)];
      tensor.unsafeGetTensorImpl()->set_version_counter(base.unsafeGetTensorImpl()->version_counter());
    }
    return tensor;
  }
  at::Tensor base = result.place.from == From::argument ? *arguments.tensors[result.place.index]
                                                        : lock(states_[result.place.index].tensor);
  if (result.itself || planted(Bug::alias_missed)) return base;
  const at::AutoGradMode grad(at::GradMode::is_enabled() && !base.requires_grad());
  if (result.detached) base = base.detach();
  if (result.detached && Elements::of(base) == elements) return base;
  return read_as(at::as_strided(base, elements.sizes, elements.strides, elements.offset), elements.reading);
}

}  // namespace sinter::frontend
