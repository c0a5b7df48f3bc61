#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/grad_layout_contract.h>

#include <algorithm>

#include "frontend/replay/autograds_part.h"
#include "frontend/replay/dispatch_hook.h"
#include "frontend/replay/session.h"
#include "frontend/torch/tensor_memory.h"
#include "frontend/trace/call_words.h"

/// How a session answers backward passes. The nodes that autograd's engine would run follow from the operators that
/// made them, and what these call follows from the nodes: where all of those are steps of the segment that were
/// compared, and the graph of nodes is the one that was run once, the calls of the pass are the known ones.
namespace sinter::frontend {
namespace {

/// Visits what the steps of a pass take; `gradient` is the one that a leaf has before it.
template <class Visitor, class GradientOf>
bool visit_pass(const KnownBackward& pass, const BackwardCall& call, const BackwardGraph& graph,
                const GradientOf& gradient, Visitor& visitor) {
  for (const at::Tensor& root : call.gradients) {
    if (!visit_tensor(root, visitor)) return false;
  }
  for (size_t i = 0; i < graph.leaves().size(); ++i) {
    if (!visitor.tensor(graph.leaves()[i]->variable)) return false;
    const at::Tensor& before = gradient(i);
    if (!visitor.word(before.defined() ? 1 : 0)) return false;
    if (pass.leaves[i].how != KnownBackward::Leaf::How::adds) continue;
    if (before.is_inference() || !visitor.tensor(before)) return false;  // autograd refuses to write to the first
  }
  return true;
}

/// True where what a pass adds to a gradient is all that its version tells, and adding says nothing to the user:
/// LibTorch warns of gradients that are laid out otherwise than their parameters.
bool counts_writes_alone(const at::Tensor& gradient, const at::Tensor& parameter, std::span<const HeldGradient> all) {
  if (gradient.is_inference() || !torch::autograd::utils::obeys_layout_contract(gradient, parameter)) return false;
  const auto* storage = storage_of(*gradient.unsafeGetTensorImpl());
  return std::ranges::count_if(all, [&](const HeldGradient& held) {
           return held.tensor.defined() && storage_of(*held.tensor.unsafeGetTensorImpl()) == storage;
         }) == 1;
}

}  // namespace

void Session::note_other(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  if (!off_) nodes_.note_other(op, arguments, at_ == nullptr ? 0 : at_->depth, table_);
}

void Session::backward(const BackwardCall& call, const std::function<void()>& run) {
  std::unique_lock lock(mutex_);
  const bool may_know = !off_ && !log_ && !recording_ && at_ != nullptr && nodes_.tells();
  const auto graph = may_know ? BackwardGraph::of(call, nodes_.origin()) : std::nullopt;
  if (graph && answer_backward(call, *graph)) {
    lock.unlock();
    if (!call.keep_graph) graph->release();
    return;
  }
  if (!off_ && changes_streams(call.roots)) run_rest_at_once("a backward pass that goes to another stream");
  const Since before = now();
  const auto gradients = graph ? graph->gradients() : std::vector<HeldGradient>();
  nodes_.begin_pass();
  lock.unlock();
  run();
  lock.lock();
  if (!graph || !all_was_answered(before)) return;
  const KnownBackward* pass = note_backward(*before.begin, call, *graph, gradients);
  if (pass != nullptr) nodes_.note_pass(*pass);
}

bool Session::answer_backward(const BackwardCall& call, const BackwardGraph& graph) {
  for (const auto* pass = at_->backward.load(std::memory_order_acquire); pass != nullptr; pass = pass->next) {
    if (pass->graph == graph.words() && answer_by(*pass, call, graph)) return true;
  }
  return false;
}

bool Session::answer_by(const KnownBackward& pass, const BackwardCall& call, const BackwardGraph& graph) {
  if (pass.history != nodes_.history() || pass.modes != Modes::current()) return false;
  if (!surroundings_->are_current(pass.settings)) return false;
  const auto gradient = [&](size_t i) -> const at::Tensor& { return graph.leaves()[i]->variable.grad(); };
  KnownKeyReader reader(pass.key, table_);
  table_.begin_call();
  if (!visit_pass(pass, call, graph, gradient, reader) || !reader.at_end() || !take(pass.steps, reader, table_)) {
    table_.forget_added();
    return false;
  }
  FreshStorages fresh = stand_ins_for(pass.given);
  for (size_t i = 0; i < pass.leaves.size(); ++i) {
    const KnownBackward::Leaf& leaf = pass.leaves[i];
    if (leaf.how == KnownBackward::Leaf::How::keeps) continue;
    at::Tensor set = gradient(i);
    if (leaf.how == KnownBackward::Leaf::How::sets) {
      set = tensor_of({.how = Returned::How::value, .value = leaf.gradient}, {}, fresh);
    }
    count_writes(set, leaf.writes);
    if (leaf.how == KnownBackward::Leaf::How::sets) set_gradient(*graph.leaves()[i], std::move(set));
  }
  go_along(pass.steps, pass.settings);
  nodes_.note_pass(pass);
  ++account_.passes;
  return true;
}

/// Null where the steps of a pass that was run do not follow from what is compared, or it left more than gradients.
const KnownBackward* Session::note_backward(PathNode& begin, const BackwardCall& call, const BackwardGraph& graph,
                                            std::span<const HeldGradient> before) {
  auto steps = plain_steps_between(begin, *at_, table_);
  if (!steps || steps->empty() || !graph.is_librarys_own()) return nullptr;
  KnownBackward pass{.graph = graph.words(), .history = nodes_.history(), .modes = Modes::current()};
  pass.steps = std::move(*steps);
  for (const PathNode* node : pass.steps) pass.settings |= node->step.settings;
  if (!note_gradients(begin, graph, before, pass)) return nullptr;
  KnownKeyWriter writer(table_, pass.key);
  const auto gradient = [&](size_t i) -> const at::Tensor& { return before[i].tensor; };
  if (!visit_pass(pass, call, graph, gradient, writer)) return nullptr;
  return tree_->add(begin, std::move(pass));
}

bool Session::note_gradients(const PathNode& begin, const BackwardGraph& graph, std::span<const HeldGradient> before,
                             KnownBackward& pass) {
  using How = KnownBackward::Leaf::How;
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& [old, version] = before[i];
    const at::Tensor& now = graph.leaves()[i]->variable.grad();
    KnownBackward::Leaf leaf;
    if (now.is_same(old)) {
      if (now.defined() && !counts_writes_alone(now, graph.leaves()[i]->variable, before)) return false;
      leaf.writes = static_cast<uint32_t>(version_of(now) - version);
      leaf.how = leaf.writes > 0 ? How::adds : How::keeps;
    } else {
      if (old.defined() || now.is_view() || now.requires_grad() || !is_dense(now)) return false;
      const TraceValueId value = table_.find(now);
      if (!value.valid()) return false;
      const TraceMemoryId memory = table_.value(value).memory;
      if (!table_.known(memory).fresh || memory.index < begin.memories) return false;
      leaf = {.how = How::sets, .gradient = value, .writes = static_cast<uint32_t>(version_of(now))};
      if (std::ranges::find(pass.given, memory) == pass.given.end()) pass.given.push_back(memory);
    }
    pass.leaves.push_back(leaf);
  }
  for (uint32_t i = begin.memories; i < at_->memories; ++i) {
    const bool left = table_.known({i}).fresh && !table_.memories()[i].storage.expired();
    if (left != (std::ranges::find(pass.given, TraceMemoryId{i}) != pass.given.end())) return false;
  }
  return true;
}

}  // namespace sinter::frontend
