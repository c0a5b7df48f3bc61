#include <algorithm>
#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/decompose_rules.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/reduction_rules.h"

/// Calls that read elements at places which other tensors tell. They become gathers, which kernels for CUDA read as
/// they read a tensor: what looks up rows of a table and normalises them is one kernel. On the CPU LibTorch's calls
/// stay, for they throw where a place lies outside, and a kernel cannot.
namespace sinter::passes {
namespace {

using namespace ir;

std::vector<Dim> ones(size_t count) { return std::vector<Dim>(count, 1); }

void append(std::vector<Dim>& to, std::span<const Dim> more) { to.insert(to.end(), more.begin(), more.end()); }

/// Adds the nodes of one call.
class Gathering {
 public:
  Gathering(Graph& graph, const CallSite& site) : graph_(graph), site_(site) {}

  /// True where a kernel can write the result and read the tensor.
  [[nodiscard]] bool takes(const Arg& tensor) const {
    return site_.context.device.backend == Backend::cuda && writes_first_result(graph_, site_) && reads(tensor) &&
           type(tensor).dtype == site_.type().dtype;
  }

  [[nodiscard]] bool reads_positions(const Arg& arg) const { return reads(arg) && is_position(type(arg).dtype); }

  [[nodiscard]] const Type& type(const Arg& value) const { return graph_.type(*value.value()); }

  Arg seen_as(const Arg& value, std::vector<Dim> sizes, std::vector<Dim> strides) {
    Type seen = type(value);
    seen.sizes = std::move(sizes);
    seen.strides = std::move(strides);
    if (seen == type(value)) return value;
    return add(View{0}, {value}, std::move(seen));
  }

  /// The value with dims of size 1 at its end.
  Arg with_ones(const Arg& value, size_t count) {
    if (count == 0) return value;
    std::vector<Dim> sizes = type(value).sizes;
    std::vector<Dim> strides = type(value).strides;
    append(sizes, ones(count));
    append(strides, ones(count));
    return seen_as(value, std::move(sizes), std::move(strides));
  }

  /// Positions of which those below 0 count from the end.
  Arg counted(const Arg& position, int64_t size) {
    Type here = type(position);
    here.strides = contiguous_strides(here.sizes);
    Type flag = here;
    flag.dtype = DType::b8;
    const Arg from_end = add(Primitive{op_named("lt")}, {position, Arg{int64_t{0}}}, std::move(flag));
    const Arg moved = add(Primitive{op_named("add")}, {position, Arg{size}}, here);
    return add(Primitive{op_named("where")}, {from_end, moved, position}, here);
  }

  Results result(std::vector<uint32_t> dims, std::vector<Arg> args, Type type) {
    const bool own = type == site_.type();
    Arg made = add(Gather{std::move(dims)}, std::move(args), std::move(type));
    if (!own) made = add(View{0}, {made}, site_.type());
    return only_first(site_, *made.value());
  }

 private:
  [[nodiscard]] bool reads(const Arg& arg) const {
    return arg.value() != nullptr && is_kernel_operand(graph_, arg) && type(arg).device == site_.type().device;
  }

  Arg add(Payload payload, std::vector<Arg> args, Type type) {
    return {graph_.add1(std::move(payload), std::move(args), std::move(type), site_.scope)};
  }

