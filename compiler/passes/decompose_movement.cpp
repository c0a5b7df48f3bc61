#include <algorithm>
#include <array>
#include <numeric>

#include "compiler/ir/view_source.h"
#include "compiler/passes/decompose_rules.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/region.h"

/// Calls that only move elements. Where tensors are laid side by side they become joins, which kernels read from; what
/// else they need are views.
namespace sinter::passes {
namespace {

using namespace ir;

/// Of a join that one kernel may compute with all its operands.
constexpr size_t most_stored = 1024;

/// True for a value of one element for each row that a kernel reduces.
bool is_of_rows(const Graph& graph, ValueId value) {
  const Node* node = &graph.producer(view_source(graph, value).base);
  while (node->as<Primitive>() != nullptr && node->args[0].value() != nullptr) {
    node = &graph.producer(view_source(graph, *node->args[0].value()).base);
  }
  return node->as<Reduce>() != nullptr;
}

bool may_be_joined(const Graph& graph, std::span<const Arg> values) {
  if (values.empty() || values.size() <= most_joined_at_points) return !values.empty();
  return values.size() <= most_stored &&
         std::ranges::all_of(values, [&](const Arg& value) { return is_of_rows(graph, *value.value()); });
}

/// A dim that may count from the end.
std::optional<uint32_t> counted_dim(const Arg& arg, size_t rank) {
  const auto number = integer_in(arg);
  const auto count = static_cast<int64_t>(rank);
  if (!number || *number < -count || *number >= count) return std::nullopt;
  return static_cast<uint32_t>(*number < 0 ? *number + count : *number);
}

/// Adds the nodes of one call.
class Movement {
 public:
  Movement(Graph& graph, const CallSite& site) : graph_(graph), site_(site), first_new_(graph.value_count()) {}

  /// True where a kernel can write the result and is the place for it.
  [[nodiscard]] bool writes_result() const { return writes_first_result(graph_, site_); }

  [[nodiscard]] bool reads(const Arg& arg) const {
    return arg.value() != nullptr && is_kernel_operand(graph_, arg) && type(arg).device == site_.type().device;
  }

  [[nodiscard]] const Type& type(const Arg& value) const { return graph_.type(*value.value()); }

  [[nodiscard]] bool may_join(std::span<const Arg> values) const { return may_be_joined(graph_, values); }

  /// The value in the result's dtype.
  Arg cast(const Arg& value) {
    Type wanted = type(value);
    if (wanted.dtype == site_.type().dtype) return value;
    wanted.dtype = site_.type().dtype;
    if (!wanted.is_dense()) wanted.strides = contiguous_strides(wanted.sizes);
    return add(Primitive{op_named("cast")}, {value}, std::move(wanted));
  }

  /// `size` elements along a dim, from element `begin`.
  Arg slice(const Arg& value, uint32_t dim, int64_t begin, int64_t size) {
    Type part = type(value);
    const int64_t offset = begin * part.strides[dim].value();
    part.sizes[dim] = size;
    return add(View{offset}, {value}, std::move(part));
  }

  /// The value with a further dim of size 1.
  Arg unsqueeze(const Arg& value, uint32_t dim) {
    Type seen = type(value);
    const bool last = dim == seen.rank();
    const Dim stride = last ? Dim(1) : Dim(seen.sizes[dim].value() * seen.strides[dim].value());
    seen.sizes.insert(seen.sizes.begin() + dim, 1);
    seen.strides.insert(seen.strides.begin() + dim, stride);
    return add(View{0}, {value}, std::move(seen));
  }

  /// A number in the sizes of `like`, but for one dim.
  Arg block(const Arg& number, const Arg& like, uint32_t dim, int64_t size) {
    std::vector<Dim> sizes = type(like).sizes;
    sizes[dim] = size;
    return number_as(number, laid_out(std::move(sizes)));
  }

  Arg number_as(const Arg& number, Type type) { return add(Primitive{op_named("cast")}, {number}, std::move(type)); }

  Arg join(std::vector<Arg> values, uint32_t dim) {
    std::vector<Dim> sizes = type(values.front()).sizes;
    for (size_t i = 1; i < values.size(); ++i) sizes[dim] = sizes[dim] + type(values[i]).sizes[dim];
    return add(Join{dim}, std::move(values), laid_out(std::move(sizes)));
  }

  /// The value between elements that are a number, along a dim.
  Arg padded(const Arg& value, const Arg& number, uint32_t dim, int64_t before, int64_t after) {
    std::vector<Arg> parts;
    if (before > 0) parts.push_back(block(number, value, dim, before));
    parts.push_back(value);
    if (after > 0) parts.push_back(block(number, value, dim, after));
    return parts.size() == 1 ? value : join(std::move(parts), dim);
  }

