#include "compiler/passes/primitive_builder.h"

#include <algorithm>

#include "compiler/support/errors.h"

namespace sinter::passes {

using namespace ir;

namespace {

/// A type of these sizes whose elements lie where those of `observed` lie. Both differ by dims of size 1, or are
/// row-major.
Type same_memory(const Type& observed, const std::vector<Dim>& sizes) {
  if (observed.sizes == sizes) return observed;
  Type type = contiguous(observed.dtype, sizes, observed.device);
  if (observed.is_contiguous()) return type;
  size_t left = observed.rank();
  for (size_t dim = sizes.size(); dim-- > 0;) {
    const bool added = sizes[dim] == Dim(1) && dim + 1 > left;
    if (added) continue;
    if (left == 0 || observed.sizes[left - 1] != sizes[dim])
      throw InternalError("decompose", "a result's sizes do not follow from its operand's");
    type.strides[dim] = observed.strides[--left];
  }
  return type;
}

}  // namespace

PrimitiveBuilder::PrimitiveBuilder(Graph& graph, const CallSite& site, DType compute)
    : graph_(graph), site_(site), compute_(compute), first_new_(graph.value_count()) {
  for (const ObservedResult& result : site.results) {
    if (result.type.is_dense()) layouts_.push_back(result.type);
  }
  for (const Arg& arg : site.args) {
    if (arg.value() != nullptr && type(arg).is_dense()) layouts_.push_back(type(arg));
  }
}

Type PrimitiveBuilder::laid_out(DType dtype, std::vector<Dim> sizes) const {
  const auto found = std::ranges::find(layouts_, sizes, &Type::sizes);
  Type type = contiguous(dtype, std::move(sizes), site_.type().device);
  if (found != layouts_.end()) type.strides = found->strides;
  return type;
}

Arg PrimitiveBuilder::add(std::string_view name, std::vector<Arg> operands, DType dtype) {
  std::vector<Dim> sizes;
  for (const Arg& operand : operands) {
    if (operand.value() != nullptr) sizes = broadcast(sizes, type(operand).sizes).value();
  }
  return {graph_.add1(Primitive{op_named(name)}, std::move(operands), laid_out(dtype, std::move(sizes)), site_.scope)};
}

Arg PrimitiveBuilder::op(std::string_view name, std::vector<Arg> operands) {
  return add(name, std::move(operands), compute_);
}

Arg PrimitiveBuilder::test(std::string_view name, std::vector<Arg> operands) {
  return add(name, std::move(operands), DType::b8);
}

Arg PrimitiveBuilder::cast(const Arg& value, DType dtype) {
  Type result = type(value);
  if (result.dtype == dtype) return value;
  result.dtype = dtype;
  if (!result.is_dense()) result.strides = contiguous_strides(result.sizes);
  result.device = site_.type().device;
  return {graph_.add1(Primitive{op_named("cast")}, {value}, std::move(result), site_.scope)};
}

Arg PrimitiveBuilder::reduce(std::string_view name, const Arg& value, const std::vector<uint32_t>& dims) {
  std::vector<Dim> sizes = type(value).sizes;
  std::vector<uint32_t> joined;
  for (const uint32_t dim : dims) {
    if (sizes[dim] != Dim(1)) joined.push_back(dim);
    sizes[dim] = 1;
  }
  if (joined.empty()) return value;
  Type result = laid_out(type(value).dtype, std::move(sizes));
  return {graph_.add1(Reduce{reduction_named(name), std::move(joined)}, {value}, std::move(result), site_.scope)};
}

Arg PrimitiveBuilder::gather(const Arg& value, const Arg& positions, uint32_t dim) {
  Type result = laid_out(type(value).dtype, type(positions).sizes);
  return {graph_.add1(Gather{{dim}}, {value, positions}, std::move(result), site_.scope)};
}

Arg PrimitiveBuilder::position(std::vector<Dim> sizes, uint32_t dim) {
  Type result = contiguous(compute_, std::move(sizes), site_.type().device);
  return {graph_.add1(Position{dim}, {}, std::move(result), site_.scope)};
}

Arg PrimitiveBuilder::view(const Arg& value, std::vector<Dim> sizes, std::vector<Dim> strides) {
  Type seen{type(value).dtype, std::move(sizes), std::move(strides), type(value).device};
  if (seen == type(value)) return value;
  return {graph_.add1(View{0}, {value}, std::move(seen), site_.scope)};
}

Arg PrimitiveBuilder::reshape(const Arg& value, const std::vector<Dim>& sizes) {
  return view(value, sizes, contiguous_strides(sizes));
}

ValueId PrimitiveBuilder::result(const Arg& value, const Type& observed) {
  const Type stored = same_memory(observed, type(value).sizes);
  ValueId own = *value.value();
  const bool fresh = own.index >= first_new_ && is_computed(graph_.producer(own));
  if (!fresh || graph_.type(own) != stored)
    own = graph_.add1(Primitive{op_named("cast")}, {value}, stored, site_.scope);
  return *view({own}, observed.sizes, observed.strides).value();
}

}  // namespace sinter::passes
