#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "frontend/convert.h"
#include "frontend/holders.h"
#include "frontend/recorder.h"
#include "frontend/tensor_memory.h"
#include "frontend/trace/captured_graph.h"

namespace sinter::frontend {
namespace {

/// True when `held` says so for longer than another thread that works with a tensor holds it: autograd's let go of
/// theirs a moment after the backward pass has returned.
template <class Held>
bool for_long(const Held& held) {
  constexpr int kLooks = 16;
  for (int look = 0; look < kLooks; ++look) {
    if (!held()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool is_among(std::span<const at::Tensor> tensors, const c10::TensorImpl* wanted) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl() == wanted; });
}

}  // namespace

Trace Recorder::finish(std::span<const at::Tensor> results) {
  const std::lock_guard lock(mutex_);
  const std::vector<at::Tensor> outputs = with_assigned_gradients(results);
  finish_outputs(outputs);
  forget_unused_gradients();
  finish_inputs();
  finish_leaves(outputs);
  refuse_foreign_outputs();
  finish_writes();
  finish_host();
  finish_copies();
  finish_histories(outputs);
  finish_kept(outputs);
  finish_kept_inputs(outputs);
  finish_kept_gradients(results, outputs);
  finish_identities(outputs);
  finish_gradients();
  recording_ = false;
  finish_scopes();
  trace_.graph.device = device_of_most_values(trace_.graph);
  order_leaves_first();
  return std::move(trace_);
}

void Recorder::finish_outputs(std::span<const at::Tensor> outputs) {
  for (size_t i = 0; i < outputs.size() && recording_; ++i) {
    const at::Tensor& output = outputs[i];
    const auto kind = output.defined() ? unsupported_kind(output) : std::optional<std::string>("an undefined tensor");
    if (kind) {
      return fail({BreakCode::unsupported_input,
                   {},
                   {},
                   fmt::format("result {} is {}", i, *kind),
                   "return dense tensors on the CPU or a CUDA device"},
                  {}, {});
    }
    trace_.graph.outputs.push_back(resolve(output, false));
    if (!ledger_.memory(output)->left_device) continue;
    fail({BreakCode::host_read,
          {},
          {},
          fmt::format("result {} was computed on a CUDA device and lies on the CPU", i),
          "return it on its device"},
         {}, {});
  }
}

/// Once it is known which closed-over tensors are state.
void Recorder::refuse_foreign_outputs() {
  for (size_t i = 0; i < trace_.graph.outputs.size() && recording_; ++i) {
    const ir::ValueId value = trace_.graph.outputs[i];
    const ir::ValueId root = root_of(value);
    if (!outlives_call(root) || trace_.graph.type(root).dtype == trace_.graph.type(value).dtype) continue;
    fail({BreakCode::unsupported_op,
          {},
          {},
          fmt::format("result {} is {} seen through another dtype", i, description(root)),
          "return a clone of it, or look at it that way outside the compiled callable"},
         {}, {});
  }
}

void Recorder::finish_identities(std::span<const at::Tensor> outputs) {
  for (const at::Tensor& output : outputs) {
    ir::ValueId same;
    for (uint32_t i = 0; i < inputs_.size() && !same.valid(); ++i) {
      if (inputs_[i].tensor._unsafe_get_target() == output.unsafeGetTensorImpl())
        same = {i};  // inputs were added first
    }
    for (const Leaf& leaf : leaves_) {
      const bool is_state = !leaf.is_content && outlives_call(leaf.value);
      if (is_state && leaf.tensor._unsafe_get_target() == output.unsafeGetTensorImpl()) same = leaf.value;
    }
    trace_.returned_as_is.push_back(same);
    const auto twin = std::ranges::find_if(outputs, [&](const at::Tensor& other) { return other.is_same(output); });
    trace_.first_twin.push_back(static_cast<uint32_t>(twin - outputs.begin()));
  }
}

void Recorder::finish_inputs() {
  for (size_t i = 0; i < inputs_.size() && recording_; ++i) {
    const auto tensor = inputs_[i].tensor.lock();
    if (tensor && Layout::of(at::Tensor(tensor)) == inputs_[i].layout) continue;
    fail({BreakCode::input_mutation,
          {},
          {},
          fmt::format("input {} changed its storage or sizes during the call", i),
          "make a new tensor instead"},
         {}, {});
  }
}

void Recorder::finish_leaves(std::span<const at::Tensor> outputs) {
  for (Leaf& leaf : leaves_) {
    if (recording_) finish_leaf(leaf, outputs);
  }
  const bool held = std::any_of(wrapped_views_.begin(), wrapped_views_.end(), [&](const auto& view) {
    return !view.expired() && !is_among(outputs, view._unsafe_get_target());
  });
  if (!held || !recording_) return;
  fail({BreakCode::unsupported_op,
        {},
        {},
        "a closed-over tensor sees an input or state through another dtype",
        "make the view inside the callable"},
       {}, {});
}

/// A tensor made by the program that somebody still holds once it has returned: a replay would not put a new one there.
void Recorder::finish_kept(std::span<const at::Tensor> outputs) {
  if (!recording_) return;
  for (const Memory& memory : ledger_.memories()) {
    if (memory.regions.empty()) continue;
    const auto* call = trace_.graph.producer(root_of(memory.regions[0].value)).as<ir::Call>();
    if (!call) continue;
    const bool kept = for_long([&] {
      const size_t references = memory.storage.use_count();
      const auto storage = memory.storage.lock();
      return storage && !only_outputs_hold(*storage, references, outputs);
    });
    if (!kept) continue;
    return fail({BreakCode::state_mutation,
                 call->op,
                 {},
                 "keeps a tensor that it made (in a captured variable or a member)",
                 "return it, and keep it outside the compiled callable"},
                {}, {});
  }
}

/// An argument, or a view of one, that somebody holds who did not when the call began: a replay would leave there what
/// it finds.
void Recorder::finish_kept_inputs(std::span<const at::Tensor> outputs) {
  // The graph behind a result with a history holds tensors in ways that cannot be counted.
  if (!recording_ || std::ranges::any_of(outputs, has_history)) return;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const at::Tensor tensor = lock(inputs_[i].tensor);
    const auto& input = inputs_[i];
    const auto held = [&] { return is_held_by_more(tensor, input.holders, input.storage_holders, outputs); };
    if (!tensor.defined() || !for_long(held)) continue;
    return fail({BreakCode::state_mutation,
                 {},
                 {},
                 fmt::format("keeps input {} or a view of it (in a captured variable or a member)", i),
                 "keep it outside the compiled callable, or keep a clone that the callable returns"},
                {}, {});
  }
}

