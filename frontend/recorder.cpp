#include "frontend/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "compiler/ir/verify.h"
#include "frontend/convert.h"
#include "frontend/overlap.h"
#include "frontend/read_as.h"
#include "frontend/tensor_memory.h"
#include "frontend/trace/captured_graph.h"

namespace sinter::frontend {
namespace {

/// State that decides a program's course is compared on every call: no more than this of one tensor.
constexpr int64_t kComparedBytes = 256;

/// True for a comparison that ATen answers without looking at the data: guards say the same of every call. The CPU
/// looks for a nan among floats.
bool known_without_looking(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments) {
  if (facts.name != "aten::equal") return false;
  const at::Tensor& a = arguments[0].toTensor();
  const at::Tensor& b = arguments[1].toTensor();
  if (a.sizes() != b.sizes()) return true;
  const bool may_hold_nan = a.is_cpu() && (a.is_floating_point() || a.is_complex());
  return a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.scalar_type() == b.scalar_type() &&
         a.strides() == b.strides() && !may_hold_nan;
}

/// True when the call writes all of the tensor without reading it.
bool only_writes(const OpFacts& facts, const c10::Argument& argument) {
  constexpr std::array<std::string_view, 11> writers{"copy",      "fill",   "zero",      "normal",
                                                     "uniform",   "random", "bernoulli", "exponential",
                                                     "geometric", "cauchy", "log_normal"};
  return argument.is_out() || std::find(writers.begin(), writers.end(), value_hint(facts.name)) != writers.end();
}

GraphBreak host_read(const OpFacts& facts, std::string reason) {
  return {BreakCode::host_read,
          facts.name,
          {},
          std::move(reason),
          "keep the decision on the device (torch::where), or read the value after the compiled call"};
}

GraphBreak unsupported(const OpFacts& facts, std::string reason, std::string hint) {
  return {BreakCode::unsupported_op, facts.name, {}, std::move(reason), std::move(hint)};
}

/// True when a view on the way from a value to its memory has another dtype than what it looks at.
bool looks_through_another_dtype(const ir::Graph& graph, ir::ValueId value) {
  while (graph.value(value).alias) {
    const ir::Node& node = graph.producer(value);
    const ir::ValueId* base = node.args.empty() ? nullptr : node.args.front().value();
    if (base == nullptr) return false;
    if (graph.type(*base).dtype != graph.type(value).dtype) return true;
    value = *base;
  }
  return false;
}

}  // namespace

Recorder::Recorder(std::span<const at::Tensor> inputs, std::span<const NamedTensor> names,
                   std::span<const WeakTensor> leaves) {
  index_names(names);
  for (uint32_t i = 0; i < inputs.size(); ++i) add_input(inputs[i], i);
  note_leaves(names, leaves);
}

bool Recorder::opens(const c10::OperatorHandle& op, c10::DispatchKeySet keys) {
  const std::lock_guard lock(mutex_);
  return facts_.of(op).composite && !op.hasKernelForDispatchKey(keys.highestPriorityTypeId());
}

void Recorder::stop(GraphBreak reason) {
  const std::lock_guard lock(mutex_);
  fail(std::move(reason), scopes_.take(), {});
}

void Recorder::fail(GraphBreak reason, const Frames& frames, const std::string& module) {
  recording_ = false;
  if (!trace_.graph_break) trace_.graph_break = located(std::move(reason), frames, module);
}

GraphBreak Recorder::located(GraphBreak reason, const Frames& frames, const std::string& module) {
  if (!reason.where.empty()) return reason;
  scopes_.resolve({&frames});
  const auto stated = stated_place();
  const std::string place = stated ? stated->line : scopes_.place(frames);
  const std::string function = stated ? stated->line : scopes_.function(frames);
  reason.where = module.empty() && stated ? stated->module : module;
  if (!module.empty() && !place.empty()) reason.where += "  ";
  reason.where += place;
  if (place != function) reason.where += " in " + function;
  return reason;
}

void Recorder::note_failure(const Pending& pending) {
  const std::lock_guard lock(mutex_);
  failed_at_ = located({}, pending.frames, pending.module).where;
}

std::optional<Recorder::Pending> Recorder::before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const std::lock_guard lock(mutex_);
  Pending pending;
  pending.facts = &facts_.of(op);
  const OpFacts& facts = *pending.facts;
  if (!recording_ || facts.metadata_only || reseats(facts, arguments)) return std::nullopt;
  pending.stated = stated_place();
  if (pending.stated) {
    pending.module = pending.stated->module;
  } else {
    pending.frames = scopes_.take();
  }
  const auto& declared = op.schema().arguments();
  for (size_t i = 0; i < arguments.size() && recording_; ++i) {
    const bool written = std::find(facts.mutates.begin(), facts.mutates.end(), i) != facts.mutates.end();
    const bool overwritten = written && only_writes(facts, declared[i]);
    const TensorToArg encoder = [&](const at::Tensor& tensor) -> ir::Arg {
      return encode(tensor, overwritten, pending);
    };
    pending.args.push_back(arg_of(arguments[i], *declared[i].real_type(), encoder, trace_.opaques));
  }
  if (!recording_) return std::nullopt;
  if (known_without_looking(facts, arguments)) return std::nullopt;
  if (facts.reads_host || sizes_from_data(facts, arguments)) {
    if (!note_host_read(pending)) begin_read(pending, false);
    if (!recording_ || (facts.reads_host && !pending.read)) return std::nullopt;
  }
  if (copies_to_host(facts, arguments)) begin_read(pending, true);
  if (!recording_) return std::nullopt;
  pending.draws = draws(facts, arguments);
  note_writes(arguments, pending);
  if (!recording_) return std::nullopt;
  return pending;
}

