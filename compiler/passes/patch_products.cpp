#include "compiler/passes/patch_products.h"

#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/view_source.h"
#include "compiler/passes/aligned_halves.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/zero_padding.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// A convolution over patches of [height, width] pixels.
struct Patches {
  Convolution convolution;
  int64_t height = 1;
  int64_t width = 1;
};

std::optional<Patches> patches_of(const Graph& graph, const Node& node) {
  const auto found = image_convolution(graph, node);
  if (!found || found->groups != 1) return std::nullopt;
  const std::vector<int64_t>& taps = found->filters;
  const bool tiles =
      found->stride[0] == taps[2] && found->stride[1] == taps[3] && found->padding[0] == 0 && found->padding[1] == 0;
  const bool pays = tiles && taps[1] < aligned_halves && taps[2] * taps[3] > 1 && missing_halves(taps[0]) == 0;
  return pays ? std::optional(Patches{found->convolution, taps[2], taps[3]}) : std::nullopt;
}

class PatchProduct {
 public:
  PatchProduct(Rewriter& rewrite, const Node& node, const Patches& patches)
      : rewrite_(rewrite), node_(node), patches_(patches) {}

  ValueId run() {
    const ValueId rows = copied_rows();
    const ValueId filters = filters_in_columns();
    const Type& result = rewrite_.old().type(node_.results[0]);
    const Type product = contiguous(result.dtype, {type(rows).sizes[0], type(filters).sizes[1]}, result.device);
    const auto& bias = patches_.convolution.bias;
    const ValueId value =
        bias ? call("aten::addmm", {{rewrite_.get(*bias)}, {rows}, {filters}, {int64_t{1}}, {int64_t{1}}}, product)
             : call("aten::mm", {{rows}, {filters}}, product);
    return view(value, result);
  }

 private:
  [[nodiscard]] Type type(ValueId value) const { return rewrite_.next().type(value); }

  ValueId view(ValueId value, Type seen) { return rewrite_.add(View{0}, {{value}}, std::move(seen), node_.scope); }
  ValueId copy(ValueId value, Type into) {
    return rewrite_.add(Primitive{op_named("cast")}, {{value}}, std::move(into), node_.scope);
  }
  ValueId call(const char* op, std::vector<Arg> args, const Type& result) {
    return rewrite_.add(Call{op, {}, {}, false, false}, std::move(args), result, node_.scope);
  }

  /// [samples, channels, height, width] -> [samples * patches, channels * pixels of a patch]
  ValueId copied_rows() {
    const ValueId image = before_copy(rewrite_.next(), rewrite_.get(patches_.convolution.input));
    const Type from = type(image);
    const Type& result = rewrite_.old().type(node_.results[0]);
    const int64_t height = patches_.height, width = patches_.width;
    Type seen = from;
    seen.sizes = {from.sizes[0], result.sizes[2], result.sizes[3], from.sizes[1], height, width};
    seen.strides = {from.strides[0], from.strides[2] * height, from.strides[3] * width,
                    from.strides[1], from.strides[2],          from.strides[3]};
    const Type rows = contiguous(from.dtype, seen.sizes, from.device);
    const ValueId copied = copy(view(image, seen), rows);
    const int64_t row = from.sizes[1].constant() * height * width;
    return in_aligned_rows(view(copied, contiguous(from.dtype, {rows.numel() / row, row}, from.device)));
  }

  /// [filters, channels, height, width] -> [channels * height * width, filters], by view where the weight is row-major.
  ValueId filters_in_columns() {
    ValueId weight = before_copy(rewrite_.next(), rewrite_.get(patches_.convolution.weight));
    const Type from = type(weight);
    if (!from.is_contiguous()) weight = copy(weight, contiguous(from.dtype, from.sizes, from.device));
    const int64_t row = from.numel() / from.sizes[0].constant();
    const ValueId rows = in_aligned_rows(view(weight, contiguous(from.dtype, {from.sizes[0], row}, from.device)));
    Type turned = type(rows);
    std::swap(turned.sizes[0], turned.sizes[1]);
    std::swap(turned.strides[0], turned.strides[1]);
    return view(rows, std::move(turned));
  }

  /// A matrix with zeros at the end of rows that are no multiple of what products read at once.
  ValueId in_aligned_rows(ValueId matrix) {
    const int64_t missing = missing_halves(type(matrix).sizes[1].constant());
    return missing == 0 ? matrix : among_zeros(rewrite_, matrix, 1, 0, missing, node_.scope);
  }

  Rewriter& rewrite_;
  const Node& node_;
  const Patches& patches_;
};

}  // namespace

PassResult patch_products(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda() || context.generic_sizes) return {};
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto patches = patches_of(graph, node);
    return patches ? std::optional(PatchProduct(rewrite, node, *patches).run()) : std::nullopt;
  });
}

}  // namespace sinter::passes
