#include "compiler/passes/pure_batch_norm.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include "compiler/passes/batch_norm_call.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/reduction_shape.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// (input, weight, bias, running_mean, running_var, [training,] momentum, eps)
struct ForwardSchema {
  std::string_view op;
  bool says_training = true;           ///< otherwise it always trains
  std::optional<size_t> reserve = {};  ///< result kept for the backward pass
};
constexpr std::array forward_schemas = {
    ForwardSchema{"aten::native_batch_norm"},
    ForwardSchema{"aten::_native_batch_norm_legit"},
    ForwardSchema{"aten::cudnn_batch_norm", true, 3},
    ForwardSchema{"aten::_batch_norm_with_update", false, 3},
};

struct BackwardSchema {
  std::string_view op;
  size_t gradient, input, weight, mean, inverse, eps, reserve;
  std::optional<size_t> mask = {};  ///< otherwise all gradients are wanted
};
constexpr std::array backward_schemas = {
    BackwardSchema{"aten::cudnn_batch_norm_backward", 1, 0, 2, 5, 6, 7, 8},
    BackwardSchema{"aten::batch_norm_backward", 0, 1, 2, 5, 6, 8, 10, 9},
};

constexpr uint32_t mean_position = 3;
constexpr uint32_t variance_position = 4;

template <class Schema, size_t n>
const Schema* schema_of(const std::array<Schema, n>& schemas, const Node& node) {
  const auto* call = node.as<Call>();
  if (call == nullptr || call->random || call->impure) return nullptr;
  const auto found = std::ranges::find(schemas, std::string_view(call->op), &Schema::op);
  return found == schemas.end() ? nullptr : &*found;
}

class PureBatchNorms {
 public:
  PureBatchNorms(const Graph& old, const PassContext& context)
      : old_(old), context_(context), rewrite_(old), users_(old.value_count()) {
    for (const NodeId id : old_.order()) {
      for (const Arg& arg : old_.node(id).args)
        for_each_value(arg, [&](ValueId value) { users_[value.index].push_back(id); });
    }
  }

  int64_t run() {
    for (const NodeId id : old_.order()) visit(id);
    return changes_;
  }
  [[nodiscard]] Graph finish() { return rewrite_.finish(); }

 private:
  void visit(NodeId id) {
    const Node& node = old_.node(id);
    if (const auto* forward = schema_of(forward_schemas, node); forward != nullptr && is_wanted(node, *forward)) {
      ++changes_;
      if (forward->reserve) dropped_.insert(node.results[*forward->reserve]);
      return make_pure(node, *forward);
    }
    if (const auto* backward = schema_of(backward_schemas, node); backward != nullptr && lost_reserve(node, *backward))
      return differentiate_without_reserve(node, *backward);
    rewrite_.copy(id);
  }

  static std::vector<Arg> arguments(const Node& node, const ForwardSchema& schema) {
    std::vector<Arg> args = node.args;
    if (!schema.says_training && args.size() > 5) args.insert(args.begin() + 5, Arg{true});
    return args;
  }

  [[nodiscard]] bool is_wanted(const Node& node, const ForwardSchema& schema) const {
    if (node.results.size() != (schema.reserve ? 4 : 3)) return false;
    const auto call = batch_norm_call(old_, context_, arguments(node, schema));
    if (!call || !writes_its_statistics(node) || !gives_its_results(node)) return false;
    if (schema.reserve && !is_read_by_backward_alone(node.results[*schema.reserve])) return false;
    const bool split = reduction_split(old_.type(*call->input.value()), call->dims, context_.device).has_value();
    return !split || feeds_pointwise(node.results[0]);
  }

  /// The call writes the statistics it is given, and nothing else.
  [[nodiscard]] static bool writes_its_statistics(const Node& node) {
    std::vector<uint32_t> written = node.as<Call>()->mutates;
    std::ranges::sort(written);
    if (node.args[mean_position].is_none()) return written.empty();
    return written == std::vector<uint32_t>{mean_position, variance_position};
  }

  [[nodiscard]] bool gives_its_results(const Node& node) const {
    return std::ranges::all_of(std::span(node.results).first(3), [&](ValueId result) {
      return !old_.value(result).alias && is_kernel_result(old_, old_.type(result));
    });
  }