ir::Arg Recorder::encode(const at::Tensor& tensor, bool overwritten, Pending& pending) {
  if (!recording_) return {};
  if (const auto kind = unsupported_kind(tensor)) {
    fail(unsupported(*pending.facts, fmt::format("an argument is {}", *kind), "compile the part around it"),
         pending.frames, pending.module);
    return {};
  }
  if (const auto number = wrapped_number(tensor); number && !ledger_.find(tensor)) {
    return std::visit([](auto value) { return ir::Arg{value}; }, *number);
  }
  const ir::ValueId value = resolve(tensor, overwritten);
  pending.origin.add(ledger_.memory(tensor)->origin);
  if (ledger_.memory(tensor)->left_device) {
    fail(host_read(*pending.facts, "reads on the CPU what was computed on a CUDA device"), pending.frames,
         pending.module);
  }
  pending.reads_cuda = pending.reads_cuda || tensor.is_cuda();
  pending.roots.push_back(root_of(value));
  const std::string& module = owner(value);
  if (pending.module.empty() && !pending.stated) pending.module = module;
  if (pending.owner.empty()) pending.owner = module;
  pending.owned = pending.owned && !module.empty() && module == pending.owner;
  if (at::GradMode::is_enabled() && tensor.requires_grad()) note_gradient_use(tensor, value, pending);
  return {value};
}

/// True for set_ on an empty tensor that the program made: nobody can tell it from a new look at the storage it is put
/// on, and as such it is resolved where it is used. (LibTorch's recurrent layers see all their weights through one.)
bool Recorder::reseats(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments) {
  if (!facts.name.starts_with("aten::set_.source")) return false;
  const at::Tensor& target = arguments[0].toTensor();
  const auto known = ledger_.find(target);
  if (!known || target.numel() != 0 || outlives_call(origin_of(*known))) return false;
  reseated_.emplace_back(target.getIntrusivePtr());
  return true;
}

