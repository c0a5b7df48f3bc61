#include "frontend/profile/operator_work.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "frontend/torch/convert.h"

namespace sinter::frontend {
namespace {

using Tensors = std::vector<at::Tensor>;

/// A row holds for all overloads of an operator, and for those of its form in place; a name that ends in an asterisk
/// for all that begin like it.
struct RuleRow {
  std::string_view op;
  WorkRule rule;
};

/// What tags and schemas do not say. LibTorch tags what works element by element.
constexpr std::array rule_rows{
    RuleRow{"_unsafe_view", WorkRule::nothing},
    RuleRow{"_reshape_alias", WorkRule::nothing},
    RuleRow{"mm", WorkRule::product},
    RuleRow{"bmm", WorkRule::product},
    RuleRow{"addmm", WorkRule::product},
    RuleRow{"baddbmm", WorkRule::product},
    RuleRow{"_addmm_activation", WorkRule::product},
    RuleRow{"mv", WorkRule::product},
    RuleRow{"addmv", WorkRule::product},
    RuleRow{"dot", WorkRule::product},
    RuleRow{"_linear_pointwise", WorkRule::linear},
    RuleRow{"convolution", WorkRule::convolution},
    RuleRow{"_convolution", WorkRule::convolution},
    RuleRow{"cudnn_convolution", WorkRule::convolution},
    RuleRow{"cudnn_convolution_relu", WorkRule::convolution},
    RuleRow{"cudnn_convolution_add_relu", WorkRule::convolution},
    RuleRow{"mkldnn_convolution", WorkRule::convolution},
    RuleRow{"_convolution_pointwise", WorkRule::convolution},
    RuleRow{"convolution_backward", WorkRule::convolution_backward},
    RuleRow{"_scaled_dot_product_flash_attention", WorkRule::attention},
    RuleRow{"_scaled_dot_product_flash_attention_for_cpu", WorkRule::attention},
    RuleRow{"_scaled_dot_product_efficient_attention", WorkRule::attention},
    RuleRow{"_scaled_dot_product_cudnn_attention", WorkRule::attention},
    RuleRow{"_scaled_dot_product_flash_attention_backward", WorkRule::attention_backward},
    RuleRow{"_scaled_dot_product_flash_attention_for_cpu_backward", WorkRule::attention_backward},
    RuleRow{"_scaled_dot_product_efficient_attention_backward", WorkRule::attention_backward},
    RuleRow{"_scaled_dot_product_cudnn_attention_backward", WorkRule::attention_backward},
    RuleRow{"embedding", WorkRule::lookup},
    RuleRow{"index_select", WorkRule::lookup},
    RuleRow{"index", WorkRule::lookup},
    RuleRow{"gather", WorkRule::lookup},
    RuleRow{"_foreach_*", WorkRule::traffic},
    RuleRow{"_fused_adam*", WorkRule::traffic},
    RuleRow{"_fused_sgd*", WorkRule::traffic},
    RuleRow{"_fused_rms_norm*", WorkRule::traffic},
    RuleRow{"upsample_*", WorkRule::traffic},
    RuleRow{"native_layer_norm*", WorkRule::traffic},
    RuleRow{"native_group_norm*", WorkRule::traffic},
    RuleRow{"native_batch_norm*", WorkRule::traffic},
    RuleRow{"cudnn_batch_norm*", WorkRule::traffic},
    RuleRow{"batch_norm_backward", WorkRule::traffic},
    RuleRow{"_batch_norm_with_update*", WorkRule::traffic},
    RuleRow{"native_dropout*", WorkRule::traffic},
    RuleRow{"max_pool2d_with_indices*", WorkRule::traffic},
    RuleRow{"avg_pool2d*", WorkRule::traffic},
    RuleRow{"_adaptive_avg_pool2d*", WorkRule::traffic},
    RuleRow{"adaptive_max_pool2d*", WorkRule::traffic},
    RuleRow{"_softmax*", WorkRule::traffic},
    RuleRow{"_log_softmax*", WorkRule::traffic},
    RuleRow{"gelu_backward", WorkRule::traffic},
    RuleRow{"threshold_backward", WorkRule::traffic},
    RuleRow{"copy", WorkRule::traffic},
    RuleRow{"_to_copy", WorkRule::traffic},
    RuleRow{"clone", WorkRule::traffic},
    RuleRow{"cat", WorkRule::traffic},
    RuleRow{"stack", WorkRule::traffic},
    RuleRow{"repeat", WorkRule::traffic},
    RuleRow{"roll", WorkRule::traffic},
    RuleRow{"flip", WorkRule::traffic},
    RuleRow{"tril", WorkRule::traffic},
    RuleRow{"triu", WorkRule::traffic},
    RuleRow{"constant_pad_nd", WorkRule::traffic},
    RuleRow{"im2col", WorkRule::traffic},
    RuleRow{"col2im", WorkRule::traffic},
    RuleRow{"slice_backward", WorkRule::traffic},
    RuleRow{"select_backward", WorkRule::traffic},
    RuleRow{"embedding_dense_backward", WorkRule::traffic},
    RuleRow{"fill", WorkRule::traffic},
    RuleRow{"zero", WorkRule::traffic},
    RuleRow{"zeros", WorkRule::traffic},
    RuleRow{"zeros_like", WorkRule::traffic},
    RuleRow{"ones", WorkRule::traffic},
    RuleRow{"ones_like", WorkRule::traffic},
    RuleRow{"full", WorkRule::traffic},
    RuleRow{"full_like", WorkRule::traffic},
    RuleRow{"arange", WorkRule::traffic},
    RuleRow{"uniform", WorkRule::traffic},
    RuleRow{"normal", WorkRule::traffic},
    RuleRow{"bernoulli", WorkRule::traffic},
    RuleRow{"rand*", WorkRule::traffic},
    RuleRow{"sum", WorkRule::traffic},
    RuleRow{"mean", WorkRule::traffic},
    RuleRow{"prod", WorkRule::traffic},
    RuleRow{"var", WorkRule::traffic},
    RuleRow{"std", WorkRule::traffic},
    RuleRow{"var_mean", WorkRule::traffic},
    RuleRow{"amax", WorkRule::traffic},
    RuleRow{"amin", WorkRule::traffic},
    RuleRow{"max", WorkRule::traffic},
    RuleRow{"min", WorkRule::traffic},
    RuleRow{"argmax", WorkRule::traffic},
    RuleRow{"argmin", WorkRule::traffic},
    RuleRow{"any", WorkRule::traffic},
    RuleRow{"all", WorkRule::traffic},
    RuleRow{"linalg_vector_norm", WorkRule::traffic},
    RuleRow{"cumsum", WorkRule::traffic},
};

/// Written in place without a look at what was there.
constexpr std::array<std::string_view, 8> overwriting{"copy_",   "fill_",      "zero_",   "uniform_",
                                                      "normal_", "bernoulli_", "random_", "exponential_"};

bool fits(std::string_view op, std::string_view row) {
  if (row.ends_with('*')) return op.starts_with(row.substr(0, row.size() - 1));
  return op == row || (op.ends_with('_') && op.substr(0, op.size() - 1) == row);
}

/// "add_" of "aten::add_"; empty for operators that are not LibTorch's own.
std::string_view plain_name(std::string_view name) {
  for (const std::string_view prefix : {"aten::", "mkldnn::"}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

WorkRule rule_of(const c10::OperatorHandle& op, const OpFacts& facts) {
  const std::string_view name = plain_name(op.schema().name());
  for (const RuleRow& row : rule_rows) {
    if (fits(name, row.op)) return row.rule;
  }
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) return WorkRule::inner;
  if (only_looks(facts) || facts.uninitialised || facts.metadata_only) return WorkRule::nothing;
  return op.hasTag(at::Tag::pointwise) ? WorkRule::traffic : WorkRule::unknown;
}

std::optional<uint32_t> position_of(const c10::FunctionSchema& schema, const char* argument) {
  const auto found = schema.argumentIndexWithName(argument);
  return found ? std::optional(static_cast<uint32_t>(*found)) : std::nullopt;
}

WorkTraits traits_of(const c10::OperatorHandle& op, const OpFacts& facts) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string_view name = plain_name(schema.name());
  WorkTraits traits;
  traits.rule = rule_of(op, facts);
  traits.mutates = facts.mutates;
  const auto is_out = [&](uint32_t position) { return schema.arguments()[position].is_out(); };
  traits.overwrites = std::ranges::find(overwriting, name) != overwriting.end() ||
                      (!traits.mutates.empty() && std::ranges::all_of(traits.mutates, is_out));
  for (const c10::Argument& result : schema.returns()) traits.gives_new.push_back(result.alias_info() == nullptr);
  traits.weight = position_of(schema, "weight");
  if (!traits.weight) traits.weight = position_of(schema, "W");
  traits.query = position_of(schema, "query");
  traits.causal = position_of(schema, "is_causal");
  return traits;
}

/// Bytes of a tensor's places; one that a stride of 0 repeats counts once.
int64_t distinct_bytes(const at::Tensor& tensor) {
  if (tensor.layout() == at::kMkldnn) return tensor.numel() * static_cast<int64_t>(tensor.element_size());
  int64_t count = 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.stride(dim) != 0 || tensor.size(dim) == 0) count *= tensor.size(dim);
  }
  return count * static_cast<int64_t>(tensor.element_size());
}

