#include "compiler/passes/fold_bias.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/view_source.h"
#include "compiler/passes/product.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Steps over views that show a row-major value in other sizes.
ValueId reshaped_from(const Graph& graph, ValueId value) {
  while (is_reshape(graph, value)) value = *graph.producer(value).args[0].value();
  return value;
}

const Node* primitive_named(const Graph& graph, ValueId value, std::string_view name) {
  const Node& node = graph.producer(value);
  const auto* primitive = node.as<Primitive>();
  return primitive != nullptr && row(primitive->op).name == name ? &node : nullptr;
}

/// Steps over a conversion between a half and f32, which loses nothing here: the sum is rounded once at the end.
ValueId unconverted(const Graph& body, ValueId value) {
  const Node* cast = primitive_named(body, value, "cast");
  if (cast == nullptr || cast->args[0].value() == nullptr) return value;
  const ValueId from = *cast->args[0].value();
  const bool same_sizes = body.type(from).sizes == body.type(value).sizes;
  const bool between = (is_half(body.type(from).dtype) && body.type(value).dtype == DType::f32) ||
                       (body.type(from).dtype == DType::f32 && is_half(body.type(value).dtype));
  return same_sizes && between ? from : value;
}

/// The input of the body that an operand is, converted and reshaped at most.
std::optional<uint32_t> input_behind(const Graph& body, ValueId value) {
  const ValueId source = reshaped_from(body, unconverted(body, reshaped_from(body, value)));
  const auto* input = body.producer(source).as<Input>();
  return input == nullptr ? std::nullopt : std::optional(input->index);
}

/// Arguments of a region that adds a vector along the last dim of another and does nothing else.
struct BiasRegion {
  uint32_t product = 0;
  uint32_t bias = 0;
};

std::optional<BiasRegion> bias_region(const Graph& graph, const Node& node) {
  const auto* fused = node.as<Fused>();
  if (fused == nullptr || node.results.size() != 1 || node.args.size() != 2) return std::nullopt;
  const Graph& body = *fused->body;
  const ValueId output = body.outputs.front();
  const Node* sum = primitive_named(body, reshaped_from(body, unconverted(body, reshaped_from(body, output))), "add");
  if (sum == nullptr || sum->args.size() != 2 || !body.type(output).is_contiguous()) return std::nullopt;
  const Type& added = body.type(sum->results[0]);
  if (!added.is_contiguous() || added.rank() == 0) return std::nullopt;
  for (const uint32_t first : {0U, 1U}) {
    const ValueId* product = sum->args[first].value();
    const ValueId* bias = sum->args[1 - first].value();
    if (product == nullptr || bias == nullptr || body.type(*product).sizes != added.sizes) continue;
    const auto from = input_behind(body, *product);
    const auto vector = input_behind(body, *bias);
    if (!from || !vector || body.type(*bias).rank() != 1) continue;
    const Type& type = graph.type(*node.args[*vector].value());
    const bool fits = type.rank() == 1 && type.is_contiguous() && type.sizes[0] == added.sizes.back();
    if (fits) return BiasRegion{*from, *vector};
  }
  return std::nullopt;
}

/// What a region of its own converts to a vector, if it does no more: state, once for all calls.
ValueId unconverted_vector(const Graph& graph, ValueId vector) {
  const Node& node = graph.producer(vector);
  const auto* fused = node.as<Fused>();
  if (fused == nullptr) return vector;
  const auto result = static_cast<size_t>(std::ranges::find(node.results, vector) - node.results.begin());
  const auto input = input_behind(*fused->body, fused->body->outputs[result]);
  if (!input) return vector;
  const ValueId source = *node.args[*input].value();
  return graph.type(source).sizes == graph.type(vector).sizes && graph.type(source).is_contiguous() ? source : vector;
}

class Folder {
 public:
  explicit Folder(const Graph& old) : old_(old), rewrite_(old), uses_(use_counts(old)) {}

  Graph run() {
    for (const NodeId id : old_.order()) {
      if (!fold(old_.node(id))) rewrite_.copy(id);
    }
    return rewrite_.finish();
  }

  [[nodiscard]] int64_t changes() const { return changes_; }

 private:
  /// The product that the region alone reads, if it is one.
  [[nodiscard]] const Node* product_behind(ValueId value) const {
    const ValueId base = reshaped_from(old_, value);
    for (ValueId seen = value;; seen = *old_.producer(seen).args[0].value()) {
      if (uses_[seen.index] != 1) return nullptr;
      if (seen == base) break;
    }
    const Node& node = old_.producer(base);
    const auto product = product_of(node);
    return product && !product->bias ? &node : nullptr;
  }

  bool fold(const Node& node) {
    const auto region = bias_region(old_, node);
    if (!region) return false;
    const ValueId bias = unconverted_vector(old_, *node.args[region->bias].value());
    const Node* product = product_behind(*node.args[region->product].value());
    const Type& result = old_.type(node.results[0]);
    if (product == nullptr || old_.type(bias).device != result.device) return false;
    const Type& type = old_.type(product->results[0]);
    const bool fits = is_half(type.dtype) && type.dtype == result.dtype && old_.type(bias).dtype == result.dtype &&
                      type.is_contiguous() && type.sizes[1] == old_.type(bias).sizes[0] &&
                      type.numel() == result.numel();
    if (!fits) return false;
    std::vector<Arg> args{{rewrite_.get(bias)}};
    for (const Arg& operand : rewrite_.map_args(product->args)) args.push_back(operand);
    args.insert(args.end(), 2, {int64_t{1}});
    Call call;
    call.op = "aten::addmm";
    const ValueId sum = rewrite_.add(std::move(call), std::move(args), type, product->scope);
    rewrite_.set(node.results[0], rewrite_.add(View{0}, {{sum}}, result, node.scope));
    ++changes_;
    return true;
  }

  const Graph& old_;
  Rewriter rewrite_;
  std::vector<uint32_t> uses_;
  int64_t changes_ = 0;
};

}  // namespace

PassResult fold_bias(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda()) return {};
  Folder folder(graph);
  Graph next = folder.run();
  if (folder.changes() > 0) graph = std::move(next);
  return {folder.changes()};
}

}  // namespace sinter::passes
