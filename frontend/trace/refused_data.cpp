#include "frontend/trace/refused_data.h"

#include <ATen/core/Tensor.h>
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>
#include <array>
#include <limits>

#include "frontend/torch/convert.h"
#include "frontend/trace/call_key.h"

namespace sinter::frontend {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

/// More are not looked at: that would cost what is won.
constexpr int64_t kMostNumbers = 1 << 16;

/// Numbers from `first` on, before `end`.
struct Range {
  int64_t first = 0, end = 0;
  [[nodiscard]] bool holds(int64_t number) const { return first <= number && number < end; }
};

/// True where `test` says so of every number of a line. It is asked of all of them: lines are short, and mostly good.
template <class T, class Test>
bool all_in_line(const T* first, int64_t size, int64_t stride, const Test& test) {
  bool all = true;
  if (stride == 1) {
    for (int64_t i = 0; i < size; ++i) all &= test(static_cast<int64_t>(first[i]));
    return all;
  }
  for (int64_t i = 0; i < size; ++i) all &= test(static_cast<int64_t>(first[i * stride]));
  return all;
}

/// True where `test` says so of every number of a tensor, in their order.
template <class T, class Test>
bool all_numbers(const T* first, c10::IntArrayRef sizes, c10::IntArrayRef strides, const Test& test) {
  if (sizes.empty()) return test(static_cast<int64_t>(*first));
  if (sizes.size() == 1) return all_in_line(first, sizes.front(), strides.front(), test);
  for (int64_t i = 0; i < sizes.front(); ++i) {
    if (!all_numbers(first + i * strides.front(), sizes.slice(1), strides.slice(1), test)) return false;
  }
  return true;
}

template <class Test>
bool all_numbers(const at::Tensor& numbers, const Test& test) {
  if (numbers.numel() == 0) return true;
  if (numbers.scalar_type() == at::kLong) {
    return all_numbers(numbers.const_data_ptr<int64_t>(), numbers.sizes(), numbers.strides(), test);
  }
  return all_numbers(numbers.const_data_ptr<int32_t>(), numbers.sizes(), numbers.strides(), test);
}

/// True for a few integers that are there: no step gives or writes them.
bool can_look_at(const at::Tensor& numbers, const TensorTable& table) {
  if (!numbers.defined() || !is_ordinary(numbers) || !numbers.is_cpu() || numbers.numel() > kMostNumbers) return false;
  if (numbers.scalar_type() != at::kLong && numbers.scalar_type() != at::kInt) return false;
  return table.lasts(numbers) && !table.is_deferred(numbers);
}

bool are_in(const Range& range, const c10::IValue& argument, const TensorTable& table) {
  if (!argument.isTensor() || !can_look_at(argument.toTensor(), table)) return false;
  return all_numbers(argument.toTensor(), [&](int64_t index) { return range.holds(index); });
}

/// How many elements a tensor has along a dim; a number alone counts as one of one.
int64_t places_along(const at::Tensor& tensor, int64_t dim) {
  return tensor.dim() == 0 ? 1 : tensor.size(c10::maybe_wrap_dim(dim, tensor.dim()));
}

const at::Tensor& tensor_at(Arguments arguments, size_t position) { return arguments[position].toTensor(); }

bool names_rows(Arguments arguments, const TensorTable& table) {
  return are_in({0, places_along(tensor_at(arguments, 0), 0)}, arguments[1], table);
}

bool names_places(Arguments arguments, const TensorTable& table) {
  if (!arguments[1].isInt()) return false;
  const at::Tensor& indexed = tensor_at(arguments, 0);
  const int64_t dims = std::max<int64_t>(indexed.dim(), 1);
  const int64_t dim = arguments[1].toInt();
  if (dim < -dims || dim >= dims) return false;  // the operator says so, after what else it refuses
  return are_in({0, places_along(indexed, dim)}, arguments[2], table);
}

bool names_elements(Arguments arguments, const TensorTable& table) {
  const int64_t count = tensor_at(arguments, 0).numel();
  return are_in({-count, count}, arguments[1], table);
}

bool names_given_rows(Arguments arguments, const TensorTable& table) {
  return arguments[2].isInt() && are_in({0, arguments[2].toInt()}, arguments[1], table);
}

/// A tensor of indices for each dim, or none.
bool names_places_of_each_dim(Arguments arguments, const TensorTable& table) {
  const at::Tensor& indexed = tensor_at(arguments, 0);
  const auto indices = arguments[1].toListRef();
  if (static_cast<int64_t>(indices.size()) > indexed.dim()) return false;
  for (size_t dim = 0; dim < indices.size(); ++dim) {
    if (indices[dim].isNone() || (indices[dim].isTensor() && !indices[dim].toTensor().defined())) continue;
    const int64_t count = indexed.size(static_cast<int64_t>(dim));
    if (!are_in({-count, count}, indices[dim], table)) return false;
  }
  return true;
}

/// A class for each row of `scores`, or the number of those that do not count.
bool are_classes(const at::Tensor& scores, const c10::IValue& classes, const c10::IValue& ignored,
                 const TensorTable& table) {
  if (!classes.isTensor() || !ignored.isInt() || scores.dim() == 0 || !can_look_at(classes.toTensor(), table)) {
    return false;
  }
  const Range range{0, scores.size(scores.dim() == 1 ? 0 : 1)};
  const int64_t other = ignored.toInt();
  return all_numbers(classes.toTensor(), [&](int64_t index) { return range.holds(index) || index == other; });
}

bool names_classes(Arguments arguments, const TensorTable& table) {
  return are_classes(tensor_at(arguments, 0), arguments[1], arguments[4], table);
}

bool names_classes_of_gradient(Arguments arguments, const TensorTable& table) {
  return are_classes(tensor_at(arguments, 1), arguments[2], arguments[5], table);
}

/// Bags begin at 0, one behind the other, and end with the indices.
bool names_bags(Arguments arguments, const TensorTable& table) {
  if (!names_rows(arguments, table) || !arguments[2].isTensor() || !can_look_at(tensor_at(arguments, 2), table))
    return false;
  const at::Tensor& offsets = tensor_at(arguments, 2);
  if (offsets.dim() != 1 || offsets.numel() == 0) return false;
  Range range{0, 1};
  return all_numbers(offsets, [&](int64_t offset) {
    if (!range.holds(offset)) return false;
    range = {offset, tensor_at(arguments, 1).numel() + 1};
    return true;
  });
}

/// A number alone takes the dtype of what it divides: 256 is 0 among those of one byte.
bool holds_no_zero(Arguments arguments, const TensorTable& table) {
  if (!arguments[1].isTensor() || !can_look_at(tensor_at(arguments, 1), table)) return false;
  const bool alone = tensor_at(arguments, 1).dim() == 0;
  return all_numbers(tensor_at(arguments, 1),
                     [&](int64_t divisor) { return alone ? divides_any(divisor) : divisor != 0; });
}

}  // namespace

