#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/gradient_mask.h"
#include "compiler/passes/primitive_builder.h"
#include "compiler/passes/reduction_rules.h"
#include "compiler/passes/training_norm.h"

/// Batch norm in training and its gradient.
namespace sinter::passes {
namespace {

using namespace ir;

/// What statistics of an image's channels are made with.
class Channels {
 public:
  Channels(Graph& graph, const CallSite& site, const Type& image)
      : build(graph, site, DType::f32),
        rank_(image.rank()),
        dims_(statistics_dims(image.rank())),
        count_(static_cast<double>(elements_along(image, dims_))) {}

  /// A vector over the channels, in f32, that broadcasts along dim 1 of the image. It has the sizes of what is reduced,
  /// so that kernels of statistics may write over it.
  Arg of(const Arg& vector) {
    std::vector<Dim> sizes(rank_, 1);
    sizes[1] = build.type(vector).sizes[0];
    return build.wide(build.view(vector, sizes, contiguous_strides(sizes)));
  }

  /// The first element of every channel.
  Arg first_of(const Arg& image) {
    std::vector<Dim> sizes(rank_, 1);
    sizes[1] = build.type(image).sizes[1];
    return build.wide(build.view(image, sizes, build.type(image).strides));
  }

  Arg sum(const Arg& elements) { return build.reduce("sum", elements, dims_); }
  Arg average(const Arg& sum) { return build.op("ratio", {sum, {count_}}); }
  [[nodiscard]] double count() const { return count_; }

  PrimitiveBuilder build;

 private:
  size_t rank_;
  std::vector<uint32_t> dims_;
  double count_;
};

/// In one pass over the image: sums of differences from each channel's first element, which lies among the others, and
/// of their squares, so that a mean far from zero does not cancel. (The shifted-data algorithm; Chan, Golub and
/// LeVeque, "Algorithms for computing the sample variance", 1983.)
class TrainingNorm {
 public:
  TrainingNorm(Graph& graph, const CallSite& site, double eps)
      : site_(site), channels_(graph, site, graph.type(*site.args[0].value())) {
    PrimitiveBuilder& build = channels_.build;
    const Arg first = channels_.first_of(site.args[0]);
    const Arg difference = build.op("sub", {build.wide(site.args[0]), first});
    const Arg shift = channels_.average(channels_.sum(difference));
    const Arg squares = channels_.average(channels_.sum(build.op("mul", {difference, difference})));
    const Arg spread = build.op("sub", {squares, build.op("mul", {shift, shift})});
    variance_ = build.op("maximum", {spread, {0.0}});
    mean_ = build.op("add", {shift, first});
    inverse_ = build.op("rsqrt", {build.op("add", {variance_, {eps}})});
  }

  ValueId output() {
    PrimitiveBuilder& build = channels_.build;
    const Arg& weight = site_.args[1];
    const Arg& bias = site_.args[2];
    const Arg centred = build.op("sub", {build.wide(site_.args[0]), mean_});
    const Arg scale = weight.is_none() ? inverse_ : build.op("mul", {inverse_, channels_.of(weight)});
    const Arg result =
        bias.is_none() ? build.op("mul", {centred, scale}) : build.op("fma", {centred, scale, channels_.of(bias)});
    return build.result(result, site_.type());
  }

  ValueId mean(const Type& type) { return channels_.build.result(mean_, type); }
  ValueId inverse(const Type& type) { return channels_.build.result(inverse_, type); }

  /// What the running mean and variance, whose elements are corrected for their number, are from now on.
  ValueId running_mean(double momentum, const Type& type) { return running(training_norm_mean, mean_, momentum, type); }
  ValueId running_variance(double momentum, const Type& type) {
    const double correction = channels_.count() / (channels_.count() - 1);
    return running(training_norm_mean + 1, channels_.build.op("mul", {variance_, {correction}}), momentum, type);
  }

 private:
  /// In the sizes of the statistic, so that a kernel can write it where the old one lies.
  ValueId running(size_t position, const Arg& now, double momentum, const Type& type) {
    PrimitiveBuilder& build = channels_.build;
    const Arg vector = build.reshape(now, type.sizes);
    const Arg kept = build.op("mul", {site_.args[position], {1 - momentum}});
    return build.result(build.op("add", {build.op("mul", {vector, {momentum}}), kept}), type);
  }