void Recorder::finish_leaf(Leaf& leaf, std::span<const at::Tensor> outputs) {
  if (leaf.is_content) return finish_content(leaf);
  if (finish_found_gradient(leaf)) return;
  const auto tensor = leaf.tensor.lock();
  if (leaf.base && (!tensor || is_among(outputs, tensor.get()))) return finish_look(leaf);
  if (tensor) return finish_state(leaf, at::Tensor(tensor));
  const size_t references = leaf.storage.use_count();
  if (const auto storage = leaf.storage.lock(); storage && !only_outputs_hold(*storage, references, outputs)) {
    return fail({BreakCode::unsupported_op,
                 {},
                 {},
                 "reads a closed-over tensor through a temporary one",
                 "use the tensor itself, or name it through the option `modules`"},
                {}, {});
  }
  if (leaf.content.defined()) return finish_content(leaf);
  fail({BreakCode::unsupported_op,
        {},
        {},
        "reads a tensor that no recorded operator made and that is gone when the call ends (from_blob, another "
        "thread's, or a captured one that the call replaces)",
        "pass it as an input"},
       {}, {});
}

void Recorder::finish_state(Leaf& leaf, const at::Tensor& tensor) {
  if (Layout::of(tensor) != leaf.layout) {
    return fail({BreakCode::state_mutation,
                 {},
                 {},
                 description(leaf.value) + " changed its storage or sizes during the call",
                 "replace state outside the compiled callable"},
                {}, {});
  }
  Memory& memory = *ledger_.memory(tensor);
  memory.opaque = memory.opaque || leaf.base.has_value();
  if (leaf.own_copy.valid()) {  // taken for content so far: what was written is the state itself
    if (memory.refreshed) {
      return fail({BreakCode::state_mutation,
                   {},
                   {},
                   description(leaf.value) + " was written by operators and by the program itself",
                   "write it through operators only"},
                  {}, {});
    }
    memory.written = true;
    make_view(leaf.own_copy, {leaf.value, 0}, ir::Call{"aten::alias", {}, {}, false, false}, {{leaf.value}});
  }
  const auto index = static_cast<uint32_t>(trace_.states.size());
  std::string name = leaf.name.empty() ? fmt::format("closure.{}", index) : leaf.name;
  trace_.graph.value(leaf.value).hint = name;
  trace_.graph.node(leaf.node).payload = ir::State{index, name};
  trace_.states.push_back({std::move(name), leaf.tensor, leaf.read_by_host, !leaf.name.empty()});
}