/// True when every call with the same guards reads the same: what contents hold is compared whenever the program is
/// recorded again, and what small state on the CPU holds becomes a guard.
bool Recorder::note_host_read(const Pending& pending) {
  const OpFacts& facts = *pending.facts;
  if (pending.origin.varies || facts.impure || (facts.reads_host && !facts.gives_numbers)) return false;
  std::vector<Leaf*> state;
  for (const ir::ValueId value : pending.origin.leaves) {
    Leaf* leaf = leaf_of(value);
    if (!leaf || leaf->is_content || leaf->read_by_host.defined()) continue;
    const bool large = leaf->layout.end_byte() - leaf->layout.begin_byte() > kComparedBytes;
    if (large || is_written(*leaf)) return false;
    state.push_back(leaf);
  }
  for (Leaf* leaf : state) {
    leaf->read_by_host = leaf->content.defined() ? leaf->content : copy_of(*leaf->layout.storage, leaf->layout);
  }
  return true;
}

/// A read whose outcome decides the course of this very call. Of a copy to the CPU that is its sizes alone: what it
/// holds is not looked at here.
void Recorder::begin_read(Pending& pending, bool copy) {
  const OpFacts& facts = *pending.facts;
  const bool plain =
      copy || facts.gives_numbers || (facts.sizes_from_data && facts.mutates.empty() && !facts.reads_host);
  pending.read = plain && !facts.impure && !facts.random && !effects_;
  if (pending.read) return;
  const char* what = !plain ? "reads a tensor to the host"
                     : effects_
                         ? "reads a tensor to the host after an operator that may have effects beyond its results"
                         : "an operator that may have effects beyond its results reads a tensor to the host";
  fail(host_read(facts, what), pending.frames, pending.module);
}

/// False when what the read gave cannot be told apart.
bool Recorder::end_read(const Pending& pending, ir::NodeId node, c10::ArrayRef<c10::IValue> results) {
  auto outcome = Outcome::of({results.data(), results.size()});
  const auto& values = trace_.graph.node(node).results;
  const bool fresh = std::none_of(values.begin(), values.end(),
                                  [&](ir::ValueId value) { return trace_.graph.value(value).alias.has_value(); });
  if (!outcome || !fresh) {
    fail(host_read(*pending.facts, "reads something else than numbers and sizes to the host"), pending.frames,
         pending.module);
    return false;
  }
  trace_.reads.push_back({node, std::move(*outcome)});
  return true;
}

void Recorder::note_writes(c10::ArrayRef<c10::IValue> arguments, Pending& pending) {
  const OpFacts& facts = *pending.facts;
  pending.mutates = written_positions(facts, arguments);
  if (pending.mutates.empty()) return;
  if (resizes(facts) || (facts.view_in_place && facts.functional.empty())) {
    return fail(unsupported(facts, "changes the storage or the sizes of a tensor", "make a new tensor instead"),
                pending.frames, pending.module);
  }
  for (const uint32_t position : pending.mutates) {
    for_each_tensor(arguments[position], [&](const at::Tensor& tensor) {
      if (recording_) check_write(tensor, pending);
      if (recording_) check_overlaps(tensor, arguments, pending);
    });
  }
  if (!recording_) return;
  // Content that is written becomes a tensor of the graph's own: encode the written arguments again.
  for (const uint32_t position : pending.mutates) {
    const TensorToArg encoder = [&](const at::Tensor& tensor) { return encode(tensor, true, pending); };
    pending.args[position] = arg_of(arguments[position], *c10::AnyType::get(), encoder, trace_.opaques);
  }
}

void Recorder::check_overlaps(const at::Tensor& written, c10::ArrayRef<c10::IValue> arguments, Pending& pending) {
  bool found = false;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& read) { found = found || overlaps_in_part(written, read); });
  }
  if (!found) return;
  fail(unsupported(*pending.facts, "writes a tensor that another operand overlaps in part", "clone that operand first"),
       pending.frames, pending.module);
}