  Arg join_as(std::vector<Arg> values, uint32_t dim, Type type) {
    return add(Join{dim}, std::move(values), std::move(type));
  }

  /// The elements of a value, from its first, with other sizes and strides.
  Arg seen(const Arg& value, Type type) { return add(View{0}, {value}, std::move(type)); }

  /// The value's elements in row-major memory of their own.
  Arg copied(const Arg& value) {
    Type rows = contiguous(site_.type().dtype, type(value).sizes, site_.type().device);
    return add(Primitive{op_named("cast")}, {value}, std::move(rows));
  }

  /// A computed value whose memory is the result's, in other sizes.
  Results seen_as_result(const Arg& value) { return only_first(site_, *add(View{0}, {value}, site_.type()).value()); }

  /// The value in memory of its own, as the call's result.
  Results result(const Arg& value) {
    const bool fresh = value.value()->index >= first_new_ && is_computed(graph_.producer(*value.value()));
    const bool own = fresh && type(value) == site_.type();
    const Arg made = own ? value : add(Primitive{op_named("cast")}, {value}, site_.type());
    return only_first(site_, *made.value());
  }

 private:
  Arg add(Payload payload, std::vector<Arg> args, Type type) {
    return {graph_.add1(std::move(payload), std::move(args), std::move(type), site_.scope)};
  }

  /// Sizes of the result's rank, with their dims in memory in the order of the result's.
  [[nodiscard]] Type laid_out(std::vector<Dim> sizes) const {
    const Type& result = site_.type();
    if (sizes == result.sizes) return result;
    if (sizes.size() != result.rank()) return contiguous(result.dtype, std::move(sizes), result.device);
    return dense_like(result, std::move(sizes));
  }

