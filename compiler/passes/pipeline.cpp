#include "compiler/passes/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "compiler/ir/print.h"
#include "compiler/passes/advance_gathers.h"
#include "compiler/passes/canonicalize.h"
#include "compiler/passes/choose_layouts.h"
#include "compiler/passes/convolution_epilogues.h"
#include "compiler/passes/cse.h"
#include "compiler/passes/dce.h"
#include "compiler/passes/decompose.h"
#include "compiler/passes/expand_pool_gradients.h"
#include "compiler/passes/expand_upsampling.h"
#include "compiler/passes/expand_windows.h"
#include "compiler/passes/find_attention.h"
#include "compiler/passes/fold_batches.h"
#include "compiler/passes/fold_bias.h"
#include "compiler/passes/functionalize.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/group_rows.h"
#include "compiler/passes/grouped_products.h"
#include "compiler/passes/join_parts.h"
#include "compiler/passes/lift_convolutions.h"
#include "compiler/passes/measured_products.h"
#include "compiler/passes/merge_products.h"
#include "compiler/passes/onednn_convolutions.h"
#include "compiler/passes/onednn_products.h"
#include "compiler/passes/pad_channels.h"
#include "compiler/passes/pad_products.h"
#include "compiler/passes/patch_products.h"
#include "compiler/passes/pixel_products.h"
#include "compiler/passes/product_epilogues.h"
#include "compiler/passes/rematerialize.h"
#include "compiler/passes/split_bias.h"
#include "compiler/passes/split_bias_gradients.h"
#include "compiler/passes/split_reductions.h"
#include "compiler/passes/sum_products.h"
#include "compiler/passes/turn_scans.h"
#include "compiler/passes/unify_batch_norms.h"
#include "compiler/passes/widen.h"
#include "compiler/support/dump.h"
#include "compiler/support/errors.h"

