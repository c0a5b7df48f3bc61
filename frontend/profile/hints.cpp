#include "frontend/profile/hints.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sinter::frontend {
namespace {

/// A row holds for operators of this name, without overload, called by a node of autograd whose name has that part; an
/// empty name is that of any operator, an empty node none.
struct WaitCause {
  std::string_view op;
  std::string_view autograd;
  std::string_view hint;
};

// The first row that fits counts: what stands in a backward pass comes before the plain operator.
constexpr std::array<WaitCause, 16> causes{{
    {"", "GatherBackward",
     "the backward of gather waits under deterministic algorithms: index instead, x.index({rows, columns}), or switch "
     "them off here"},
    {"", "IndexBackward",
     "the backward of indexing with a boolean mask finds its positions on the host: compute positions once, or use "
     "where or masked_fill"},
    {"", "ScatterBackward", "scatter's backward is a gather: check that its index is not made on the host"},
    {"", "CumsumBackward", "cumsum is slower under deterministic algorithms: switch them off for it alone"},
    {"aten::_local_scalar_dense", "",
     "a value is read on the host (item(), a comparison, if): keep it on the device, read it every n-th step, or "
     "choose with where"},
    {"aten::item", "", "a value is read on the host: keep it on the device, or read it every n-th step"},
    {"aten::is_nonzero", "", "a condition is read on the host: choose with where, or sinter::cond"},
    {"aten::equal", "", "equal() answers on the host: compare with eq and keep the result on the device"},
    {"aten::nonzero", "",
     "the size of its result is read on the host: use where, masked_fill, or nonzero_static with a known size"},
    {"aten::masked_select", "",
     "the size of its result is read on the host: multiply by the mask, or use where or masked_fill"},
    {"aten::index_put", "",
     "a boolean mask is turned into positions on the host: use where or masked_fill; with deterministic algorithms, "
     "index_put with accumulate sorts"},
    {"aten::index", "", "a boolean mask is turned into positions on the host: use where, or compute positions once"},
    {"aten::gather", "", "its index is made on the host: make it on the device"},
    {"aten::scatter", "",
     "under deterministic algorithms scatter may sort or wait: index_put without accumulate does "
     "not"},
    {"aten::unique", "", "the size of its result is read on the host: call it once, outside of the step"},
    {"aten::repeat_interleave", "", "the size of its result is read on the host: give output_size"},
}};

/// A row holds for operators of this name, without overload, whoever calls them.
struct SlowCause {
  std::string_view op;
  std::string_view hint;
};

// What LibTorch's deterministic form does in place of one kernel with atomic additions.
constexpr std::array<SlowCause, 5> slow_when_deterministic{{
    {"aten::gather_backward",
     "under deterministic algorithms it sorts a position for every element: index with positions of rows instead, "
     "x.index({rows, columns}), or switch them off here"},
    {"aten::scatter_add",
     "under deterministic algorithms it sorts a position for every element: index_add or index_put with positions of "
     "rows, or switch them off here"},
    {"aten::index_put",
     "accumulating sorts its positions under deterministic algorithms: switch them off here, or use index_add"},
    {"aten::scatter", "under deterministic algorithms it sorts its positions: index_put without accumulate does not"},
    {"aten::cumsum", "it runs in a slower form under deterministic algorithms: switch them off for it alone"},
}};

constexpr std::string_view copy_hint =
    "a copy to or from the host is waited for: keep the tensor on the device (no .cpu(), no printing), or copy with "
    "non_blocking into pinned memory";
constexpr std::string_view pageable_hint =
    "a copy from or to memory that is not pinned waits: pin it (pin_memory(), DataLoader's option) and copy with "
    "non_blocking";

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// "aten::index_put" of "aten::index_put_.hacked_twin".
std::string_view without_overload(std::string_view op) {
  op = op.substr(0, op.find('.'));
  return op.ends_with('_') ? op.substr(0, op.size() - 1) : op;
}

bool is_copy(std::string_view op) { return op == "aten::to" || op == "aten::copy" || op == "aten::_to_copy"; }

}  // namespace

std::string hint_for(const std::string& op, const std::string& autograd, bool pageable) {
  const std::string_view plain = without_overload(op);
  for (const WaitCause& cause : causes) {
    const bool called = cause.autograd.empty() ? autograd.empty() : has(autograd, cause.autograd);
    if (called && (cause.op.empty() || cause.op == plain)) return std::string(cause.hint);
  }
  if (pageable) return std::string(pageable_hint);
  return std::string(is_copy(plain) ? copy_hint : std::string_view());
}

std::string slow_hint_for(const std::string& op) {
  const auto cause = std::ranges::find(slow_when_deterministic, without_overload(op), &SlowCause::op);
  return cause == slow_when_deterministic.end() ? std::string() : std::string(cause->hint);
}

}  // namespace sinter::frontend
