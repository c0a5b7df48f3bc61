#include <algorithm>
#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/batch_norm_call.h"
#include "compiler/passes/moments.h"
#include "compiler/passes/reduction_rules.h"

/// Batch norm by the statistics of its batch, as ATen's GPU kernels compute it but for the variance, which is taken in
/// two passes. Such calls have this one form: pure_batch_norm.h.
namespace sinter::passes {
namespace {

using namespace ir;

class BatchNormTraining {
 public:
  BatchNormTraining(Graph& graph, const CallSite& site, const BatchNormCall& call)
      : build_(graph, site, computation_dtype(site.type().dtype)),
        site_(site),
        call_(call),
        rank_(site.type().rank()),
        found_(moments(build_, build_.wide(call.input), call.dims)),
        inverse_(inverse_deviation(build_, found_.squares, call.count, call.eps)) {}

  Results run() {
    Results results(site_.results.size());
    const auto set = [&](size_t i, const auto& make) {
      if (i < results.size() && site_.results[i].used) results[i] = build_.result(make(), site_.results[i].type);
    };
    set(0, [&] { return normalized(); });
    set(1, [&] { return found_.mean; });
    set(2, [&] { return inverse_; });
    set(3, [&] { return updated(call_.running_mean, found_.mean); });
    set(4, [&] { return updated(call_.running_variance, unbiased()); });
    return results;
  }

 private:
  /// weight * (x - mean) / deviation + bias, the last two rounded once.
  Arg normalized() {
    Arg scaled = found_.difference;
    if (!call_.weight.is_none()) scaled = build_.op("mul", {per_channel(build_, call_.weight, rank_), scaled});
    if (call_.bias.is_none()) return build_.op("mul", {scaled, inverse_});
    return build_.op("fma", {scaled, inverse_, per_channel(build_, call_.bias, rank_)});
  }

  /// A number as the computation dtype has it.
  [[nodiscard]] double computed(double number) const {
    return computation_dtype(site_.type().dtype) == DType::f64 ? number
                                                               : static_cast<double>(static_cast<float>(number));
  }

  /// squares / (n - 1), which ATen computes from the variance.
  Arg unbiased() {
    const auto count = static_cast<double>(call_.count);
    const Arg variance = build_.op("ratio", {found_.squares, {count}});
    return build_.op("mul", {variance, {computed(count / (count - 1))}});
  }

  /// momentum * found + (1 - momentum) * running, the last two rounded once.
  Arg updated(const Arg& running, const Arg& found) {
    const double momentum = computed(call_.momentum);
    const Arg kept = build_.op("mul", {per_channel(build_, running, rank_), {computed(1 - momentum)}});
    return build_.op("fma", {found, {momentum}, kept});
  }

  PrimitiveBuilder build_;
  const CallSite& site_;
  const BatchNormCall& call_;
  size_t rank_;
  Moments found_;
  Arg inverse_;
};

std::optional<Results> normalize_batch(Graph& graph, const CallSite& site, std::span<const Arg> args, size_t results) {
  const auto call = batch_norm_call(graph, site.context, args);
  if (!call || site.results.size() != results || !writes_results(graph, site)) return std::nullopt;
  const Type& input = graph.type(*call->input.value());
  const bool fits = site.type().sizes == input.sizes && site.type().dtype == input.dtype &&
                    std::ranges::all_of(site.results.subspan(1), [&](const ObservedResult& result) {
                      return result.type.rank() == 1 && result.type.sizes[0] == input.sizes[1];
                    });
  if (!fits) return std::nullopt;
  return BatchNormTraining(graph, site, *call).run();
}

/// (input, weight, bias, running_mean, running_var, training, momentum, eps): the output, mean and 1 / deviation of the
/// batch, and what the running statistics become.
std::optional<Results> batch_norm_with_statistics(Graph& graph, const CallSite& site) {
  if (site.args.size() != 8 || site.args[3].is_none()) return std::nullopt;
  return normalize_batch(graph, site, site.args, 5);
}

/// (input, weight, bias, training, momentum, eps): the output, mean and 1 / deviation of the batch.
std::optional<Results> batch_norm_without_statistics(Graph& graph, const CallSite& site) {
  if (site.args.size() != 6) return std::nullopt;
  std::vector<Arg> args(site.args.begin(), site.args.end());
  args.insert(args.begin() + 3, 2, Arg{});
  return normalize_batch(graph, site, args, 3);
}

constexpr std::array batch_norm_training_rows = {
    RuleRow{"aten::_native_batch_norm_legit_functional", batch_norm_with_statistics},
    RuleRow{"aten::_native_batch_norm_legit.no_stats", batch_norm_without_statistics},
};

}  // namespace

std::span<const RuleRow> batch_norm_training_rules() { return batch_norm_training_rows; }

}  // namespace sinter::passes