  [[nodiscard]] bool is_read_by_backward_alone(ValueId reserve) const {
    if (std::ranges::find(old_.outputs, reserve) != old_.outputs.end()) return false;
    return std::ranges::all_of(users_[reserve.index], [&](NodeId user) {
      const Node& node = old_.node(user);
      const auto* backward = schema_of(backward_schemas, node);
      return backward != nullptr && node.args.size() > backward->reserve &&
             node.args[backward->reserve].value() != nullptr && *node.args[backward->reserve].value() == reserve;
    });
  }

  [[nodiscard]] bool feeds_pointwise(ValueId output) const {
    return std::ranges::any_of(users_[output.index], [&](NodeId user) {
      const auto* call = old_.node(user).as<Call>();
      return call != nullptr && find_aten(call->op).has_value();
    });
  }

  void make_pure(const Node& node, const ForwardSchema& schema) {
    std::vector<Arg> args = rewrite_.map_args(arguments(node, schema));
    const bool keeps_statistics = !args[mean_position].is_none();
    std::vector<Type> types;
    for (const ValueId result : std::span(node.results).first(3)) types.push_back(old_.type(result));
    if (keeps_statistics) {
      for (const uint32_t position : {mean_position, variance_position}) types.push_back(dense(node.args[position]));
    } else {
      args.erase(args.begin() + mean_position, args.begin() + variance_position + 1);
    }
    Call call;
    call.op =
        keeps_statistics ? "aten::_native_batch_norm_legit_functional" : "aten::_native_batch_norm_legit.no_stats";
    const NodeId made = rewrite_.next().add(std::move(call), std::move(args), std::move(types), scope_of(node));
    for (size_t i = 0; i < 3; ++i) rewrite_.set(node.results[i], rewrite_.next().node(made).results[i]);
    if (!keeps_statistics) return;
    for (const uint32_t position : {mean_position, variance_position})
      write(*node.args[position].value(), rewrite_.next().node(made).results[position], node);
  }

  [[nodiscard]] Type dense(const Arg& arg) const {
    const Type& type = old_.type(*arg.value());
    return contiguous(type.dtype, type.sizes, type.device);
  }

  void write(ValueId statistic, ValueId value, const Node& node) {
    const ValueId target = rewrite_.get(statistic);
    Call call;
    call.op = "aten::copy_";
    call.mutates = {0};
    call.functional = "aten::copy";
    const ValueId written = rewrite_.next().add1(std::move(call), {{target}, {value}, {false}},
                                                 rewrite_.next().type(target), scope_of(node));
    const auto& alias = rewrite_.next().value(target).alias;
    rewrite_.next().value(written).alias = alias ? *alias : Alias{target, 0};
  }

  [[nodiscard]] bool lost_reserve(const Node& node, const BackwardSchema& schema) const {
    const ValueId* reserve = node.args.size() > schema.reserve ? node.args[schema.reserve].value() : nullptr;
    return reserve != nullptr && dropped_.contains(*reserve);
  }

  /// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
  /// output_mask)
  void differentiate_without_reserve(const Node& node, const BackwardSchema& schema) {
    const Arg all = {ArgList{{true}, {true}, {true}}};
    const auto given = [&](size_t position) { return node.args[position]; };
    const std::vector<Arg> args = {given(schema.gradient),
                                   given(schema.input),
                                   given(schema.weight),
                                   Arg{},
                                   Arg{},
                                   given(schema.mean),
                                   given(schema.inverse),
                                   {true},
                                   given(schema.eps),
                                   schema.mask ? given(*schema.mask) : all};
    std::vector<Type> types;
    for (const ValueId result : node.results) types.push_back(old_.type(result));
    Call call;
    call.op = "aten::native_batch_norm_backward";
    const NodeId made = rewrite_.next().add(std::move(call), rewrite_.map_args(args), std::move(types), scope_of(node));
    for (size_t i = 0; i < node.results.size(); ++i)
      rewrite_.set(node.results[i], rewrite_.next().node(made).results[i]);
  }

  [[nodiscard]] ScopeId scope_of(const Node& node) { return rewrite_.map_scope(node.scope); }

  const Graph& old_;
  const PassContext& context_;
  Rewriter rewrite_;
  std::vector<std::vector<NodeId>> users_;  ///< by value
  std::unordered_set<ValueId> dropped_;     ///< reserves that nothing makes any more
  int64_t changes_ = 0;
};

}  // namespace

PassResult pure_batch_norm(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda) return {};
  PureBatchNorms pass(graph, context);
  const int64_t changes = pass.run();
  if (changes > 0) {
    Graph next = pass.finish();
    graph = std::move(next);
  }
  return {changes};
}

}  // namespace sinter::passes
