#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/ir/memory.h"
#include "frontend/convert.h"
#include "frontend/hooks.h"
#include "frontend/libtorch_version.h"
#include "frontend/recorder.h"
#include "frontend/tensor_memory.h"
#include "frontend/trace/captured_graph.h"

namespace sinter::frontend {
namespace {

/// Contents kept by one capture, together.
constexpr int64_t kContentBytes = int64_t{64} << 20;

/// Larger memory is not looked at.
constexpr size_t kWatchedBytes = size_t{64} << 20;

const std::string kNobody;

}  // namespace

std::optional<std::string> unsupported_kind(const at::Tensor& tensor) {
  if (tensor.is_nested()) return "a nested tensor";
  if (tensor.is_mkldnn()) return "an MKL-DNN tensor";
  if (tensor.layout() != at::kStrided) return "a sparse tensor";
  if (tensor.is_quantized()) return "a quantized tensor";
  if (tensor.is_meta()) return "a meta tensor";
  if (!tensor.device().is_cpu() && !tensor.device().is_cuda()) return "on " + tensor.device().str();
  constexpr c10::DispatchKeySet wrapped({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper,
                                         c10::DispatchKey::Functionalize, c10::DispatchKey::Python});
  if (tensor.key_set().has_any(wrapped)) return "a wrapped tensor (a tensor subclass or a function transform)";
  if (has_names(tensor)) return "a tensor with named dimensions";
  if (!tensor.has_storage()) return "a tensor without storage";
  if (tensor._is_zerotensor()) return "zeros without memory (an undefined gradient or tangent)";
  return std::nullopt;
}

std::optional<std::string> unsupported_leaf(const at::Tensor& tensor) {
  auto kind = unsupported_kind(tensor);
  if (!kind && (tensor.is_conj() || tensor.is_neg())) return "a conjugated or negated view";
  if (!kind && has_tangent(*tensor.unsafeGetTensorImpl())) return "a tensor with a tangent (forward-mode derivative)";
  return kind;
}

void Recorder::index_names(std::span<const NamedTensor> names) {
  for (const NamedTensor& named : names) {
    const auto tensor = named.tensor.lock();
    if (!tensor) continue;
    names_by_tensor_.try_emplace(tensor.get(), names_.size());
    if (tensor->has_storage()) {
      names_by_storage_.emplace(tensor->storage().unsafeGetStorageImpl(), names_.size());
    }
    names_.push_back({named.name, named.module, named.tensor});
  }
}

void Recorder::add_input(const at::Tensor& tensor, uint32_t index) {
  const auto kind = tensor.defined() ? unsupported_leaf(tensor) : std::optional<std::string>("an undefined tensor");
  if (kind) {
    return fail({BreakCode::unsupported_input,
                 {},
                 {},
                 fmt::format("input {} is {}", index, *kind),
                 "pass dense tensors on the CPU or a CUDA device"},
                {}, {});
  }
  const ir::ValueId value = trace_.graph.add1(ir::Input{index}, {}, type_of(tensor));
  trace_.graph.value(value).hint = fmt::format("x{}", index);
  inputs_.push_back(
      {weaken(tensor), Layout::of(tensor), History::of(tensor), tensor.use_count(), tensor.storage().use_count()});
  if (ledger_.find(tensor)) return;  // given before: it is that input, read and written
  add_own_region(tensor, value, false);
  ledger_.memory(tensor)->origin.add({.varies = true, .leaves = {}});
  ledger_.bind(tensor, value);
  note_leaf(tensor, fmt::format("input {}", index), index);
}

void Recorder::add_own_region(const at::Tensor& tensor, ir::ValueId value, bool look) {
  const bool shared = ledger_.place(tensor).kind != Placement::Kind::fresh;
  ledger_.add_region(tensor, value, look);
  Memory& memory = *ledger_.memory(tensor);
  memory.opaque = memory.opaque || (shared && !look);  // of looks it is known at the end which of them are views
}

ir::ValueId Recorder::resolve(const at::Tensor& tensor, bool overwritten) {
  if (Memory* memory = ledger_.memory(tensor)) {
    const auto& regions = memory->regions;
    const bool all = overwritten && regions.size() == 1 && Layout::of(tensor) == regions[0].layout;
    if (memory->watched && !all) refresh_content(*memory);
  }
  if (const auto known = ledger_.find(tensor)) return *known;
  const bool bare = !unsupported_leaf(tensor);
  const bool named = bare && add_named_over(tensor);
  if (const auto known = ledger_.find(tensor)) return *known;
  const Placement placement = place(tensor);
  if (const auto view = view_of(tensor, placement)) return *view;
  if (!bare) {
    fail({BreakCode::unsupported_op,
          {},
          {},
          "a conjugated or negated view was made outside of the callable",
          "hand in what it looks at, or what resolve_conj() and resolve_neg() give"},
         scopes_.take(), {});
  }
  if (placement.kind == Placement::Kind::overlapping || (placement.ambiguous && !named)) {
    fail({BreakCode::unsupported_op,
          {},
          {},
          "a tensor sees known memory in a way no operator made",
          "make it with an operator (view, as_strided)"},
         scopes_.take(), {});
  }
  return placement.kind == Placement::Kind::inside ? look_at(tensor, placement) : add_leaf(tensor, nullptr);
}

/// Where a tensor lies that is not known; one that the program put on a storage itself may span several regions of it.
Placement Recorder::place(const at::Tensor& tensor) {
  Placement placement = ledger_.place(tensor);
  if (placement.kind != Placement::Kind::overlapping) return placement;
  const bool reseated = std::any_of(reseated_.begin(), reseated_.end(), [&](const auto& own) {
    return own._unsafe_get_target() == tensor.unsafeGetTensorImpl();
  });
  const Placement across = reseated ? ledger_.place_across(tensor) : Placement{};
  return across.kind == Placement::Kind::inside && outlives_call(across.base) ? across : placement;
}

/// The operator's result that autograd wrapped in this tensor object. Over inputs and state only what cannot be
/// described otherwise counts: a tensor held by a closure may look the same.
std::optional<ir::ValueId> Recorder::view_of(const at::Tensor& tensor, const Placement& placement) {
  const auto view = ledger_.find_view(tensor);
  if (!view) return std::nullopt;
  if (outlives_call(root_of(*view))) {
    if (placement.kind != Placement::Kind::overlapping) return std::nullopt;
    wrapped_views_.emplace_back(tensor.getIntrusivePtr());
  }
  ledger_.bind(tensor, *view);
  return view;
}

/// The value of a tensor that came to share known memory without an operator (x.data(), set_data).
ir::ValueId Recorder::look_at(const at::Tensor& tensor, const Placement& placement) {
  const ir::Alias alias{placement.base, placement.offset};
  if (outlives_call(placement.base)) return add_leaf(tensor, nullptr, alias);
  ir::ValueId value = placement.base;
  ir::Type type = type_of(tensor);
  if (placement.offset != 0 || type != trace_.graph.type(value)) {
    value = trace_.graph.add1(
        ir::Call{"aten::as_strided", {}, {}, false, false},
        as_strided_args(placement.base, tensor.sizes(), tensor.strides(), tensor.storage_offset()), std::move(type));
    trace_.graph.value(value).alias = alias;
    trace_.graph.value(value).hint = "as_strided";
  }
  ledger_.bind(tensor, value);
  return value;
}

/// Adds this tensor where it has a name, else the named tensors that share memory with it.
bool Recorder::add_named_over(const at::Tensor& tensor) {
  const auto by_identity = names_by_tensor_.find(tensor.unsafeGetTensorImpl());
  if (by_identity != names_by_tensor_.end()) {
    add_leaf(tensor, &names_[by_identity->second]);
    return true;
  }
  const Layout layout = Layout::of(tensor);
  const auto [first, last] = names_by_storage_.equal_range(layout.storage);
  bool added = false;
  for (auto entry = first; entry != last; ++entry) {
    const Named& named = names_[entry->second];
    auto held = named.tensor.lock();
    if (!held) continue;
    const at::Tensor owner_tensor(std::move(held));
    const Layout other = Layout::of(owner_tensor);
    const bool overlaps = other.begin_byte() < layout.end_byte() && layout.begin_byte() < other.end_byte();
    if (!overlaps || ledger_.find(owner_tensor) || unsupported_leaf(owner_tensor)) continue;
    add_leaf(owner_tensor, &named);
    added = true;
  }
  return added;
}

ir::ValueId Recorder::add_leaf(const at::Tensor& tensor, const Named* named, std::optional<ir::Alias> base) {
  Leaf leaf;
  leaf.node = trace_.graph.add(ir::State{}, {}, {type_of(tensor)});
  leaf.value = trace_.graph.node(leaf.node).results[0];
  leaf.tensor = c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr());
  leaf.storage = tensor.storage().getWeakStorageImpl();
  leaf.layout = Layout::of(tensor);
  leaf.base = base;
  leaf.history = History::of(tensor);
  if (named) {
    leaf.name = named->name;
    set_owner(leaf.value, named->module);
  } else if (base) {
    set_owner(leaf.value, std::string(owner(base->base)));
  } else if (tensor.device().is_cpu()) {
    const int64_t bytes = leaf.layout.end_byte() - leaf.layout.begin_byte();
    if (content_bytes_ + bytes <= kContentBytes) {
      content_bytes_ += bytes;
      leaf.content = copy_of(*leaf.layout.storage, leaf.layout);
    }
  }
  add_own_region(tensor, leaf.value, base.has_value());
  const bool varies = !tensor.device().is_cpu() || finder_of(tensor.unsafeGetTensorImpl()) != nullptr;
  if (!base) ledger_.memory(tensor)->origin.add({.varies = varies, .leaves = {leaf.value}});
  if (leaf.content.defined()) watch(*ledger_.memory(tensor));
  ledger_.bind(tensor, leaf.value);
  note_leaf(tensor, leaf.name, std::nullopt);
  leaves_.push_back(std::move(leaf));
  return leaves_.back().value;
}