void Recorder::check_write(const at::Tensor& tensor, Pending& pending) {
  const OpFacts& facts = *pending.facts;
  const ir::ValueId value = resolve(tensor, true);
  const ir::ValueId root = origin_of(value);
  const bool lasts = outlives_call(root);
  if (lasts && facts.view_in_place) {
    const bool input = trace_.graph.producer(root).as<ir::Input>() != nullptr;
    return fail({input ? BreakCode::input_mutation : BreakCode::state_mutation,
                 facts.name,
                 {},
                 "changes the sizes or strides of " + description(root),
                 "make a view instead (t(), squeeze())"},
                pending.frames, pending.module);
  }
  if (!facts.view_in_place &&
      (ledger_.memory(tensor)->opaque || trace_.graph.type(root).dtype != trace_.graph.type(value).dtype ||
       !reading_of(tensor).plain() || looks_through_another_dtype(trace_.graph, value))) {
    return fail(unsupported(facts, "writes a tensor whose memory others see through another dtype or layout",
                            "write to a clone of it"),
                pending.frames, pending.module);
  }
  if (ir::overlaps_itself(trace_.graph.type(value)) || ir::overlaps_itself(trace_.graph.type(root))) {
    return fail(unsupported(facts, "writes a tensor whose elements share memory with each other",
                            "write to the tensor that was expanded or unfolded"),
                pending.frames, pending.module);
  }
  const Leaf* leaf = leaf_of(root);
  if (leaf && leaf->read_by_host.defined()) {
    return fail(host_read(facts, "writes " + description(root) + ", which the host has read"), pending.frames,
                pending.module);
  }
  if (leaf && leaf->content.defined()) {
    own_content(tensor);
  } else if (lasts) {
    ledger_.memory(tensor)->written = true;
  }
  if (leaf && leaf->history.requires_grad) note_step(leaf->tensor, pending.frames);
  if (tensor.device().is_cpu() && pending.reads_cuda) {
    return fail(host_read(facts, "copies a CUDA tensor to the CPU"), pending.frames, pending.module);
  }
  pending.written.push_back(
      {c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()), Layout::of(tensor), ledger_.memory(tensor)});
}

void Recorder::after(Pending pending, c10::ArrayRef<c10::IValue> results) {
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  const OpFacts& facts = *pending.facts;
  const auto tensors = tensors_of({results.data(), results.size()});
  std::vector<ir::Type> types;
  std::vector<bool> known_before;
  for (const at::Tensor& tensor : tensors) {
    if (const auto kind = unsupported_kind(tensor)) {
      return fail(unsupported(facts, fmt::format("a result is {}", *kind), "compile the part around it"),
                  pending.frames, pending.module);
    }
    if (pending.reads_cuda && tensor.device().is_cpu() && copies(facts) && !pending.read) {
      return fail(host_read(facts, "copies a CUDA tensor to the CPU"), pending.frames, pending.module);
    }
    types.push_back(type_of(tensor));
    known_before.push_back(ledger_.memory(tensor) != nullptr);
  }
  if (!check_written(pending)) return;

  const bool views = facts.view_in_place && !facts.functional.empty();
  ir::Call call{views ? facts.functional : facts.name, {}, {}, pending.draws, facts.impure};
  if (!views) {
    call.mutates = pending.mutates;
    call.functional = facts.functional;
  }
  call.read = pending.read;
  effects_ = effects_ || facts.impure;
  const ir::NodeId node = trace_.graph.add(std::move(call), std::move(pending.args), std::move(types));
  const std::vector<ir::ValueId> values = trace_.graph.node(node).results;
  for (size_t i = 0; i < values.size(); ++i) {
    trace_.graph.value(values[i]).hint = value_hint(facts.name);
    trace_.graph.value(values[i]).alignment =
        alignment_up_to(ir::full_alignment, address_of(*tensors[i].unsafeGetTensorImpl()));
    place_result(tensors[i], values[i], known_before[i], pending);
    if (pending.owned) set_owner(values[i], pending.owner);
    Origin& origin = ledger_.memory_or_add(tensors[i]).origin;
    origin.add(pending.origin);
    if (pending.draws || facts.impure || !tensors[i].device().is_cpu()) origin.add({.varies = true, .leaves = {}});
  }
  for (const Written& written : pending.written) {  // results or not
    written.memory->origin.add(pending.origin);
    if (pending.draws || facts.impure) written.memory->origin.add({.varies = true, .leaves = {}});
  }
  if (pending.read && !end_read(pending, node, results)) return;
  watch_memory(pending, tensors);
  std::string line = pending.stated ? std::move(pending.stated->line) : std::string();
  places_[node.index] = {std::move(pending.module), std::move(pending.frames), std::move(line)};
}