void Recorder::finish_content(Leaf& leaf) {
  trace_.graph.node(leaf.node).payload = ir::Constant{static_cast<uint32_t>(trace_.contents.size())};
  trace_.contents.push_back({std::move(leaf.content)});
}

/// A temporary tensor over an input or state is a view of it.
void Recorder::finish_look(const Leaf& leaf) {
  make_view(leaf.value, *leaf.base, ir::Call{"aten::as_strided", {}, {}, false, false},
            as_strided_args(leaf.base->base, leaf.layout.sizes, leaf.layout.strides, leaf.layout.offset));
  trace_.graph.value(leaf.value).hint = "as_strided";
}

/// Turns the node of a value, and all that lies in its memory, into a view of another one.
void Recorder::make_view(ir::ValueId value, ir::Alias alias, ir::Call call, std::vector<ir::Arg> args) {
  ir::Graph& graph = trace_.graph;
  ir::Node& node = graph.node(graph.value(value).producer);
  node.payload = std::move(call);
  node.args = std::move(args);
  graph.value(value).alias = alias;
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    auto& other = graph.value({i}).alias;
    if (other && other->base == value) other = ir::Alias{alias.base, alias.offset + other->offset};
  }
}

/// A write that inputs or state would see which the graph knows as tensors of their own.
void Recorder::finish_writes() {
  if (!recording_ || !ledger_.has_lost_writes()) return;
  fail({BreakCode::unsupported_op,
        {},
        {},
        "writes an input or state whose memory another input or state shares",
        "write to a clone of it"},
       {}, {});
}

void Recorder::finish_scopes() {
  std::vector<const Frames*> stacks;
  for (const auto& [node, placed] : places_) stacks.push_back(&placed.frames);
  scopes_.resolve(stacks);
  for (auto& [node, placed] : places_) {
    ir::Scope scope{placed.module, placed.line.empty() ? scopes_.place(placed.frames) : placed.line};
    if (scope == ir::Scope{}) continue;
    trace_.graph.node({node}).scope = trace_.graph.scope(std::move(scope));
  }
}

/// Inputs, then state, then contents, then calls: what a reader wants to see first.
void Recorder::order_leaves_first() {
  const auto rank = [&](ir::NodeId id) {
    const ir::Node& node = trace_.graph.node(id);
    return node.as<ir::Input>() ? 0 : node.as<ir::State>() ? 1 : node.as<ir::Constant>() ? 2 : 3;
  };
  std::vector<ir::NodeId> order = trace_.graph.order();
  std::stable_sort(order.begin(), order.end(), [&](ir::NodeId a, ir::NodeId b) { return rank(a) < rank(b); });
  trace_.graph.set_order(std::move(order));
}

}  // namespace sinter::frontend