/// Notes what the memory holds now, to see whether the program changes it without an operator.
void Recorder::watch(Memory& memory) {
  const auto storage = memory.storage.lock();
  if (!storage || storage->nbytes() > kWatchedBytes) return;
  memory.watched = true;
  memory.hash = hash_of(*storage);
}

/// Where the program filled watched memory itself, what it holds now becomes a content value.
void Recorder::refresh_content(Memory& memory) {
  const auto storage = memory.storage.lock();
  if (!storage) return;
  const uint64_t hash = hash_of(*storage);
  if (!memory.uninitialised && hash == memory.hash) return;
  memory.hash = hash;
  memory.uninitialised = false;
  memory.refreshed = true;
  for (Region& region : memory.regions) {
    Leaf leaf;
    leaf.content = copy_of(*storage, region.layout);
    leaf.layout = region.layout;
    leaf.is_content = true;
    leaf.node = trace_.graph.add(ir::Constant{}, {}, {type_of(leaf.content)});
    leaf.value = trace_.graph.node(leaf.node).results[0];
    region.value = leaf.value;
    leaves_.push_back(std::move(leaf));
  }
  ledger_.forget_tensors(storage.get());
}

/// A content that is about to be written becomes a copy, made on every call.
void Recorder::own_content(const at::Tensor& tensor) {
  Memory& memory = *ledger_.memory(tensor);
  for (Region& region : memory.regions) {
    const ir::ValueId copy = trace_.graph.add1(ir::Call{"aten::clone", {}, {}, false, false},
                                               {{region.value}, {ir::None{}}}, trace_.graph.type(region.value));
    trace_.graph.value(copy).hint = "clone";
    if (Leaf* leaf = leaf_of(region.value); leaf && !leaf->is_content) leaf->own_copy = copy;
    region.value = copy;
  }
  ledger_.forget_tensors(tensor.storage().unsafeGetStorageImpl());
}

