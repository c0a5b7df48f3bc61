#include "frontend/replay/unboxed_hook.h"

#include <ATen/Operators.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <torch/library.h>

#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "frontend/replay/dispatch_hook.h"
#include "frontend/replay/session.h"

/// The hooks see every operator boxed, its arguments copied into a stack of IValues, lists item by item. That takes as
/// long as answering it. Operators that programs call often have kernels here with their C++ signature, for both hooks:
/// what is known is answered from the arguments as they are, the rest goes to the boxed hook.
namespace sinter::frontend {
namespace {

namespace ops = at::_ops;

template <class... Ops>
struct OpList {};

/// One row an operator. Those that take generators, streams or lists of optional tensors cannot stand here.
using Unboxed = OpList<
    // composite
    ops::linear, ops::layer_norm, ops::batch_norm, ops::group_norm, ops::conv1d, ops::conv2d, ops::matmul,
    ops::softmax_int, ops::log_softmax_int, ops::scaled_dot_product_attention, ops::dropout, ops::max_pool2d,
    ops::adaptive_avg_pool2d, ops::reshape, ops::flatten_using_ints, ops::contiguous, ops::to_dtype, ops::chunk,
    ops::narrow, ops::pad, ops::square, ops::type_as, ops::view_as, ops::expand_as, ops::unflatten_int,
    ops::cross_entropy_loss, ops::mse_loss,
    // views and copies
    ops::view, ops::_reshape_alias, ops::_unsafe_view, ops::permute, ops::transpose_int, ops::t, ops::unsqueeze,
    ops::squeeze_dim, ops::select_int, ops::slice_Tensor, ops::expand, ops::split_Tensor, ops::split_with_sizes,
    ops::unbind_int, ops::detach, ops::alias, ops::clone, ops::copy_, ops::_to_copy, ops::cat, ops::stack, ops::roll,
    ops::flip, ops::constant_pad_nd, ops::index_select, ops::gather, ops::embedding, ops::fill__Scalar, ops::zero_,
    ops::zeros_like, ops::ones_like,
    // arithmetic
    ops::add_Tensor, ops::add_Scalar, ops::sub_Tensor, ops::sub_Scalar, ops::rsub_Scalar, ops::mul_Tensor,
    ops::mul_Scalar, ops::div_Tensor, ops::div_Scalar, ops::add__Tensor, ops::sub__Tensor, ops::mul__Tensor,
    ops::mul__Scalar, ops::div__Tensor, ops::addcmul, ops::addcmul_, ops::addcdiv, ops::addcdiv_, ops::neg, ops::abs,
    ops::exp, ops::log, ops::sqrt, ops::sqrt_, ops::rsqrt, ops::reciprocal, ops::pow_Tensor_Scalar, ops::sin, ops::cos,
    ops::clamp, ops::clamp_min, ops::maximum, ops::minimum, ops::where_self, ops::masked_fill_Scalar, ops::eq_Tensor,
    ops::eq_Scalar, ops::ne_Scalar, ops::lt_Scalar, ops::le_Scalar, ops::gt_Scalar, ops::ge_Scalar, ops::logical_not,
    // activations and their gradients
    ops::relu, ops::relu_, ops::gelu, ops::silu, ops::silu_, ops::sigmoid, ops::tanh, ops::leaky_relu, ops::elu,
    ops::hardtanh, ops::hardswish, ops::softplus, ops::threshold_backward, ops::gelu_backward, ops::silu_backward,
    ops::sigmoid_backward, ops::tanh_backward,
    // products, convolutions, norms and their gradients
    ops::mm, ops::bmm, ops::addmm, ops::baddbmm, ops::convolution, ops::convolution_backward, ops::native_layer_norm,
    ops::native_layer_norm_backward, ops::native_batch_norm, ops::native_batch_norm_backward, ops::cudnn_batch_norm,
    ops::cudnn_batch_norm_backward, ops::native_group_norm, ops::native_group_norm_backward, ops::_softmax,
    ops::_softmax_backward_data, ops::_log_softmax, ops::_log_softmax_backward_data, ops::nll_loss_forward,
    ops::nll_loss_backward, ops::embedding_dense_backward,
    // reductions and pooling
    ops::sum, ops::sum_dim_IntList, ops::mean, ops::mean_dim, ops::amax, ops::amin, ops::max_dim, ops::argmax,
    ops::var_correction, ops::cumsum, ops::max_pool2d_with_indices, ops::max_pool2d_with_indices_backward,
    ops::avg_pool2d, ops::avg_pool2d_backward, ops::_adaptive_avg_pool2d, ops::_adaptive_avg_pool2d_backward>;

/// Turns what a session answers into what an operator of this type gives. `arguments` are those of the call: an
/// operator that writes gives its first one.
template <class Result, class First>
Result result_of(Session::Answer& answer, First&& first) {
  if constexpr (std::is_reference_v<Result>) {
    static_assert(std::is_same_v<Result, First>, "an operator that gives another argument than its first one");
    return first;
  } else if constexpr (std::is_same_v<Result, at::Tensor>) {
    return std::move(answer[0]).toTensor();
  } else if constexpr (std::is_same_v<Result, std::vector<at::Tensor>>) {
    return std::move(answer[0]).toTensorVector();
  } else {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return Result(std::move(answer[i]).toTensor()...);
    }(std::make_index_sequence<std::tuple_size_v<Result>>());
  }
}

enum class Hook : uint8_t { above_autograd, under_autograd };

template <class Op, class Signature = typename Op::schema>
struct Kernel;

template <class Op, class Result, class First, class... Others>
struct Kernel<Op, Result(First, Others...)> {
  static const c10::OperatorHandle& handle() {
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
    return op;
  }
  static bool is_answered(Hook hook, c10::DispatchKeySet keys, CallArguments arguments, Session::Answer& answer) {
    Session* session = current_session();
    if (session == nullptr) return false;
    if (hook == Hook::under_autograd) return session->answer(handle(), arguments, answer);
    return session->answer_above_autograd(handle(), keys_under(kAboveAutogradKey, keys), arguments, answer);
  }
  template <Hook hook>
  static Result call(c10::DispatchKeySet keys, First first, Others... others) {
    using Boxed = c10::impl::BoxedKernelWrapper<Result(First, Others...)>;
    Session::Answer answer;
    const std::array arguments{argument_of(first), argument_of(others)...};
    if (is_answered(hook, keys, arguments, answer)) return result_of<Result, First>(answer, std::forward<First>(first));
    const auto meet = hook == Hook::above_autograd ? c10::BoxedKernel::makeFromFunction<&meet_operator_above_autograd>()
                                                   : c10::BoxedKernel::makeFromFunction<&meet_operator>();
    return Boxed::call(meet, handle(), keys, std::forward<First>(first), std::forward<Others>(others)...);
  }
};

template <class Op>
std::string name_of() {
  const std::string overload = Op::overload_name;
  return Op::name + (overload.empty() ? "" : "." + overload);
}

template <Hook hook, class... Ops>
void implement_all(torch::Library& library, OpList<Ops...> /*all*/) {
  const auto implement = [&](const std::string& name, auto* kernel) {
    library.impl(name.c_str(), torch::CppFunction::makeFromUnboxedFunction(kernel));
  };
  (implement(name_of<Ops>(), &Kernel<Ops>::template call<hook>), ...);
}

template <class... Ops>
std::vector<std::string> names_of(OpList<Ops...> /*all*/) {
  return {name_of<Ops>()...};
}

TORCH_LIBRARY_IMPL(aten, TESTING_ONLY_GenericMode, library) { implement_all<Hook::above_autograd>(library, Unboxed()); }
TORCH_LIBRARY_IMPL(aten, Fake, library) { implement_all<Hook::under_autograd>(library, Unboxed()); }

}  // namespace

std::vector<std::string> unboxed_operators() { return names_of(Unboxed()); }

}  // namespace sinter::frontend
