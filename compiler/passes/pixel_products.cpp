#include "compiler/passes/pixel_products.h"

#include <optional>
#include <utility>
#include <vector>

#include "compiler/passes/convolution.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Two dims of a type as those of a matrix.
Type matrix(const Type& image, size_t first, size_t second) {
  Type type = image;
  type.sizes = {image.sizes[first], image.sizes[second]};
  type.strides = {image.strides[first], image.strides[second]};
  return type;
}

ValueId as_product(Rewriter& rewrite, const Node& node, const Convolution& convolution) {
  const Graph& old = rewrite.old();
  const auto look = [&](ValueId value, size_t first, size_t second) {
    return rewrite.add(View{0}, {{rewrite.get(value)}}, matrix(old.type(value), first, second), node.scope);
  };
  const auto call = [&](const char* op, std::vector<Arg> args) {
    const Type type = matrix(old.type(node.results[0]), 0, 1);
    return rewrite.add(Call{op, {}, {}, false, false}, std::move(args), type, node.scope);
  };
  const ValueId pixels = look(convolution.input, 0, 1);
  const ValueId weight = look(convolution.weight, 1, 0);
  const ValueId product =
      convolution.bias
          ? call("aten::addmm", {{rewrite.get(*convolution.bias)}, {pixels}, {weight}, {int64_t{1}}, {int64_t{1}}})
          : call("aten::mm", {{pixels}, {weight}});
  return rewrite.add(View{0}, {{product}}, old.type(node.results[0]), node.scope);
}

/// f32 stays with convolutions on CUDA: they may take TF32 where products may not.
bool gives_to_products(DType dtype, const PassContext& context) {
  return context.fast_on_cuda() ? is_half(dtype) : dtype == DType::f32;
}

}  // namespace

PassResult pixel_products(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda() && !context.fast_on_cpu()) return {};
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto convolution = pixel_convolution(graph, node);
    const bool multiplies = convolution && gives_to_products(graph.type(node.results[0]).dtype, context);
    return multiplies ? std::optional(as_product(rewrite, node, *convolution)) : std::nullopt;
  });
}

}  // namespace sinter::passes
