#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "frontend/convert.h"
#include "frontend/host_call.h"
#include "frontend/recorder.h"

namespace sinter::frontend {
namespace {

GraphBreak host_break(BreakCode code, std::string reason, std::string hint) {
  return {code, kHostOp, {}, std::move(reason), std::move(hint)};
}

/// True when one of the words of a closure points between two addresses of the stack, `from` being the lower one.
bool points_into(const detail::HostFunction& function, const void* from, const void* to) {
  const auto* bytes = static_cast<const char*>(function.closure);
  for (size_t at = 0; at + sizeof(uintptr_t) <= function.size; at += sizeof(uintptr_t)) {
    uintptr_t word = 0;
    std::memcpy(&word, bytes + at, sizeof word);
    if (reinterpret_cast<uintptr_t>(from) <= word && word < reinterpret_cast<uintptr_t>(to)) return true;
  }
  return false;
}

const OpFacts& host_facts() {
  static const OpFacts facts = [] {
    OpFacts known;
    known.name = kHostOp;
    known.impure = true;
    return known;
  }();
  return facts;
}

}  // namespace

GraphBreak host_threw() {
  return host_break(BreakCode::unsupported_op, "a host function threw, and the callable went on",
                    "catch the exception inside of the host function");
}

void Recorder::begin_on_stack(const void* frame) {
  stack_begin_ = frame;
  thread_ = std::this_thread::get_id();
}

std::optional<GraphBreak> Recorder::refusal_of(const detail::HostFunction& function) const {
  const int local = 0;
  if (effects_) {
    return host_break(BreakCode::host_read,
                      "runs a host function after an operator that may have effects beyond its results",
                      "call the operator after it, or outside of the compiled callable");
  }
  if (!function.plain) {
    return host_break(BreakCode::host_read, "a host function captures more than references and plain values",
                      "capture by reference what outlives the compiled callable, and pass tensors as arguments");
  }
  if (std::this_thread::get_id() == thread_ && points_into(function, &local, stack_begin_)) {
    return host_break(BreakCode::host_read, "a host function captures a local variable of the call by reference",
                      "capture numbers by value, and pass tensors as arguments");
  }
  return std::nullopt;
}

std::optional<Recorder::Pending> Recorder::before_host(const detail::HostFunction& function,
                                                       std::span<const at::Tensor> tensors) {
  const std::lock_guard lock(mutex_);
  if (!recording_) return std::nullopt;
  Pending pending;
  pending.facts = &host_facts();
  pending.stated = stated_place();
  if (pending.stated) {
    pending.module = pending.stated->module;
  } else {
    pending.frames = scopes_.take();
  }
  if (auto reason = refusal_of(function)) {
    fail(std::move(*reason), pending.frames, pending.module);
    return std::nullopt;
  }
  trace_.opaques.push_back(c10::IValue::make_capsule(c10::make_intrusive<HostClosure>(function)));
  ir::ArgList list;
  for (const at::Tensor& tensor : tensors) {
    const auto kind = tensor.defined() ? unsupported_leaf(tensor) : std::optional<std::string>("an undefined tensor");
    if (kind) {
      fail(host_break(BreakCode::unsupported_op, fmt::format("a host function is given {}", *kind),
                      "give it dense tensors on the CPU or a CUDA device"),
           pending.frames, pending.module);
      return std::nullopt;
    }
    const ir::ValueId value = resolve(tensor, false);
    if (!recording_) return std::nullopt;
    list.push_back({value});
  }
  pending.args = {{ir::Opaque{static_cast<uint32_t>(trace_.opaques.size() - 1)}}, {std::move(list)}};
  return pending;
}

void Recorder::after_host(Pending pending, const std::optional<at::Scalar>& value, bool decides) {
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  std::vector<c10::IValue> results;
  if (value) results.push_back(to_ivalue(value));
  auto outcome = Outcome::of(results);
  if (!outcome) {
    return fail(host_break(BreakCode::host_read, "a host function gives a complex number", "give two floats"),
                pending.frames, pending.module);
  }
  ir::Call call{kHostOp, {}, {}, false, true};
  call.read = true;
  const ir::NodeId node = trace_.graph.add(std::move(call), std::move(pending.args), {});
  trace_.reads.push_back({node, std::move(*outcome), decides});
  std::string line = pending.stated ? std::move(pending.stated->line) : std::string();
  places_[node.index] = {std::move(pending.module), std::move(pending.frames), std::move(line)};
}

void Recorder::look_into_host(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                              const HostScope& scope) {
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  const OpFacts& facts = facts_.of(op);
  if (draws(facts, arguments)) {
    return fail(host_break(BreakCode::unsupported_op, "a host function draws from a generator of LibTorch",
                           "draw outside of it, or from a generator of the C++ library"),
                {}, {});
  }
  const std::vector<uint32_t> writes = written_positions(facts, arguments);
  for (uint32_t i = 0; i < arguments.size() && recording_; ++i) {
    const bool writing = std::find(writes.begin(), writes.end(), i) != writes.end();
    for (const at::Tensor& tensor : tensors_of({&arguments[i], 1})) {
      if (tensor.defined() && tensor.has_storage()) look_into_host(tensor, writing, scope);
    }
  }
}

void Recorder::look_into_host(const at::Tensor& tensor, bool writing, const HostScope& scope) {
  if (writing) written_by_host_.push_back(tensor.storage().getWeakStorageImpl());
  const Memory* memory = ledger_.memory(tensor);
  if (memory == nullptr || memory->regions.empty() || scope.gives(tensor)) return;
  const Leaf* leaf = leaf_of(root_of(memory->regions[0].value));
  if (leaf != nullptr && !memory->written && !leaf->own_copy.valid()) return;
  fail(host_break(BreakCode::host_read, "a host function sees a tensor of the call that it is not given",
                  "pass the tensor to sinter::host as an argument"),
       {}, {});
}

/// What a host function writes, no graph may know: it could be read before or after.
void Recorder::finish_host() {
  for (const auto& storage : written_by_host_) {
    if (!recording_ || !ledger_.knows(storage._unsafe_get_target())) continue;
    fail(host_break(BreakCode::state_mutation, "a host function writes a tensor that the call sees",
                    "write it outside of the host function"),
         {}, {});
  }
}

}  // namespace sinter::frontend
