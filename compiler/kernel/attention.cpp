#include "compiler/kernel/attention.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/view_source.h"

namespace sinter::kernel {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Node;
using ir::Type;
using ir::ValueId;

/// The stride of each dim, 0 where the dim repeats.
int64_t stride(const Type& type, size_t dim) { return type.sizes[dim] == Dim(1) ? 0 : type.strides[dim].constant(); }

AttentionOperand operand_of(const Type& type, int64_t offset, int64_t memory) {
  AttentionOperand operand;
  operand.offset = offset;
  operand.reach = memory - offset;
  const size_t row = type.rank() - 2;
  for (size_t dim = 0; dim < row; ++dim) operand.batch.push_back(stride(type, dim));
  operand.row = stride(type, row);
  operand.column = type.strides[row + 1].constant();
  return operand;
}

/// Drops dims of one element, and makes one of two that are one in every operand.
void merge_batch(AttentionKernel& kernel) {
  std::vector<AttentionOperand*> operands{&kernel.query, &kernel.key, &kernel.values, &kernel.result};
  if (kernel.bias) operands.push_back(&*kernel.bias);
  for (size_t dim = kernel.batch.size(); dim-- > 0;) {
    const int64_t size = kernel.batch[dim];
    const auto goes_on = [&](const AttentionOperand* operand) {
      return dim + 1 < operand->batch.size() && operand->batch[dim] == operand->batch[dim + 1] * kernel.batch[dim + 1];
    };
    const bool joins = std::ranges::all_of(operands, goes_on);
    if (size != 1 && !joins) continue;
    if (size != 1) kernel.batch[dim + 1] *= size;
    const auto at = static_cast<std::ptrdiff_t>(dim);
    kernel.batch.erase(kernel.batch.begin() + at);
    for (AttentionOperand* operand : operands) operand->batch.erase(operand->batch.begin() + at);
  }
}

}  // namespace

int64_t AttentionKernel::batches() const {
  return std::accumulate(batch.begin(), batch.end(), int64_t{1}, std::multiplies<>());
}

int64_t AttentionKernel::bytes_moved() const {
  const auto times = [this](const AttentionOperand& operand) {
    int64_t count = 1;
    for (size_t dim = 0; dim < batch.size(); ++dim) count *= operand.batch[dim] == 0 ? 1 : batch[dim];
    return count;
  };
  int64_t elements = 2 * times(query) * queries * vector + (times(key) + times(values)) * keys * vector;
  if (bias) elements += times(*bias) * (bias->row == 0 ? 1 : queries) * keys;
  return elements * ir::bytes_of(dtype);
}

std::optional<AttentionKernel> attention_of(const Graph& body, const std::string& name) {
  const Node* attention = nullptr;
  AttentionKernel kernel;
  for (const ir::NodeId id : body.order()) {
    const Node& node = body.node(id);
    if (node.as<ir::Attention>() != nullptr) attention = &node;
    if (node.as<ir::Input>() != nullptr) {
      kernel.params.push_back({.role = Param::Role::input, .dtype = body.type(node.results[0]).dtype});
    }
  }
  if (attention == nullptr) return std::nullopt;
  const auto operand = [&](size_t index) {
    const ValueId value = *attention->args[index].value();
    const ir::ViewSource source = ir::view_source(body, value);
    AttentionOperand found = operand_of(body.type(value), source.offset, body.type(source.base).span());
    found.param = body.producer(source.base).as<ir::Input>()->index;
    return found;
  };
  const Type& result = body.type(attention->results[0]);
  const std::vector<int64_t> sizes = result.static_sizes();
  kernel.name = name;
  kernel.dtype = result.dtype;
  kernel.batch.assign(sizes.begin(), sizes.end() - 2);
  kernel.queries = sizes[sizes.size() - 2];
  kernel.vector = sizes.back();
  kernel.keys = body.type(*attention->args[1].value()).sizes[sizes.size() - 2].constant();
  kernel.scale = attention->as<ir::Attention>()->scale;
  kernel.zeros = attention->as<ir::Attention>()->zeros;
  kernel.causal = attention->as<ir::Attention>()->causal;
  kernel.query = operand(0), kernel.key = operand(1), kernel.values = operand(2);
  if (attention->args.size() == 4) kernel.bias = operand(3);
  kernel.result = operand_of(result, 0, result.span());
  kernel.result.param = static_cast<uint32_t>(kernel.params.size());
  kernel.params.push_back({.role = Param::Role::output, .dtype = result.dtype});
  merge_batch(kernel);
  return kernel;
}

}  // namespace sinter::kernel
