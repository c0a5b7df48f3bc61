#include "compiler/passes/unify_batch_norms.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/passes/aten.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/training_norm.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr std::string_view cudnn_backward = "aten::cudnn_batch_norm_backward";
constexpr size_t reserve_result = training_norm_results;  ///< of cudnn_batch_norm, behind those that all have
constexpr size_t reserve_argument = 8;                    ///< of cudnn_batch_norm_backward

bool is_backward(const Node& node) {
  const auto* call = node.as<Call>();
  return call != nullptr && call->op == cudnn_backward && node.args.size() == reserve_argument + 1;
}

class Unifier {
 public:
  Unifier(const Graph& old, const PassContext& context) : rewriter_(old), context_(context) { find(); }

  Graph run() {
    for (const NodeId id : rewriter_.old().order()) {
      const Node& node = rewriter_.old().node(id);
      if (forward_.contains(id)) {
        forward(node);
      } else if (is_backward(node) && kept_.contains(*node.args[reserve_argument].value())) {
        backward(node);
      } else {
        rewriter_.copy(id);
      }
    }
    return rewriter_.finish();
  }

  [[nodiscard]] int64_t changes() const { return static_cast<int64_t>(forward_.size()); }

 private:
  void find() {
    const Graph& old = rewriter_.old();
    for (const NodeId id : old.order()) {
      const Node& node = old.node(id);
      if (!is_training_norm(old, node, context_)) continue;
      const bool tracked = !node.args[training_norm_mean].is_none();
      if (node.as<Call>()->mutates.empty() == tracked) continue;  // functional by now
      forward_.insert(id);
      if (node.results.size() > reserve_result) kept_.emplace(node.results[reserve_result], id);
    }
    for (const NodeId id : old.order()) {
      const Node& node = old.node(id);
      for (size_t i = 0; i < node.args.size(); ++i) {
        const bool own = is_backward(node) && i == reserve_argument;
        if (!own) for_each_value(node.args[i], [&](ValueId value) { leave_alone(value); });
      }
    }
    for (const ValueId output : old.outputs) leave_alone(output);
  }

  /// What cuDNN kept is read by others than its backward pass.
  void leave_alone(ValueId value) {
    const auto kept = kept_.find(value);
    if (kept == kept_.end()) return;
    forward_.erase(kept->second);
    kept_.erase(kept);
  }

  void forward(const Node& node) {
    const bool tracked = !node.args[training_norm_mean].is_none();
    std::vector<Arg> args = rewriter_.map_args(node.args);
    std::vector<Type> types;
    for (size_t i = 0; i < training_norm_results; ++i) types.push_back(rewriter_.old().type(node.results[i]));
    Call call;
    call.op = tracked ? functional_training_norm : "aten::native_batch_norm";
    const std::vector<Arg> written = {args[training_norm_mean], args[training_norm_mean + 1]};
    for (const Arg& statistic : written) {
      if (tracked) types.push_back(rewriter_.next().type(*statistic.value()));
    }
    Graph& next = rewriter_.next();
    const ScopeId scope = rewriter_.map_scope(node.scope);
    const NodeId made = next.add(std::move(call), std::move(args), std::move(types), scope);
    for (size_t i = 0; i < training_norm_results; ++i) rewriter_.set(node.results[i], next.node(made).results[i]);
    for (size_t i = 0; tracked && i < written.size(); ++i) {
      write(*written[i].value(), next.node(made).results[training_norm_results + i], scope);
    }
  }

  /// Copies a new statistic into the memory of the old one.
  void write(ValueId target, ValueId value, ScopeId scope) {
    Graph& next = rewriter_.next();
    Call copy;
    copy.op = "aten::copy_";
    copy.functional = "aten::copy";
    copy.mutates = {0};
    const ValueId result = next.add1(std::move(copy), {{target}, {value}, {false}}, Type(next.type(target)), scope);
    const auto& alias = next.value(target).alias;
    next.value(result).alias = alias ? *alias : Alias{target, 0};
  }

  /// (input, grad_output, weight, mean, var, saved mean, saved deviation, eps, reserve) as (grad_output, input, weight,
  /// mean, var, saved mean, saved deviation, train, eps, mask): the running statistics say nothing there.
  void backward(const Node& node) {
    const std::vector<Arg> from = rewriter_.map_args({node.args.begin(), node.args.end() - 1});
    const std::vector<Arg> args = {from[1], from[0], from[2], {},      {},
                                   from[5], from[6], {true},  from[7], {ArgList{{true}, {true}, {true}}}};
    std::vector<Type> types;
    for (const ValueId result : node.results) types.push_back(rewriter_.old().type(result));
    Call call;
    call.op = "aten::native_batch_norm_backward";
    const NodeId made = rewriter_.next().add(std::move(call), args, std::move(types), rewriter_.map_scope(node.scope));
    for (size_t i = 0; i < node.results.size(); ++i) {
      rewriter_.set(node.results[i], rewriter_.next().node(made).results[i]);
    }
  }

  Rewriter rewriter_;
  const PassContext& context_;
  std::unordered_set<NodeId> forward_;        ///< old nodes that get another form
  std::unordered_map<ValueId, NodeId> kept_;  ///< what cuDNN keeps, and the node of `forward_` that makes it
};

}  // namespace

PassResult unify_batch_norms(Graph& graph, const PassContext& context) {
  Unifier unifier(graph, context);
  if (unifier.changes() == 0) return {};
  graph = unifier.run();
  return {unifier.changes()};
}

}  // namespace sinter::passes
