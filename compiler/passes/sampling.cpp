#include "compiler/passes/sampling.h"

#include <numeric>
#include <utility>

namespace sinter::passes {

using namespace ir;

constexpr size_t first_axis = 2;

Sampler::Sampler(Rewriter& rewrite, const Node& node)
    : rewrite_(rewrite), node_(node), result_(rewrite.old().type(node.results[0])) {}

void Sampler::nearest(float step, double shift) {
  Arg place = counted();
  if (shift != 0) place = add("add", {place, Arg{shift}}, DType::f32);
  place = add("floor", {add("mul", {place, Arg{double{step}}}, DType::f32)}, DType::f32);
  axes_.push_back({{position(place), Arg{}}});
}

void Sampler::linear(float step, bool half_pixels) {
  Arg place = counted();
  if (half_pixels) place = add("add", {place, Arg{0.5}}, DType::f32);
  place = add("mul", {place, Arg{double{step}}}, DType::f32);
  if (half_pixels) place = add("maximum", {add("sub", {place, Arg{0.5}}, DType::f32), Arg{0.0}}, DType::f32);
  const Arg first = position(place);
  const Arg second = within(add("add", {first, Arg{int64_t{1}}}, DType::i32));
  const Arg of_second = add("sub", {place, add("cast", {first}, DType::f32)}, DType::f32);
  const Arg of_first = add("sub", {Arg{1.0}, of_second}, DType::f32);
  axes_.push_back({{first, of_first}, {second, of_second}});
}

ValueId Sampler::run() {
  std::vector<Arg> positions;
  const Arg sum = blended(0, positions);
  const Type& type = rewrite_.next().type(*sum.value());
  if (type == result_) return *sum.value();
  return rewrite_.add(Primitive{op_named("cast")}, {sum}, Type(result_), node_.scope);
}

Type Sampler::vector(DType dtype) const {
  const size_t dim = first_axis + axes_.size();
  std::vector<Dim> sizes(result_.rank() - dim, Dim(1));
  sizes[0] = result_.sizes[dim];
  return contiguous(dtype, std::move(sizes), result_.device);
}

Arg Sampler::add(std::string_view op, std::vector<Arg> args, DType dtype) {
  return {rewrite_.add(Primitive{op_named(op)}, std::move(args), vector(dtype), node_.scope)};
}

Arg Sampler::counted() {
  const ValueId position = rewrite_.add(Position{0}, {}, vector(DType::i32), node_.scope);
  return add("cast", {{position}}, DType::f32);
}

Arg Sampler::position(const Arg& place) { return within(add("cast", {place}, DType::i32)); }

Arg Sampler::within(const Arg& position) {
  const size_t dim = first_axis + axes_.size();
  const int64_t last = rewrite_.old().type(*node_.args[0].value()).sizes[dim].value() - 1;
  return add("minimum", {position, Arg{last}}, DType::i32);
}

/// The sum over the elements along this axis and those behind it, at `positions` along those before it.
Arg Sampler::blended(size_t axis, std::vector<Arg>& positions) {
  if (axis == axes_.size()) return gathered(positions);
  Arg sum;
  for (const Tap& tap : axes_[axis]) {
    positions.push_back(tap.position);
    const Arg part = blended(axis + 1, positions);
    positions.pop_back();
    if (tap.weight.is_none()) return part;
    const bool is_first = sum.is_none();
    std::vector<Arg> args{part, tap.weight};
    if (!is_first) args.push_back(sum);
    sum = {rewrite_.add(Primitive{op_named(is_first ? "mul" : "fma")}, std::move(args), image_of(DType::f32),
                        node_.scope)};
  }
  return sum;
}

/// Elements that are weighed are f32.
Arg Sampler::gathered(const std::vector<Arg>& positions) {
  std::vector<uint32_t> dims(positions.size());
  std::iota(dims.begin(), dims.end(), static_cast<uint32_t>(first_axis));
  std::vector<Arg> args{{rewrite_.get(*node_.args[0].value())}};
  args.insert(args.end(), positions.begin(), positions.end());
  const ValueId element = rewrite_.add(Gather{std::move(dims)}, std::move(args), image_of(result_.dtype), node_.scope);
  const bool is_weighed = !axes_.front().front().weight.is_none();
  if (!is_weighed || result_.dtype == DType::f32) return {element};
  return {rewrite_.add(Primitive{op_named("cast")}, {{element}}, image_of(DType::f32), node_.scope)};
}

Type Sampler::image_of(DType dtype) const {
  Type type = result_;
  type.dtype = dtype;
  return type;
}

}  // namespace sinter::passes
