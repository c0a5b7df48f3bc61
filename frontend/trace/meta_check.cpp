#include "frontend/trace/meta_check.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>

#include "compiler/support/errors.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/libtorch_version.h"
#include "frontend/trace/layout_rules.h"

namespace sinter::frontend {

namespace {

std::vector<at::Tensor> results_of(const Step& step, torch::jit::Stack& stack) {
  if (const LayoutRule rule = layout_rule(step.facts->name)) return rule(stack);
  step.op->callBoxed(stack);
  return tensors_of({stack.data(), stack.size()});
}

}  // namespace

void MetaCheck::pass(const Step& step) {
  values_.insert(values_.end(), step.taken.begin(), step.taken.end());
  values_.insert(values_.end(), step.made.begin(), step.made.end());
}

MetaCheck::Answer MetaCheck::add(const Step& step) {
  pass(step);
  const c10::impl::ExcludeDispatchKeyGuard no_hook(kHookKeys);
  const c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  std::vector<at::Tensor> results;
  torch::jit::Stack stack;
  try {
    const auto& declared = step.op->schema().arguments();
    for (size_t i = 0; i < declared.size(); ++i) {
      const auto by_value = [this](ir::ValueId id) { return tensor(id.index); };
      c10::IValue argument = ivalue_of(step.args[i], *declared[i].real_type(), by_value, step.opaques);
      if (argument.isDevice()) argument = c10::Device(c10::kMeta);
      stack.push_back(std::move(argument));
    }
    results = results_of(step, stack);
  } catch (const std::exception&) {
    return Answer::unknown;
  }
  if (results.size() != step.results.size()) return Answer::differs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!looks_like(results[i], step.results[i].index)) return Answer::differs;
  }
  return Answer::agrees;
}

at::Tensor MetaCheck::tensor(uint32_t value) const {
  const Elements& elements = values_[value].elements;
  const auto bytes = static_cast<size_t>(elements.end_byte());
  at::Tensor whole(at::detail::empty_meta({static_cast<int64_t>(bytes)}, at::kByte));
  auto seen = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(whole.storage()), whole.key_set(),
                                                       c10::scalarTypeToTypeMeta(elements.dtype));
  seen.unsafeGetTensorImpl()->set_sizes_and_strides(elements.sizes, elements.strides, elements.offset);
  return seen;
}

bool MetaCheck::looks_like(const at::Tensor& result, uint32_t value) const {
  const Elements& wanted = values_[value].elements;
  // The meta kernel of as_strided lets a view reach beyond its storage; other kernels refuse that.
  if (wanted.end_byte() > static_cast<int64_t>(result.storage().nbytes())) return false;
  return result.sizes() == c10::IntArrayRef(wanted.sizes) && result.strides() == c10::IntArrayRef(wanted.strides) &&
         result.storage_offset() == wanted.offset;
}

}  // namespace sinter::frontend