/// Reads and writes of memory of one device. Tensors on the CPU that hold one number are passed by value.
class Traffic {
 public:
  explicit Traffic(std::optional<at::Device> device = std::nullopt) : device_(device) {}

  void add(const at::Tensor& tensor) {
    if (tensor.layout() != at::kStrided && tensor.layout() != at::kMkldnn) {
      known_ = false;
      return;
    }
    if (tensor.is_cpu() && tensor.dim() == 0) return;
    if (!device_) device_ = tensor.device();
    known_ &= *device_ == tensor.device();  // a bus between two devices has a limit of its own
    bytes_ += distinct_bytes(tensor);
  }

  void put_into(OperatorWork& work) const {
    work.bytes += bytes_;
    work.known &= known_;
  }

  [[nodiscard]] std::optional<at::Device> device() const { return device_; }

 private:
  std::optional<at::Device> device_;
  int64_t bytes_ = 0;
  bool known_ = true;
};

/// A call that is recorded computes nothing yet: its results have no memory.
bool is_computed_later(const at::Tensor& result) {
  if (!result.has_storage() || result.storage().nbytes() == 0) return false;
  return result.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get() == nullptr;
}

bool holds_position(const std::vector<uint32_t>& positions, size_t position) {
  return std::ranges::find(positions, position) != positions.end();
}