namespace sinter::passes {
namespace {

using ir::Stage;

constexpr std::array rows = {
    PipelineRow{"unify_batch_norms", unify_batch_norms, Stage::captured,
                "before functionalize, which would copy the statistics that a call writes"},
    PipelineRow{"functionalize", functionalize, Stage::functional,
                "every later pass moves nodes, which is legal on pure values only"},
    PipelineRow{"join_parts", join_parts, Stage::functional,
                "after functionalize, which makes writes values, and before decompose, which makes kernels of joins"},
    PipelineRow{"lift_convolutions", lift_convolutions, Stage::functional,
                "before all passes that look at convolutions, which are those of images"},
    PipelineRow{"split_bias_gradients", split_bias_gradients, Stage::functional,
                "before decompose, which makes kernels of the sums"},
    PipelineRow{"convolution_epilogues", convolution_epilogues, Stage::functional,
                "before decompose, while batch norm is one call"},
    PipelineRow{"onednn_convolutions", onednn_convolutions, Stage::functional,
                "before decompose, while batch norm and activations are one call"},
    PipelineRow{
        "pixel_products", pixel_products, Stage::functional,
        "after convolution_epilogues, which gives ReLU to the convolution, and before passes that look at products"},
    PipelineRow{"find_attention", find_attention, Stage::functional,
                "before pad_products, which would pad the products that it replaces"},
    PipelineRow{"fold_batches", fold_batches, Stage::functional,
                "after find_attention, which looks for batches, and before passes that look at products"},
    PipelineRow{"sum_products", sum_products, Stage::functional,
                "after find_attention, which looks for products, and before pad_products, which pads what is left"},
    PipelineRow{"pad_products", pad_products, Stage::functional,
                "before decompose, which makes joins of its pads and the softmax is still one call"},
    PipelineRow{"onednn_products", onednn_products, Stage::functional,
                "before decompose, while an activation is one call"},
    PipelineRow{"product_epilogues", product_epilogues, Stage::functional,
                "after all passes that look at products, and before decompose, while an activation is one call"},
    PipelineRow{"decompose", decompose, Stage::functional, "before simplifying: primitives are what can be simplified"},
    PipelineRow{"split_bias", split_bias, Stage::functional, "before canonicalize, which simplifies what it adds"},
    PipelineRow{"canonicalize", canonicalize, Stage::functional,
                "before cse, which then sees equal things written one way"},
    PipelineRow{"cse", cse, Stage::functional, "before fuse, so that no region computes what another one stores"},
    PipelineRow{"merge_products", merge_products, Stage::functional,
                "after cse, by which equal operands are one value; before dce, which drops what it leaves"},
    PipelineRow{"dce", dce, Stage::functional, "before fuse, which counts the users of every value"},
    PipelineRow{"choose_layouts", choose_layouts, Stage::functional,
                "before fuse, so that the copies it adds become part of kernels"},
    PipelineRow{"patch_products", patch_products, Stage::functional,
                "after choose_layouts, which has images lie as products give them, and before pad_channels"},
    PipelineRow{"grouped_products", grouped_products, Stage::functional,
                "after choose_layouts, which has images lie as products read them, and before pad_channels"},
    PipelineRow{
        "pad_channels", pad_channels, Stage::functional,
        "after choose_layouts, which says in what memory images lie, and before fuse, which takes its joins in"},
    PipelineRow{"expand_windows", expand_windows, Stage::functional,
                "after choose_layouts, which sees images and calls, and before fuse, which sees windows as loops"},
    PipelineRow{"expand_pool_gradients", expand_pool_gradients, Stage::functional,
                "after choose_layouts, beside expand_windows, which takes pools without indices"},
    PipelineRow{"expand_upsampling", expand_upsampling, Stage::functional,
                "after choose_layouts, and before fuse, so that the copy it makes becomes part of kernels"},
    PipelineRow{"turn_scans", turn_scans, Stage::functional,
                "after canonicalize, which would look through its copies, and before fuse, which takes them in"},
    PipelineRow{"advance_gathers", advance_gathers, Stage::functional,
                "after canonicalize and cse, and before split_reductions, which sees what a gather's users join"},
    PipelineRow{"group_rows", group_rows, Stage::functional,
                "before split_reductions, which would split these sums into fewer and larger parts"},
    PipelineRow{"split_reductions", split_reductions, Stage::functional,
                "before fuse, which then joins the first part with what computes its operand"},
    PipelineRow{
        "rematerialize", rematerialize, Stage::functional,
        "where all that is stored is there, and before fuse, which joins what is computed again with its users"},
    PipelineRow{"dce", dce, Stage::functional, "drops what rematerialize has left without users"},
    PipelineRow{"fuse", fuse, Stage::fused, "last on the whole graph: regions hide their primitives from other passes"},
    PipelineRow{"canonicalize", canonicalize, Stage::fused,
                "inside regions: spreading and joining leave casts and constants that go"},
    PipelineRow{"cse", cse, Stage::fused, "merges what fuse computes again for several users of one region"},
    PipelineRow{"widen", widen, Stage::fused,
                "where it is known what is stored and what is one value: who sees a half is settled"},
    PipelineRow{"dce", dce, Stage::fused, "drops what the three before it left, and arguments no body reads"},
    PipelineRow{"fold_bias", fold_bias, Stage::fused,
                "where it is known which biases would be added by a kernel alone"},
    PipelineRow{"dce", dce, Stage::fused, "drops the products that fold_bias replaced"},
    PipelineRow{"measured_products", measured_products, Stage::fused,
                "last: all other passes look at products of ATen"},
};

/// Runs one row; whatever it throws leaves as an InternalError with the graph that went in saved to a file. `input`
/// gives that graph.
template <class Input>
PassResult run_row(const PipelineRow& row, ir::Graph& graph, const PassContext& context, const Input& input) {
  try {
    const PassResult result = row.run(graph, context);
    // A graph that is past the captured stage has nothing for the passes of that stage.
    if (result.changes > 0 || row.after != Stage::captured) ir::require(graph, row.after, row.name);
    return result;
  } catch (const std::exception& error) {
    const auto* internal = dynamic_cast<const InternalError*>(&error);
    const std::string prefix = internal == nullptr ? "" : internal->where() + ": ";
    std::string what = error.what();
    if (what.starts_with(prefix)) what.erase(0, prefix.size());
    const ir::Graph before = input();
    throw InternalError(std::string(row.name), what, save_artifact(before.name, "ir", ir::print(before)));
  }
}

}  // namespace

std::span<const PipelineRow> pipeline() { return rows; }

void run_pipeline(ir::Graph& graph, const PassContext& context, const PassObserver& observer) {
  const ir::Graph given = graph;
  for (const PipelineRow& row : rows) {
    const auto begin = std::chrono::steady_clock::now();
    run_row(row, graph, context, [&] {
      // Passes do the same again: cheaper than a copy before each.
      ir::Graph input = given;
      for (const PipelineRow* earlier = rows.data(); earlier != &row; ++earlier) earlier->run(input, context);
      return input;
    });
    observer(row, graph, begin);
  }
}

PassResult run_pass(std::string_view name, ir::Graph& graph, const PassContext& context) {
  const bool fused = ir::verify(graph, Stage::functional).size() > ir::verify(graph, Stage::fused).size();
  const PipelineRow* found = nullptr;
  for (const PipelineRow& row : rows) {
    const bool fits = found == nullptr || (fused && row.after == Stage::fused);
    if (row.name == name && fits) found = &row;
  }
  if (found == nullptr) throw UserError("unknown pass '" + std::string(name) + "': see sinter opt --list");
  return run_row(*found, graph, context, [copy = graph] { return copy; });
}

}  // namespace sinter::passes