  Graph& graph_;
  const CallSite& site_;
  size_t first_new_;  ///< values from here on are this call's
};

/// True where each operand of a join over the dim is one piece of the result's memory.
bool joins_pieces(const Type& result, uint32_t dim) {
  for (size_t d = 0; d < result.rank(); ++d) {
    if (result.sizes[d] != Dim(1) && result.strides[dim].value() < result.strides[d].value()) return false;
  }
  return true;
}

/// Lays values of the result's dtype side by side, where that gives its sizes. Whole pieces LibTorch copies on the CPU
/// as fast as memory allows, and a kernel that chooses one does not.
std::optional<Results> joined(Movement& move, const CallSite& site, std::vector<Arg> values, uint32_t dim) {
  if (!move.may_join(values)) return std::nullopt;
  if (site.type().device.kind == Device::Kind::cpu && joins_pieces(site.type(), dim)) return std::nullopt;
  std::vector<Dim> sizes = site.type().sizes;
  Dim sum = 0;
  for (const Arg& value : values) {
    if (move.type(value).rank() != sizes.size()) return std::nullopt;
    sizes[dim] = move.type(value).sizes[dim];
    if (move.type(value).sizes != sizes) return std::nullopt;
    sum = sum + sizes[dim];
  }
  if (sum != site.type().sizes[dim]) return std::nullopt;
  for (Arg& value : values) value = move.cast(value);
  return move.result(values.size() == 1 ? values.front() : move.join(std::move(values), dim));
}

/// cat(tensors, dim). Tensors of one dim without elements are left out, whatever the others' sizes are.
std::optional<Results> cat(Graph& graph, const CallSite& site) {
  Movement move(graph, site);
  if (site.args.size() < 2 || site.args[0].list() == nullptr || !move.writes_result()) return std::nullopt;
  const auto dim = counted_dim(site.args[1], site.type().rank());
  if (!dim) return std::nullopt;
  std::vector<Arg> values;
  for (const Arg& arg : *site.args[0].list()) {
    if (!move.reads(arg)) return std::nullopt;
    const Type& type = move.type(arg);
    const bool legacy = type.rank() == 1 && type.numel() == 0;
    if (!legacy && (type.rank() != site.type().rank() || type.sizes[*dim] != Dim(0))) values.push_back(arg);
  }
  return joined(move, site, std::move(values), *dim);
}

/// stack(tensors, dim)
std::optional<Results> stack(Graph& graph, const CallSite& site) {
  Movement move(graph, site);
  if (site.args.size() < 2 || site.args[0].list() == nullptr || !move.writes_result()) return std::nullopt;
  const auto dim = counted_dim(site.args[1], site.type().rank());
  if (!dim) return std::nullopt;
  std::vector<Arg> values;
  for (const Arg& arg : *site.args[0].list()) {
    if (!move.reads(arg) || move.type(arg).rank() + 1 != site.type().rank()) return std::nullopt;
    values.push_back(move.unsqueeze(arg, *dim));
  }
  return joined(move, site, std::move(values), *dim);
}

/// constant_pad_nd(self, pad, value), where pad holds elements before and after, the last dim first. Less than none
/// are cut off.
std::optional<Results> constant_pad(Graph& graph, const CallSite& site) {
  Movement move(graph, site);
  if (site.args.size() < 3 || !move.reads(site.args[0]) || !site.args[2].is_scalar() || !move.writes_result()) {
    return std::nullopt;
  }
  const auto pad = integers_in(site.args[1]);
  const size_t rank = site.type().rank();
  Arg value = site.args[0];
  if (!pad || pad->size() % 2 != 0 || pad->size() / 2 > rank || move.type(value).rank() != rank) return std::nullopt;
  if (move.type(value).numel() == 0 || move.type(value).dtype != site.type().dtype) return std::nullopt;
  for (size_t i = 0; i < pad->size() / 2; ++i) {
    const auto dim = static_cast<uint32_t>(rank - 1 - i);
    const int64_t before = (*pad)[2 * i];
    const int64_t after = (*pad)[2 * i + 1];
    const int64_t left =
        move.type(value).sizes[dim].value() + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    if (left <= 0) return std::nullopt;
    if (before < 0 || after < 0) value = move.slice(value, dim, std::max<int64_t>(-before, 0), left);
    value = move.padded(value, site.args[2], dim, before, after);
  }
  if (move.type(value).sizes != site.type().sizes) return std::nullopt;
  return move.result(value);
}

/// The value between zeros, as much as the result has along a dim, from element `begin` on.
std::optional<Results> among_zeros(Movement& move, const CallSite& site, const Arg& value, uint32_t dim,
                                   int64_t begin) {
  if (move.type(value).dtype != site.type().dtype || move.type(value).numel() == 0) return std::nullopt;
  const int64_t after = site.type().sizes[dim].value() - begin - move.type(value).sizes[dim].value();
  if (begin < 0 || after < 0) return std::nullopt;
  std::vector<Dim> sizes = move.type(value).sizes;
  sizes[dim] = site.type().sizes[dim];
  if (sizes != site.type().sizes) return std::nullopt;
  return move.result(move.padded(value, Arg{0.0}, dim, begin, after));
}

/// The value's elements along a dim, `step` apart from element `begin` on, and zeros between them.
std::optional<Results> spread_among_zeros(Movement& move, const CallSite& site, const Arg& value, uint32_t dim,
                                          int64_t begin, int64_t step) {
  const Type& result = site.type();
  const bool even = result.sizes[dim] == move.type(value).sizes[dim] * step && begin < step;
  if (!even || move.type(value).dtype != result.dtype || move.type(value).numel() == 0) return std::nullopt;
  Type apart = result;
  apart.sizes[dim] = move.type(value).sizes[dim];
  apart.strides[dim] = result.strides[dim] * step;
  apart.sizes.insert(apart.sizes.begin() + dim + 1, step);
  apart.strides.insert(apart.strides.begin() + dim + 1, result.strides[dim]);
  const auto zeros = [&](int64_t count) {
    std::vector<Dim> sizes = apart.sizes;
    sizes[dim + 1] = count;
    return move.number_as(Arg{0.0}, dense_like(apart, std::move(sizes)));
  };
  std::vector<Arg> parts;
  if (begin > 0) parts.push_back(zeros(begin));
  parts.push_back(move.unsqueeze(value, dim + 1));
  if (begin + 1 < step) parts.push_back(zeros(step - begin - 1));
  return move.seen_as_result(move.join_as(std::move(parts), dim + 1, std::move(apart)));
}

/// A place along a dim of `size` elements, which may count from the end.
int64_t counted_place(int64_t place, int64_t size) {
  return std::clamp<int64_t>(place < 0 ? place + size : place, 0, size);
}

/// slice_backward(grad_output, input_sizes, dim, start, end, step)
std::optional<Results> slice_backward(Graph& graph, const CallSite& site) {
  Movement move(graph, site);
  if (site.args.size() != 6 || !move.reads(site.args[0]) || !move.writes_result()) return std::nullopt;
  const auto dim = counted_dim(site.args[2], site.type().rank());
  const auto start = integer_in(site.args[3]);
  const auto step = integer_in(site.args[5]);
  const bool known = dim && start && step && *step > 0;
  if (!known || move.type(site.args[0]).rank() != site.type().rank()) return std::nullopt;
  const int64_t begin = counted_place(*start, site.type().sizes[*dim].value());
  return *step == 1 ? among_zeros(move, site, site.args[0], *dim, begin)
                    : spread_among_zeros(move, site, site.args[0], *dim, begin, *step);
}

/// select_backward(grad_output, input_sizes, dim, index)
std::optional<Results> select_backward(Graph& graph, const CallSite& site) {
  Movement move(graph, site);
  if (site.args.size() != 4 || !move.reads(site.args[0]) || !move.writes_result()) return std::nullopt;
  const auto dim = counted_dim(site.args[2], site.type().rank());
  const auto index = integer_in(site.args[3]);
  if (!dim || !index || move.type(site.args[0]).rank() + 1 != site.type().rank()) return std::nullopt;
  const int64_t begin = counted_place(*index, site.type().sizes[*dim].value());
  return among_zeros(move, site, move.unsqueeze(site.args[0], *dim), *dim, begin);
}

/// roll(self, shifts, dims)
std::optional<Results> roll(Graph& graph, const CallSite& site) {
  Movement move(graph, site);
  if (site.args.size() < 3 || !move.reads(site.args[0]) || !move.writes_result()) return std::nullopt;
  const auto shifts = integers_in(site.args[1]);
  const ArgList* dims = site.args[2].list();
  Arg value = site.args[0];
  const Type& type = move.type(value);
  if (!shifts || dims == nullptr || dims->size() != shifts->size() || dims->empty()) return std::nullopt;
  if (type.sizes != site.type().sizes || type.dtype != site.type().dtype) return std::nullopt;
  for (size_t i = 0; i < shifts->size(); ++i) {
    const auto dim = counted_dim((*dims)[i], site.type().rank());
    if (!dim) return std::nullopt;
    const int64_t size = site.type().sizes[*dim].value();
    const int64_t shift = ((*shifts)[i] % size + size) % size;
    if (shift == 0) continue;
    const Arg moved_on = move.slice(value, *dim, size - shift, shift);
    value = move.join({moved_on, move.slice(value, *dim, 0, size - shift)}, *dim);
  }
  return move.result(value);
}

/// im2col(self, kernel_size, dilation, padding, stride): the elements of all windows over an image, window by window in
/// the last dim; a view of the image among zeros, and a copy.
std::optional<Results> windows_as_columns(Graph& graph, const CallSite& site) {
  Movement move(graph, site);
  if (site.args.size() != 5 || !move.reads(site.args[0]) || !move.writes_result()) return std::nullopt;
  const auto taps = integers_in(site.args[1]), dilation = integers_in(site.args[2]);
  const auto padding = integers_in(site.args[3]), stride = integers_in(site.args[4]);
  for (const auto& numbers : {taps, dilation, padding, stride}) {
    if (!numbers || numbers->size() != 2) return std::nullopt;
  }
  Arg value = site.args[0];
  const Type& image = move.type(value);
  if (image.rank() != 4 || !image.is_static() || image.numel() == 0) return std::nullopt;
  for (uint32_t axis = 0; axis < 2; ++axis) {
    value = move.padded(value, {0.0}, axis + 2, (*padding)[axis], (*padding)[axis]);
  }
  Type seen = move.type(value);
  for (size_t axis = 0; axis < 2; ++axis) {
    const Dim apart = seen.strides[axis + 2];
    const int64_t covered = (*dilation)[axis] * ((*taps)[axis] - 1) + 1;
    seen.sizes.emplace_back((seen.sizes[axis + 2].value() - covered) / (*stride)[axis] + 1);
    seen.strides.push_back(apart * (*stride)[axis]);
    seen.sizes[axis + 2] = (*taps)[axis];
    seen.strides[axis + 2] = apart * (*dilation)[axis];
  }
  return move.seen_as_result(move.copied(move.seen(value, std::move(seen))));
}

constexpr std::array movement_rows = {
    RuleRow{"aten::cat", cat},
    RuleRow{"aten::stack", stack},
    RuleRow{"aten::constant_pad_nd", constant_pad},
    RuleRow{"aten::roll", roll},
    RuleRow{"aten::slice_backward", slice_backward},
    RuleRow{"aten::select_backward", select_backward},
    RuleRow{"aten::im2col", windows_as_columns},
};

}  // namespace

std::span<const RuleRow> movement_rules() { return movement_rows; }

}  // namespace sinter::passes