void add_operands(const WorkTraits& traits, std::span<const c10::IValue> arguments, BegunWork& begun) {
  Traffic traffic;
  std::vector<const c10::TensorImpl*> read;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool mutated = holds_position(traits.mutates, i);
    const bool looked_up = traits.rule == WorkRule::lookup && i == 0;
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (mutated) traffic.add(tensor);
      if (looked_up || (mutated && traits.overwrites)) return;
      if (std::ranges::find(read, tensor.unsafeGetTensorImpl()) != read.end()) return;
      read.push_back(tensor.unsafeGetTensorImpl());
      traffic.add(tensor);
    });
  }
  traffic.put_into(begun.work);
  begun.device = traffic.device();
}

Tensors tensor_operands(std::span<const c10::IValue> arguments) {
  Tensors tensors;
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor() && argument.toTensor().defined()) tensors.push_back(argument.toTensor());
  }
  return tensors;
}

double count_of(const at::Tensor& tensor) { return static_cast<double>(tensor.numel()); }

/// The last two tensors are those that are multiplied.
void begin_product(std::span<const c10::IValue> arguments, BegunWork& begun) {
  const Tensors tensors = tensor_operands(arguments);
  if (tensors.size() < 2) return void(begun.work.known = false);
  const at::Tensor& left = tensors[tensors.size() - 2];
  const at::Tensor& right = tensors.back();
  const int64_t columns = right.dim() > 1 ? right.size(-1) : 1;
  begun.work.flops = 2 * count_of(left) * static_cast<double>(columns);
  begun.work.dtype = left.scalar_type();
}

constexpr size_t transposed_position = 6;  ///< of convolution and _convolution
constexpr size_t backward_transposed = 7;  ///< of convolution_backward
constexpr size_t backward_mask = 10;       ///< of convolution_backward: which gradients it computes

bool is_set(std::span<const c10::IValue> arguments, size_t position) {
  return position < arguments.size() && arguments[position].isBool() && arguments[position].toBool();
}

/// Operations for each element of what a filter slides over or gives.
double filter_flops(const at::Tensor& weight) {
  return weight.dim() == 0 || weight.size(0) == 0 ? 0 : 2 * count_of(weight) / static_cast<double>(weight.size(0));
}

void begin_linear(const WorkTraits& traits, std::span<const c10::IValue> arguments, BegunWork& begun) {
  if (!traits.weight) return void(begun.work.known = false);
  const at::Tensor& input = arguments[0].toTensor();
  const at::Tensor& weight = arguments[*traits.weight].toTensor();
  begun.work.dtype = input.scalar_type();
  begun.work.flops = 2 * count_of(input) * static_cast<double>(weight.size(0));
}