  Graph& graph_;
  const CallSite& site_;
};

/// The tensor at `positions` along its dims from `first` on, one dim each: sizes before `first`, then those that the
/// positions broadcast to, then the rest.
std::optional<Results> gathered(Gathering& make, const CallSite& site, const Arg& tensor, size_t first,
                                std::vector<Arg> positions) {
  std::vector<Dim> spread;
  for (const Arg& position : positions) {
    const auto both = broadcast(spread, make.type(position).sizes);
    if (!both) return std::nullopt;
    spread = *both;
  }
  const Type& from = make.type(tensor);
  const size_t after = from.rank() - first - positions.size();
  const size_t middle = std::max(spread.size(), positions.size());
  if (site.type().rank() != first + spread.size() + after) return std::nullopt;

  std::vector<Dim> sizes(from.sizes.begin(), from.sizes.end() - static_cast<std::ptrdiff_t>(after));
  std::vector<Dim> strides(from.strides.begin(), from.strides.end() - static_cast<std::ptrdiff_t>(after));
  append(sizes, ones(middle - positions.size()));
  append(strides, ones(middle - positions.size()));
  append(sizes, std::span(from.sizes).last(after));
  append(strides, std::span(from.strides).last(after));

  Type result = site.type();
  const auto end = static_cast<std::ptrdiff_t>(first + spread.size());
  result.sizes.insert(result.sizes.begin() + end, middle - spread.size(), 1);
  result.strides.insert(result.strides.begin() + end, middle - spread.size(), 1);

  std::vector<uint32_t> dims;
  std::vector<Arg> args{make.seen_as(tensor, std::move(sizes), std::move(strides))};
  for (size_t i = 0; i < positions.size(); ++i) {
    dims.push_back(static_cast<uint32_t>(first + i));
    args.push_back(make.with_ones(positions[i], middle - spread.size() + after));
  }
  return make.result(std::move(dims), std::move(args), std::move(result));
}

/// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
std::optional<Results> embedding(Graph& graph, const CallSite& site) {
  Gathering make(graph, site);
  if (site.args.size() < 2 || !make.takes(site.args[0]) || !make.reads_positions(site.args[1])) return std::nullopt;
  if (make.type(site.args[0]).rank() != 2 || make.type(site.args[1]).rank() == 0) return std::nullopt;
  return gathered(make, site, site.args[0], 0, {site.args[1]});
}

/// The one dim that an argument names.
std::optional<size_t> dim_in(const Arg& arg, size_t rank) {
  const auto dims = named_dims(arg, rank);
  return dims && dims->size() == 1 ? std::optional<size_t>(dims->front()) : std::nullopt;
}

/// index_select(self, dim, index)
std::optional<Results> index_select(Graph& graph, const CallSite& site) {
  Gathering make(graph, site);
  if (site.args.size() != 3 || !make.takes(site.args[0]) || !make.reads_positions(site.args[2])) return std::nullopt;
  const auto dim = dim_in(site.args[1], make.type(site.args[0]).rank());
  if (!dim || make.type(site.args[2]).rank() != 1) return std::nullopt;
  return gathered(make, site, site.args[0], *dim, {site.args[2]});
}

/// gather(self, dim, index, sparse_grad): along other dims the index may have fewer elements.
std::optional<Results> gather(Graph& graph, const CallSite& site) {
  Gathering make(graph, site);
  if (site.args.size() < 3 || !make.takes(site.args[0]) || !make.reads_positions(site.args[2])) return std::nullopt;
  const Type& from = make.type(site.args[0]);
  const auto dim = dim_in(site.args[1], from.rank());
  if (!dim || make.type(site.args[2]).sizes != site.type().sizes || from.rank() != site.type().rank()) {
    return std::nullopt;
  }
  std::vector<Dim> sizes = site.type().sizes;
  sizes[*dim] = from.sizes[*dim];
  const Arg part = make.seen_as(site.args[0], std::move(sizes), from.strides);
  return make.result({static_cast<uint32_t>(*dim)}, {part, site.args[2]}, site.type());
}

/// A tensor with the dims that are indexed side by side.
struct Indexed {
  Arg tensor;
  size_t first = 0;
  std::vector<Arg> positions;
};

/// Where other dims lie between those that are indexed, what they become stands first in the result.
Indexed side_by_side(Gathering& make, const Arg& tensor, const std::vector<size_t>& dims, std::vector<Arg> positions) {
  if (dims.back() - dims.front() + 1 == dims.size()) return {tensor, dims.front(), std::move(positions)};
  const Type& from = make.type(tensor);
  std::vector<Dim> sizes;
  std::vector<Dim> strides;
  const auto take = [&](size_t dim) {
    sizes.push_back(from.sizes[dim]);
    strides.push_back(from.strides[dim]);
  };
  for (const size_t dim : dims) take(dim);
  for (size_t dim = 0; dim < from.rank(); ++dim) {
    if (std::ranges::find(dims, dim) == dims.end()) take(dim);
  }
  return {make.seen_as(tensor, std::move(sizes), std::move(strides)), 0, std::move(positions)};
}

/// index(self, indices), where every index is of integers.
std::optional<Results> index(Graph& graph, const CallSite& site) {
  Gathering make(graph, site);
  const ArgList* indices = site.args.size() == 2 ? site.args[1].list() : nullptr;
  if (indices == nullptr || !make.takes(site.args[0])) return std::nullopt;
  std::vector<size_t> dims;
  std::vector<Arg> positions;
  const std::vector<Dim> sizes = make.type(site.args[0]).sizes;
  for (size_t dim = 0; dim < indices->size(); ++dim) {
    const Arg& position = (*indices)[dim];
    if (position.is_none()) continue;
    if (dim >= sizes.size() || !make.reads_positions(position)) return std::nullopt;
    dims.push_back(dim);
    positions.push_back(make.counted(position, sizes[dim].value()));
  }
  if (dims.empty()) return std::nullopt;
  Indexed indexed = side_by_side(make, site.args[0], dims, std::move(positions));
  return gathered(make, site, indexed.tensor, indexed.first, std::move(indexed.positions));
}

constexpr std::array gather_rows = {
    RuleRow{"aten::embedding", embedding},
    RuleRow{"aten::index_select", index_select},
    RuleRow{"aten::gather", gather},
    RuleRow{"aten::index.Tensor", index},
};

}  // namespace

std::span<const RuleRow> gather_rules() { return gather_rows; }

}  // namespace sinter::passes
