#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/primitive_builder.h"
#include "compiler/passes/reduction_rules.h"

/// The negative log likelihood of classes and its gradient, on CUDA: the last part of a cross entropy. The gradient
/// asks each point whether it is that of the class, so what makes it from a softmax is in the same kernel, and neither
/// zeros nor places are written. The loss gathers, and ends the work on the device where a class does not exist.
namespace sinter::passes {
namespace {

using namespace ir;

constexpr uint32_t class_dim = 1;

/// nll_loss_forward(self, target, weight, reduction, ignore_index), nll_loss2d_forward likewise; their gradients take
/// the upstream one before, and the sum of the weights behind.
struct ClassLoss {
  Arg scores;   ///< [n, classes, ...]
  Arg classes;  ///< [n, ...]
  Arg weights;  ///< [classes], or None
  bool is_mean = false;
  int64_t ignored = 0;
};

/// The sizes or strides with one for a dim of size 1 where the classes lie.
std::vector<Dim> with_class_dim(std::vector<Dim> dims) {
  dims.insert(dims.begin() + class_dim, Dim(1));
  return dims;
}

std::optional<ClassLoss> class_loss(const Graph& graph, const CallSite& site, size_t first) {
  if (site.args.size() < first + 5 || site.context.device.backend != Backend::cuda || !writes_results(graph, site)) {
    return std::nullopt;
  }
  const ClassLoss call{.scores = site.args[first], .classes = site.args[first + 1], .weights = site.args[first + 2]};
  const auto reduction = integer_in(site.args[first + 3]), ignored = integer_in(site.args[first + 4]);
  const bool reads = reads_tensor(graph, call.scores) && reads_tensor(graph, call.classes) &&
                     reads_optional_tensor(graph, call.weights);
  if (!reads || !ignored || !reduction || *reduction < 1 || *reduction > 2) return std::nullopt;
  const Type& scores = graph.type(*call.scores.value());
  const Type& classes = graph.type(*call.classes.value());
  const bool fits = scores.rank() >= 2 && classes.rank() + 1 == scores.rank() && classes.dtype == DType::i64;
  if (!fits || !is_float(scores.dtype) || scores.numel() == 0) return std::nullopt;
  std::vector<Dim> one_class = scores.sizes;
  one_class[class_dim] = 1;
  if (with_class_dim(classes.sizes) != one_class) return std::nullopt;
  return ClassLoss{call.scores, call.classes, call.weights, *reduction == 1, *ignored};
}

/// What both directions need of a call.
class ClassLossBuilder {
 public:
  ClassLossBuilder(Graph& graph, const CallSite& site, ClassLoss call)
      : call_(std::move(call)),
        dtype_(graph.type(*call_.scores.value()).dtype),
        build_(graph, site, computation_dtype(dtype_)),
        integers_(graph, site, DType::i64),
        classes_(integers_.view(call_.classes, with_class_dim(integers_.type(call_.classes).sizes),
                                with_class_dim(integers_.type(call_.classes).strides))),
        is_ignored_(integers_.test("eq", {classes_, {call_.ignored}})) {}

  /// The class of each element, and another number where it is ignored.
  Arg class_or(int64_t number) { return integers_.op("where", {is_ignored_, {number}, classes_}); }

  /// The number where the class counts, else 0.
  Arg counted(const Arg& number) { return build_.op("where", {is_ignored_, {0.0}, number}); }

  /// The weights as one row of classes.
  Arg weights() {
    std::vector<Dim> sizes(build_.type(call_.scores).rank(), Dim(1));
    std::vector<Dim> strides = sizes;
    sizes[class_dim] = build_.type(call_.weights).sizes[0];
    strides[class_dim] = build_.type(call_.weights).strides[0];
    return build_.view(call_.weights, std::move(sizes), std::move(strides));
  }

  /// True where a point is that of the class.
  Arg is_class() {
    std::vector<Dim> sizes(build_.type(call_.scores).rank() - class_dim, Dim(1));
    sizes[0] = build_.type(call_.scores).sizes[class_dim];
    return integers_.test("eq", {integers_.position(std::move(sizes), 0), class_or(-1)});
  }

  [[nodiscard]] const ClassLoss& call() const { return call_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] bool is_weighed() const { return !call_.weights.is_none(); }
  PrimitiveBuilder& build() { return build_; }

 private:
  const ClassLoss call_;
  const DType dtype_;
  PrimitiveBuilder build_;
  PrimitiveBuilder integers_;
  const Arg classes_;
  const Arg is_ignored_;
};

/// The loss and the sum of the weights.
std::optional<Results> forward(Graph& graph, const CallSite& site) {
  const auto call = class_loss(graph, site, 0);
  const bool known = call && site.results.size() == 2 && site.type().rank() == 0 && site.results[1].type.rank() == 0;
  if (!known) return std::nullopt;
  ClassLossBuilder loss(graph, site, *call);
  PrimitiveBuilder& build = loss.build();
  const Arg place = loss.class_or(0);
  const std::vector<uint32_t> dims = first_dims(build.type(place).rank());
  if (!worth_generating(site.context, build.type(place), dims)) return std::nullopt;

  Arg term = build.op("neg", {build.wide(build.gather(call->scores, place, class_dim))});
  Arg weight{1.0};
  if (loss.is_weighed()) {
    weight = build.wide(build.gather(loss.weights(), place, class_dim));
    term = build.op("mul", {term, weight});
  }
  Arg sum = build.reduce("sum", loss.counted(term), dims);
  const Arg total = build.reduce("sum", loss.counted(weight), dims);
  if (call->is_mean) sum = build.op("ratio", {sum, total});
  return Results{build.result(sum, site.type()), build.result(total, site.results[1].type)};
}

/// Minus the weight of the class, times the upstream gradient, at the class of each element, and 0 elsewhere. ATen
/// takes each step in the dtype of the scores.
std::optional<Results> backward(Graph& graph, const CallSite& site) {
  const auto call = class_loss(graph, site, 1);
  const bool known = call && site.args.size() == 7 && reads_tensor(graph, site.args[0]) &&
                     reads_tensor(graph, site.args[6]) && graph.type(*site.args[0].value()).rank() == 0 &&
                     graph.type(*site.args[6].value()).rank() == 0 &&
                     graph.type(*call->scores.value()).sizes == site.type().sizes;
  if (!known) return std::nullopt;
  ClassLossBuilder loss(graph, site, *call);
  PrimitiveBuilder& build = loss.build();
  Arg gradient = build.wide(site.args[0]);
  if (call->is_mean) {
    gradient = build.rounded(build.op("ratio", {gradient, build.wide(site.args[6])}), loss.dtype());
  }
  gradient = build.op("neg", {gradient});
  if (loss.is_weighed()) {
    gradient = build.rounded(build.op("mul", {build.wide(loss.weights()), gradient}), loss.dtype());
  }
  const Arg element = build.op("where", {loss.is_class(), gradient, {0.0}});
  return only_first(site, build.result(element, site.type()));
}

constexpr std::array class_loss_rows = {
    RuleRow{"aten::nll_loss_forward", forward},
    RuleRow{"aten::nll_loss2d_forward", forward},
    RuleRow{"aten::nll_loss_backward", backward},
    RuleRow{"aten::nll_loss2d_backward", backward},
};

}  // namespace

std::span<const RuleRow> class_loss_rules() { return class_loss_rows; }

}  // namespace sinter::passes