void begin_convolution(const WorkTraits& traits, std::span<const c10::IValue> arguments, BegunWork& begun) {
  if (!traits.weight) return void(begun.work.known = false);
  const at::Tensor& input = arguments[0].toTensor();
  const at::Tensor& weight = arguments[*traits.weight].toTensor();
  begun.work.dtype = weight.scalar_type();
  if (is_set(arguments, transposed_position)) {
    begun.work.flops = count_of(input) * filter_flops(weight);
  } else {
    begun.flops_per_result = filter_flops(weight);
  }
}

/// As many operations as forward for the input's gradient, and again for the weight's.
void begin_convolution_backward(std::span<const c10::IValue> arguments, BegunWork& begun) {
  const at::Tensor& gradient = arguments[0].toTensor();
  const at::Tensor& input = arguments[1].toTensor();
  const at::Tensor& weight = arguments[2].toTensor();
  const double forward = count_of(is_set(arguments, backward_transposed) ? input : gradient) * filter_flops(weight);
  const auto wanted = arguments[backward_mask].toBoolList();
  begun.work.dtype = weight.scalar_type();
  begun.work.flops = forward * ((wanted.get(0) ? 1 : 0) + (wanted.get(1) ? 1 : 0));
}

/// Two products forward. Backward computes the first again and four more.
void begin_attention(const WorkTraits& traits, std::span<const c10::IValue> arguments, BegunWork& begun) {
  if (!traits.query || *traits.query + 2 >= arguments.size()) return void(begun.work.known = false);
  const at::Tensor& query = arguments[*traits.query].toTensor();
  const at::Tensor& key = arguments[*traits.query + 1].toTensor();
  const at::Tensor& value = arguments[*traits.query + 2].toTensor();
  if (query.dim() < 2 || key.dim() < 2 || value.dim() < 2) return void(begun.work.known = false);
  const double rows = query.size(-1) == 0 ? 0 : count_of(query) / static_cast<double>(query.size(-1));
  const auto columns = static_cast<double>(key.size(-2));
  double flops = 2 * rows * columns * static_cast<double>(query.size(-1) + value.size(-1));
  if (traits.causal && is_set(arguments, *traits.causal)) flops /= 2;
  begun.work.flops = traits.rule == WorkRule::attention_backward ? flops * 5 / 2 : flops;
  begun.work.dtype = query.scalar_type();
}

}  // namespace

void OperatorWork::add(const OperatorWork& other) {
  bytes += other.bytes;
  if (other.flops > 0) dtype = flops > 0 && dtype != other.dtype ? std::nullopt : other.dtype;
  flops += other.flops;
  known &= other.known;
}

const WorkTraits& WorkRules::of(const c10::OperatorName& name) {
  const auto known = traits_.find(name);
  if (known != traits_.end()) return known->second;
  const auto op = c10::Dispatcher::singleton().findSchema(name);
  return traits_.emplace(name, op ? traits_of(*op, facts_.of(*op)) : WorkTraits{}).first->second;
}

BegunWork begin_work(const WorkTraits& traits, std::span<const c10::IValue> arguments) {
  BegunWork begun;
  add_operands(traits, arguments, begun);
  switch (traits.rule) {
    case WorkRule::product:
      begin_product(arguments, begun);
      break;
    case WorkRule::linear:
      begin_linear(traits, arguments, begun);
      break;
    case WorkRule::convolution:
      begin_convolution(traits, arguments, begun);
      break;
    case WorkRule::convolution_backward:
      begin_convolution_backward(arguments, begun);
      break;
    case WorkRule::attention:
    case WorkRule::attention_backward:
      begin_attention(traits, arguments, begun);
      break;
    default:
      break;
  }
  return begun;
}

OperatorWork end_work(const WorkTraits& traits, const BegunWork& begun, std::span<const c10::IValue> results) {
  OperatorWork work = begun.work;
  Traffic traffic(begun.device);
  bool first = true;
  bool recorded = false;
  for (size_t i = 0; i < results.size(); ++i) {
    for_each_tensor(results[i], [&](const at::Tensor& tensor) {
      recorded |= is_computed_later(tensor);
      if (std::exchange(first, false)) work.flops += begun.flops_per_result * count_of(tensor);
      if (i >= traits.gives_new.size() || !traits.gives_new[i]) return;
      traffic.add(tensor);
      if (traits.rule == WorkRule::lookup) traffic.add(tensor);
    });
  }
  traffic.put_into(work);
  return recorded ? OperatorWork() : work;
}

}  // namespace sinter::frontend