  const CallSite& site_;
  Channels channels_;
  Arg variance_;
  Arg mean_;
  Arg inverse_;
};

/// (grad_out, input, weight, running mean, running variance, mean, 1 / deviation, train, eps, mask), as ATen's GPU
/// kernel computes it.
class TrainingNormBackward {
 public:
  TrainingNormBackward(Graph& graph, const CallSite& site)
      : site_(site), channels_(graph, site, graph.type(*site.args[1].value())) {
    PrimitiveBuilder& build = channels_.build;
    upstream_ = build.wide(site.args[0]);
    mean_ = channels_.of(site.args[5]);
    inverse_ = channels_.of(site.args[6]);
    // The other way round it is another value than of_input has, and none of two kernels stores it for the other.
    const Arg opposite = build.op("sub", {mean_, build.wide(site.args[1])});
    upstream_sum_ = channels_.sum(upstream_);
    product_sum_ = build.op("neg", {channels_.sum(build.op("mul", {upstream_, opposite}))});
  }

  /// (g - average(g) - (x - mean) / deviation^2 * average(g * (x - mean))) / deviation * weight
  ValueId of_input(const Type& type) {
    PrimitiveBuilder& build = channels_.build;
    // x - mean, as another value than the forward pass has: no kernel of that stores it for this one.
    const Arg centred = build.op("fma", {mean_, {-1.0}, build.wide(site_.args[1])});
    const Arg slope = build.op("mul", {channels_.average(product_sum_), build.op("mul", {inverse_, inverse_})});
    const Arg left = build.op("sub", {upstream_, build.op("mul", {centred, slope})});
    const Arg& weight = site_.args[2];
    const Arg scale = weight.is_none() ? inverse_ : build.op("mul", {inverse_, channels_.of(weight)});
    return build.result(build.op("mul", {build.op("sub", {left, channels_.average(upstream_sum_)}), scale}), type);
  }

  ValueId of_weight(const Type& type) {
    return channels_.build.result(channels_.build.op("mul", {product_sum_, inverse_}), type);
  }
  ValueId of_bias(const Type& type) { return channels_.build.result(upstream_sum_, type); }

 private:
  const CallSite& site_;
  Channels channels_;
  Arg upstream_;
  Arg mean_;
  Arg inverse_;
  Arg upstream_sum_;
  Arg product_sum_;
};

std::optional<Results> training_norm_backward(Graph& graph, const CallSite& site) {
  if (site.args.size() != 10 || !writes_results(graph, site)) return std::nullopt;
  const auto* train = std::get_if<bool>(&site.args[7].data);
  const auto gradients = gradients_of(site, site.args[9]);
  if (train == nullptr || !*train || !gradients) return std::nullopt;
  for (const size_t position : {0, 1, 5, 6}) {
    if (!reads_tensor(graph, site.args[position])) return std::nullopt;
  }
  const Type& image = graph.type(*site.args[1].value());
  if (!reads_optional_tensor(graph, site.args[2]) || graph.type(*site.args[0].value()).sizes != image.sizes ||
      !generates_training_norm(site.context, image)) {
    return std::nullopt;
  }
  TrainingNormBackward norm(graph, site);
  Results results(site.results.size());
  const auto [input, weight, bias] = *gradients;
  if (is_used(site, input)) results[*input] = norm.of_input(site.results[*input].type);
  if (is_used(site, weight)) results[*weight] = norm.of_weight(site.results[*weight].type);
  if (is_used(site, bias)) results[*bias] = norm.of_bias(site.results[*bias].type);
  return results;
}

constexpr std::array training_norm_rows = {
    RuleRow{functional_training_norm, training_norm},
    RuleRow{"aten::native_batch_norm_backward", training_norm_backward},
};

}  // namespace

std::optional<Results> training_norm(Graph& graph, const CallSite& site) {
  const auto numbers = training_numbers(site.args);
  if (!numbers || !writes_results(graph, site)) return std::nullopt;
  for (const Arg& arg : site.args.first(5)) {
    if (!reads_optional_tensor(graph, arg)) return std::nullopt;
  }
  if (site.args[0].is_none() || !generates_training_norm(site.context, graph.type(*site.args[0].value()))) {
    return std::nullopt;
  }
  TrainingNorm norm(graph, site, numbers->eps);
  Results results(site.results.size());
  const auto used = [&](size_t i) { return i < site.results.size() && site.results[i].used; };
  if (used(0)) results[0] = norm.output();
  if (used(1)) results[1] = norm.mean(site.results[1].type);
  if (used(2)) results[2] = norm.inverse(site.results[2].type);
  if (used(3)) results[3] = norm.running_mean(numbers->momentum, site.results[3].type);
  if (used(4)) results[4] = norm.running_variance(numbers->momentum, site.results[4].type);
  return results;
}

std::span<const RuleRow> training_norm_rules() { return training_norm_rows; }

}  // namespace sinter::passes
