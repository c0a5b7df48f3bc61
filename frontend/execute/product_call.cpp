#include "frontend/execute/product_call.h"

#include <ATen/Context.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mm.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>
#include <string>
#include <utility>

#include "compiler/passes/library_product.h"
#include "compiler/support/errors.h"
#include "frontend/execute/below_autograd.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/cuda.h"
#include "runtime/product_library.h"

namespace sinter::frontend {
namespace {

using runtime::PartialSums;
using runtime::ProductActivation;
using runtime::ProductAlgorithm;
using runtime::ProductOperand;
using runtime::ProductProblem;

/// Bytes beyond which it makes no difference to a kernel what more an address is a multiple of.
constexpr uint64_t most_alignment = 16;

std::optional<uint32_t> buffer_of(std::optional<ir::ValueId> value) {
  return value ? std::optional(value->index) : std::nullopt;
}

/// The last two dims of an operand as lines; nothing where neither of them lies line by line.
std::optional<ProductOperand> layout_of(const at::Tensor& tensor) {
  const int64_t height = tensor.size(-2), width = tensor.size(-1);
  const int64_t down = tensor.stride(-2), along = tensor.stride(-1);
  const int64_t matrix = tensor.dim() == 3 ? tensor.stride(0) : 0;
  // A dim of one element may have any stride.
  const auto lies = [](int64_t within, int64_t length, int64_t between, int64_t lines) {
    return (within == 1 || length == 1) && (between >= length || lines == 1);
  };
  if (lies(along, width, down, height)) return ProductOperand{false, height == 1 ? width : down, matrix};
  if (lies(down, height, along, width)) return ProductOperand{true, width == 1 ? height : along, matrix};
  return std::nullopt;
}

/// Where an operand lies; what lies in no lines is copied, and lies in some then.
ProductOperand in_lines(at::Tensor& tensor) {
  if (const auto layout = layout_of(tensor)) return *layout;
  tensor = tensor.contiguous();
  return *layout_of(tensor);
}

PartialSums partial_sums(at::ScalarType dtype) {
  const auto allowed = dtype == at::kHalf ? at::globalContext().allowFP16ReductionCuBLAS()
                                          : at::globalContext().allowBF16ReductionCuBLAS();
  switch (allowed) {
    case at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK:
      return PartialSums::rounded;
    case at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK:
      return PartialSums::f32;
    case at::CuBLASReductionOption::DisallowReducedPrecisionDisallowSplitK:
      break;
  }
  return PartialSums::none;
}

/// Null for none.
const void* address_of(const std::optional<at::Tensor>& tensor) { return tensor ? tensor->const_data_ptr() : nullptr; }

/// Bytes that all addresses are multiples of; those of new memory are of more.
int64_t common_alignment(std::initializer_list<const void*> addresses) {
  uint64_t bits = most_alignment;
  for (const void* address : addresses) bits |= reinterpret_cast<uint64_t>(address);
  return int64_t{1} << std::countr_zero(bits);
}

}  // namespace

ProductCall::ProductCall(const ExternCall& call) {
  const auto product = passes::library_product_of(call.op, call.args);
  if (!product) throw InternalError("product", call.op + " has not the arguments of its call");
  left_ = product->left.index;
  right_ = product->right.index;
  bias_ = buffer_of(product->bias);
  summand_ = buffer_of(product->summand);
  const auto activation = std::ranges::find(passes::library_activations, product->activation);
  activation_ = static_cast<ProductActivation>(activation - passes::library_activations.begin());
  seconds_ = product->seconds;
}

void ProductCall::run(const std::vector<at::Tensor>& buffers, torch::jit::Stack& stack) const {
  const BelowAutograd below;
  RECORD_FUNCTION("sinter::product", std::vector<c10::IValue>());  // profilers see it beside LibTorch's operators
  Operands operands{buffers[left_], buffers[right_], std::nullopt, std::nullopt};
  if (bias_) operands.bias = buffers[*bias_];
  if (summand_) operands.summand = buffers[*summand_];
  stack.assign(1, c10::IValue(compute(std::move(operands))));
}

at::Tensor ProductCall::compute(Operands operands) const {
  if (!runtime::product_library::is_there()) return by_libtorch(operands);
  const auto problem = problem_of(operands);
  if (!problem) return by_libtorch(operands);
  const auto chosen = choose(*problem, operands);
  const auto& algorithm = chosen->choice->algorithm;
  auto result = algorithm ? by_library(*problem, *algorithm, operands) : std::nullopt;
  return result ? *std::move(result) : by_libtorch(operands);
}

at::Tensor ProductCall::by_libtorch(const Operands& operands) const {
  at::Tensor result = operands.bias              ? at::addmm(*operands.bias, operands.left, operands.right)
                      : operands.left.dim() == 3 ? at::bmm(operands.left, operands.right)
                                                 : at::mm(operands.left, operands.right);
  if (operands.summand) result.add_(*operands.summand);
  if (activation_ == ProductActivation::relu) result.relu_();
  if (activation_ == ProductActivation::gelu_tanh) result = at::gelu(result, "tanh");
  return result;
}

std::optional<at::Tensor> ProductCall::by_library(const ProductProblem& problem, const ProductAlgorithm& algorithm,
                                                  const Operands& operands) {
  const c10::Device device = operands.left.device();
  const std::array<int64_t, 3> sizes{problem.batch, problem.rows, problem.columns};
  const std::array<int64_t, 3> strides{problem.rows * problem.columns, problem.columns, 1};
  const size_t first = operands.left.dim() == 3 ? 0 : 1;
  at::Tensor result = cuda::empty_strided(c10::IntArrayRef(sizes).slice(first), c10::IntArrayRef(strides).slice(first),
                                          operands.left.scalar_type(), device);
  const int64_t stride = 1;
  const at::Tensor workspace = cuda::empty_strided(algorithm.workspace_bytes, stride, at::kByte, device);
  const runtime::ProductAddresses addresses{.left = operands.left.const_data_ptr(),
                                            .right = operands.right.const_data_ptr(),
                                            .bias = address_of(operands.bias),
                                            .summand = address_of(operands.summand),
                                            .result = result.mutable_data_ptr()};
  const bool runs = runtime::product_library::run(problem, algorithm, addresses, workspace.mutable_data_ptr(),
                                                  cuda::current_stream(device.index()));
  return runs ? std::optional(std::move(result)) : std::nullopt;
}

std::shared_ptr<const ProductCall::Chosen> ProductCall::choose(const ProductProblem& problem,
                                                               const Operands& operands) const {
  auto last = last_->chosen.load();
  if (last != nullptr && last->problem == problem) return last;
  const runtime::ProductTrial trial{.seconds = seconds_,
                                    .stream = cuda::current_stream(operands.left.device().index()),
                                    .compute = [&](const ProductAlgorithm* algorithm) {
                                      if (algorithm != nullptr) {
                                        return by_library(problem, *algorithm, operands).has_value();
                                      }
                                      static_cast<void>(by_libtorch(operands));
                                      return true;
                                    }};
  auto choice = runtime::ProductChoices::process().choose(problem, trial);
  auto chosen = std::make_shared<const Chosen>(Chosen{problem, std::move(choice)});
  // A guess that was made only because the stream is being recorded may be measured by a later run.
  if (!(seconds_ > 0) || !chosen->choice->measured.empty()) last_->chosen.store(chosen);
  return chosen;
}

std::optional<ProductProblem> ProductCall::problem_of(Operands& operands) const {
  const ProductOperand left_lines = in_lines(operands.left), right_lines = in_lines(operands.right);
  const at::Tensor& left = operands.left;
  const bool batched = left.dim() == 3;
  const ProductProblem problem{
      .dtype = dtype_of(left.scalar_type()),
      .batch = batched ? left.size(0) : 1,
      .rows = left.size(-2),
      .columns = operands.right.size(-1),
      .terms = left.size(-1),
      .left = left_lines,
      .right = right_lines,
      .bias = operands.bias.has_value(),
      .summand = operands.summand.has_value(),
      .activation = activation_,
      .sums = partial_sums(left.scalar_type()),
      .alignment = common_alignment({left.const_data_ptr(), operands.right.const_data_ptr(), address_of(operands.bias),
                                     address_of(operands.summand)}),
  };
  const bool empty = problem.batch == 0 || problem.rows == 0 || problem.columns == 0 || problem.terms == 0;
  return empty ? std::nullopt : std::optional(problem);
}

std::optional<ChoiceRecord> ProductCall::choice() const {
  const auto chosen = last_->chosen.load();
  if (chosen == nullptr) return std::nullopt;
  const runtime::ProductChoice& choice = *chosen->choice;
  return ChoiceRecord{runtime::to_string(chosen->problem), choice.name, choice.origin, 1, choice.measured};
}

}  // namespace sinter::frontend
