#include "frontend/replay/composites.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "frontend/replay/dispatch_hook.h"
#include "frontend/replay/session.h"

namespace sinter::frontend {
namespace {

static_assert(kCompositesKey == c10::DispatchKey::DeferredInit);  // the name that TORCH_LIBRARY_IMPL is given below

using Work = CatchComposites::Work;

struct Composite {
  const char* name;
  Work work;
};

constexpr std::array composites{
    Composite{"aten::tensor_split.tensor_indices_or_sections", Work::looks},
    Composite{"aten::_pad_packed_sequence", Work::looks},
    Composite{"aten::_pack_padded_sequence_backward", Work::looks},
    Composite{"aten::lstm.data", Work::looks},
    Composite{"aten::gru.data", Work::looks},
    Composite{"aten::rnn_tanh.data", Work::looks},
    Composite{"aten::rnn_relu.data", Work::looks},
    Composite{"aten::ctc_loss.Tensor", Work::looks},
    Composite{"aten::_reshape_from_tensor", Work::looks},
    Composite{"aten::matmul.out", Work::compares},
    Composite{"aten::_cudnn_rnn", Work::packs},
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

/// What they read themselves has to be there.
void catch_composite(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys_under(kCompositesKey, keys);
  Session* session = current_session();
  if (session == nullptr) return op.redispatchBoxed(below, stack);
  const Work work = composite(op.operator_name()).work;
  const bool packs_now = work == Work::packs && at::autocast::is_autocast_enabled(at::kCUDA);
  if (work == Work::compares || packs_now) return session->call_whole(op, below, stack);
  if (work == Work::packs) return op.redispatchBoxed(below, stack);
  session->wait_for(torch::jit::last(*stack, op.schema().arguments().size()));
  op.redispatchBoxed(below, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, DeferredInit, library) { library.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, DeferredInit, library) {
  for (const Composite& row : composites) {
    library.impl(row.name, torch::CppFunction::makeFromBoxedFunction<&catch_composite>());
  }
}

CatchComposites::CatchComposites() : include_(kCompositesKey) {}

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