Recorder::Leaf* Recorder::leaf_of(ir::ValueId root) {
  const auto found = std::find_if(leaves_.begin(), leaves_.end(), [&](const Leaf& leaf) { return leaf.value == root; });
  return found == leaves_.end() ? nullptr : &*found;
}

/// True once an operator wrote to what the tensor held when the call began.
bool Recorder::is_written(const Leaf& leaf) const {
  return leaf.own_copy.valid() || ledger_.is_written(leaf.layout.storage);
}

/// True for inputs and state: others may hold tensors over their memory from call to call.
bool Recorder::outlives_call(ir::ValueId root) const {
  const ir::Node& producer = trace_.graph.producer(root);
  return producer.as<ir::Input>() || producer.as<ir::State>();
}

ir::ValueId Recorder::root_of(ir::ValueId value) const { return ir::memory_of(trace_.graph, value); }

void Recorder::set_owner(ir::ValueId value, const std::string& module) {
  if (module.empty()) return;
  if (owners_.size() <= value.index) owners_.resize(value.index + 1);
  owners_[value.index] = module;
}

const std::string& Recorder::owner(ir::ValueId value) const {
  return value.index < owners_.size() ? owners_[value.index] : kNobody;
}

/// The input, state or call whose memory a value looks at.
ir::ValueId Recorder::origin_of(ir::ValueId value) {
  ir::ValueId origin = root_of(value);
  for (const Leaf* leaf = leaf_of(origin); leaf && leaf->base; leaf = leaf_of(origin)) origin = leaf->base->base;
  return origin;
}

std::string Recorder::description(ir::ValueId value) {
  const ir::ValueId root = origin_of(value);
  if (const auto* input = trace_.graph.producer(root).as<ir::Input>()) return fmt::format("input {}", input->index);
  const Leaf* leaf = leaf_of(root);
  if (!leaf) return "an intermediate tensor";
  return leaf->name.empty() ? "a closed-over tensor" : leaf->name;
}

}  // namespace sinter::frontend
