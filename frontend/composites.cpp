#include "frontend/composites.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "frontend/host_call.h"
#include "frontend/recorder.h"
#include "frontend/replay/session.h"

namespace sinter::frontend {
namespace {

/// Lies above autograd and autocast, and LibTorch itself gives it no kernels. Nothing reaches it while no capture
/// includes it.
constexpr auto kKey = c10::DispatchKey::DeferredInit;

using Work = CatchComposites::Work;

struct Composite {
  const char* name;
  Work work;
  uint32_t first = 0;  ///< of the arguments that are looked at
  uint32_t count = 0;  ///< of them
};

constexpr std::array composites{
    Composite{"aten::tensor_split.tensor_indices_or_sections", Work::looks, 1, 1},
    Composite{"aten::_pad_packed_sequence", Work::looks, 1, 1},
    Composite{"aten::_pack_padded_sequence_backward", Work::looks, 2, 1},
    Composite{"aten::lstm.data", Work::looks, 1, 1},
    Composite{"aten::gru.data", Work::looks, 1, 1},
    Composite{"aten::rnn_tanh.data", Work::looks, 1, 1},
    Composite{"aten::rnn_relu.data", Work::looks, 1, 1},
    Composite{"aten::ctc_loss.Tensor", Work::looks, 2, 2},
    Composite{"aten::_reshape_from_tensor", Work::looks, 1, 1},
    Composite{"aten::matmul.out", Work::compares},
    Composite{"aten::max_pool1d", Work::fills},
    Composite{"aten::_pad_circular", Work::fills},
    Composite{"aten::choose_qparams_optimized", Work::fills},
    Composite{"aten::_grid_sampler_2d_cpu_fallback_backward", Work::fills},
    Composite{"aten::_sobol_engine_draw", Work::fills},
    Composite{"aten::_sobol_engine_ff_", Work::fills},
    Composite{"aten::_sobol_engine_initialize_state_", Work::fills},
    Composite{"aten::_sobol_engine_scramble_", Work::fills},
    Composite{"aten::_saturate_weight_to_fp16", Work::unseen},
    Composite{"aten::fbgemm_linear_fp16_weight", Work::unseen},
    Composite{"aten::fbgemm_linear_fp16_weight_fp32_activation", Work::unseen},
    Composite{"aten::fbgemm_linear_int8_weight", Work::unseen},
    Composite{"aten::fbgemm_linear_int8_weight_fp32_activation", Work::unseen},
    Composite{"aten::fbgemm_linear_quantize_weight", Work::unseen},
    Composite{"aten::fbgemm_pack_gemm_matrix_fp16", Work::unseen},
    Composite{"aten::fbgemm_pack_quantized_matrix", Work::unseen},
    Composite{"aten::fbgemm_pack_quantized_matrix.KN", Work::unseen},
};

const Composite& composite(const c10::OperatorName& op) {
  const std::string name = op.overload_name.empty() ? op.name : op.name + "." + op.overload_name;
  return *std::find_if(composites.begin(), composites.end(), [&](const Composite& row) { return row.name == name; });
}

/// What a tensor holds, in order. It may lie on any device.
std::vector<int64_t> elements(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::TensorOptions(at::kCPU).dtype(at::kLong)).contiguous();
  const auto* begin = numbers.const_data_ptr<int64_t>();
  return {begin, begin + numbers.numel()};
}

/// Calls the operator above, unless the argument is a number alone, which those operators read with item().
void look_at(const c10::IValue& argument) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kElementsOp, "").typed<std::vector<int64_t>(const at::Tensor&)>();
  const at::Tensor& tensor = argument.toTensor();
  if (!tensor.defined() || tensor.dim() == 0) return;
  if (c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false)) op.call(tensor);
}

bool fills_results(c10::ArrayRef<c10::IValue> arguments) {
  return std::all_of(arguments.begin(), arguments.end(), [](const c10::IValue& argument) {
    if (!argument.isTensor() || !argument.toTensor().defined()) return true;
    const at::Tensor& tensor = argument.toTensor();
    return tensor.is_cpu() && !(at::GradMode::is_enabled() && tensor.requires_grad());
  });
}

/// What they read themselves has to be there.
void catch_checked(Session& session, const c10::OperatorHandle& op, c10::DispatchKeySet below,
                   torch::jit::Stack* stack) {
  if (composite(op.operator_name()).work == Work::compares) return session.call_whole(op, below, stack);
  session.wait_for(torch::jit::last(*stack, op.schema().arguments().size()));
  op.redispatchBoxed(below, stack);
}

void catch_composite(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  if (Session* session = current_session()) return catch_checked(*session, op, below, stack);
  Recorder* recorder = current_recorder();
  const bool records = recorder != nullptr && recorder->recording() && HostScope::current() == nullptr;
  if (!records) return op.redispatchBoxed(below, stack);
  const Composite& row = composite(op.operator_name());
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  switch (row.work) {
    case Work::none:
    case Work::compares:
      break;
    case Work::looks:
      for (const c10::IValue& argument : arguments.slice(row.first, row.count)) look_at(argument);
      break;
    case Work::fills:
      if (fills_results(arguments)) return run_recorded(*recorder, op, below, stack);
      break;
    case Work::unseen:
      recorder->stop({BreakCode::unsupported_op,
                      row.name,
                      {},
                      "does work of its own that no operator tells of",
                      "compile the part around it"});
  }
  op.redispatchBoxed(below, stack);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sinter, library) {
  library.def("elements(Tensor self) -> int[]", {at::Tag::pt2_compliant_tag});
  library.impl("elements", c10::DispatchKey::CompositeExplicitAutograd, &elements);
}

TORCH_LIBRARY_IMPL(_, DeferredInit, library) { library.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, DeferredInit, library) {
  for (const Composite& row : composites) {
    library.impl(row.name, torch::CppFunction::makeFromBoxedFunction<&catch_composite>());
  }
}

CatchComposites::CatchComposites() : include_(kKey) {}

std::vector<std::string> CatchComposites::names() {
  std::vector<std::string> names;
  for (const Composite& row : composites) names.emplace_back(row.name);
  return names;
}

Work CatchComposites::work_of(std::string_view name) {
  const auto* row =
      std::ranges::find(composites, name, [](const Composite& composite) { return std::string_view(composite.name); });
  return row == composites.end() ? Work::none : row->work;
}

}  // namespace sinter::frontend