/// A write that moved its tensor to other memory, or gave it other sizes, is none that can be recorded.
bool Recorder::check_written(const Pending& pending) {
  for (const Written& written : pending.written) {
    const auto tensor = written.tensor.lock();
    if (!tensor || pending.facts->view_in_place || Layout::of(at::Tensor(tensor)) == written.layout) continue;
    fail(unsupported(*pending.facts, "resizes the tensor it writes", "give it an output of the right size"),
         pending.frames, pending.module);
    return false;
  }
  return true;
}

void Recorder::place_result(const at::Tensor& tensor, ir::ValueId value, bool known_before, const Pending& pending) {
  const Placement placement = ledger_.place(tensor, pending.roots);
  ledger_.bind(tensor, value);
  if (placement.kind == Placement::Kind::inside) {
    const ir::Type& base = trace_.graph.type(placement.base);
    const bool sees_gaps = pending.facts->name == "aten::as_strided" && base.dtype == trace_.graph.type(value).dtype &&
                           !ir::lies_in_elements_of(base, trace_.graph.type(value), placement.offset);
    if (sees_gaps && !outlives_call(placement.base)) return fail_beyond_argument(pending);
    // A view that its operator does not declare has a version of its own, which writes to it raise.
    const bool has_other_version = !pending.facts->declares_aliases && outlives_call(placement.base);
    if (sees_gaps || has_other_version) ledger_.memory(tensor)->opaque = true;
    trace_.graph.value(value).alias = ir::Alias{placement.base, placement.offset};
    ledger_.add_view(tensor, value);
    return;
  }
  if (known_before && placement.kind == Placement::Kind::overlapping &&
      trace_.graph.type(placement.base).dtype != trace_.graph.type(value).dtype) {
    trace_.graph.value(value).alias = ir::Alias{placement.base, 0};
    ledger_.add_view(tensor, value);
    return;
  }
  if (known_before) return fail_beyond_argument(pending);
  Memory& memory = ledger_.memory_or_add(tensor);
  memory.opaque = memory.opaque || placement.kind == Placement::Kind::overlapping;
  memory.left_device = pending.reads_cuda && tensor.device().is_cpu() && !pending.read;
  ledger_.add_region(plain_view(tensor), value);
  bind_as_read(tensor, value);
}

void Recorder::fail_beyond_argument(const Pending& pending) {
  fail(unsupported(*pending.facts, "sees memory beyond that of its argument", "slice the whole tensor instead"),
       pending.frames, pending.module);
}

/// A library may return new memory as a conjugated view of it (vectors of a decomposition): `plain` is what lies there.
void Recorder::bind_as_read(const at::Tensor& tensor, ir::ValueId plain) {
  const ir::Reading reading = reading_of(tensor);
  if (reading.plain()) return;
  ir::ValueId value = plain;
  const auto look = [&](const char* op) {
    const ir::NodeId node = trace_.graph.add(ir::Call{op, {}, {}}, {ir::Arg{value}}, {type_of(tensor)});
    value = trace_.graph.node(node).results.front();
    trace_.graph.value(value).alias = ir::Alias{plain, 0};
  };
  if (reading.conjugated) look("aten::_conj");
  if (reading.negated) look("aten::_neg_view");
  ledger_.bind(tensor, value);
  ledger_.add_view(tensor, value);
}

void Recorder::watch_memory(const Pending& pending, std::span<const at::Tensor> results) {
  for (const Written& written : pending.written) {
    written.memory->uninitialised = false;
    if (written.memory->watched) watch(*written.memory);
  }
  if (!pending.facts->makes_cpu_memory) return;
  for (const at::Tensor& tensor : results) {
    if (!tensor.device().is_cpu()) continue;
    Memory& memory = ledger_.memory_or_add(tensor);
    watch(memory);
    memory.uninitialised = memory.watched && pending.facts->uninitialised;
    memory.origin.add({.varies = !memory.watched, .leaves = {}});
  }
}

}  // namespace sinter::frontend