struct DataRule {
  std::string_view base;
  bool (*accepts)(Arguments arguments, const TensorTable& table);
};

namespace {

constexpr std::array index_rules{DataRule{"aten::embedding", names_rows},
                                 DataRule{"aten::embedding_renorm_", names_rows},
                                 DataRule{"aten::embedding_dense_backward", names_given_rows},
                                 DataRule{"aten::_embedding_bag", names_bags},
                                 DataRule{"aten::_embedding_bag_forward_only", names_bags},
                                 DataRule{"aten::index_select", names_places},
                                 DataRule{"aten::index_add", names_places},
                                 DataRule{"aten::index_add_", names_places},
                                 DataRule{"aten::index_copy", names_places},
                                 DataRule{"aten::index_copy_", names_places},
                                 DataRule{"aten::index_fill", names_places},
                                 DataRule{"aten::index_fill_", names_places},
                                 DataRule{"aten::gather", names_places},
                                 DataRule{"aten::scatter", names_places},
                                 DataRule{"aten::scatter_", names_places},
                                 DataRule{"aten::scatter_add", names_places},
                                 DataRule{"aten::scatter_add_", names_places},
                                 DataRule{"aten::scatter_reduce", names_places},
                                 DataRule{"aten::scatter_reduce_", names_places},
                                 DataRule{"aten::index_reduce", names_places},
                                 DataRule{"aten::index_reduce_", names_places},
                                 DataRule{"aten::take", names_elements},
                                 DataRule{"aten::index", names_places_of_each_dim},
                                 DataRule{"aten::index_put", names_places_of_each_dim},
                                 DataRule{"aten::index_put_", names_places_of_each_dim},
                                 DataRule{"aten::_index_put_impl_", names_places_of_each_dim},
                                 DataRule{"aten::nll_loss_forward", names_classes},
                                 DataRule{"aten::nll_loss2d_forward", names_classes},
                                 DataRule{"aten::nll_loss_backward", names_classes_of_gradient},
                                 DataRule{"aten::nll_loss2d_backward", names_classes_of_gradient}};

}  // namespace

const DataRule* index_rule_of(std::string_view base) {
  const auto* rule = std::ranges::find(index_rules, base, &DataRule::base);
  return rule == index_rules.end() ? nullptr : rule;
}

bool divides_any(int64_t number) { return number % 256 != 0; }

const DataRule& divisor_rule() {
  static constexpr DataRule rule{"", holds_no_zero};
  return rule;
}

bool accepts_data(const DataRule& rule, Arguments arguments, const TensorTable& table) {
  return rule.accepts(arguments, table);
}

}  // namespace sinter::frontend
