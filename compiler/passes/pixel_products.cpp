#include "compiler/passes/pixel_products.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/passes/convolution.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

bool has_one_pixel(const Type& image) {
  return image.rank() == 4 && image.is_static() && image.sizes[2] == Dim(1) && image.sizes[3] == Dim(1);
}

/// The convolution, if all its images and its weight have one pixel, and its result lies as the product gives it.
std::optional<Convolution> pixel_convolution(const Graph& graph, const Node& node) {
  const auto convolution = convolution_of(graph, node);
  if (!convolution || !is_undilated_image_call(node)) return std::nullopt;
  if (std::get<int64_t>(node.args[convolution_groups].data) != 1) return std::nullopt;
  const Type& result = graph.type(node.results[0]);
  const std::array types{&graph.type(convolution->input), &graph.type(convolution->weight), &result};
  const bool fits = std::ranges::all_of(types, [&](const Type* type) {
    return has_one_pixel(*type) && is_half(type->dtype) && type->dtype == result.dtype && type->numel() > 0;
  });
  const bool in_rows = fits && result.strides[1] == Dim(1) && result.strides[0] == result.sizes[1];
  return in_rows ? convolution : std::nullopt;
}

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

}  // namespace

PassResult pixel_products(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda()) return {};
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto convolution = pixel_convolution(graph, node);
    return convolution ? std::optional(as_product(rewrite, node, *convolution)) : std::nullopt;
  });
}

}  // namespace sinter::passes
