#include "frontend/execute/frame_torch.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/as_strided.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "compiler/passes/library_product.h"
#include "compiler/support/errors.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/cuda.h"
#include "frontend/torch/read_as.h"
#include "frontend/torch/tensor_memory.h"
#include "runtime/graph_layout.h"

namespace sinter::frontend {
namespace {

BufferShape shape_of(const Buffer& buffer) {
  const auto dtype = scalar_type_of(buffer.type.dtype);
  BufferShape shape{.kind = buffer.kind,
                    .index = buffer.index,
                    .offset = buffer.offset,
                    .base = buffer.base.index,
                    .known_dtype = dtype.has_value(),
                    .device = device_of(buffer.type.device),
                    .sizes = buffer.type.static_sizes(),
                    .strides = buffer.type.static_strides()};
  if (dtype) shape.dtype = *dtype;
  shape.element_bytes = dtype ? static_cast<int64_t>(c10::elementSize(*dtype)) : 0;
  return shape;
}

bool is_derived(BufferKind kind) { return kind == BufferKind::view || kind == BufferKind::in_place; }

bool lies_in_arena(const std::vector<BufferShape>& buffers, uint32_t index) {
  while (is_derived(buffers[index].kind)) index = buffers[index].base;
  return buffers[index].kind == BufferKind::arena;
}

/// Asks the kernel to back large fresh CPU memory with huge pages before its first touch: faulting 4 KiB pages costs
/// more than the kernel that writes them.
void prefer_huge_pages(const at::Tensor& tensor) {
  constexpr uintptr_t huge = uintptr_t{2} << 20;
  constexpr size_t least = size_t{8} << 20;
  if (tensor.storage().nbytes() < least) return;
  const auto begin = reinterpret_cast<uintptr_t>(tensor.storage().mutable_data());
  const uintptr_t first = (begin + huge - 1) / huge * huge;
  const uintptr_t last = (begin + tensor.storage().nbytes()) / huge * huge;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

at::Tensor empty(const BufferShape& shape) {
  if (!shape.known_dtype) throw InternalError("allocate", "a buffer of a dtype without a name");
  if (shape.device.is_cuda()) {
    return cuda::empty_strided(shape.sizes, shape.strides, shape.dtype, shape.device);
  }
  at::Tensor tensor(at::detail::empty_strided_cpu(shape.sizes, shape.strides, shape.dtype));
  prefer_huge_pages(tensor);
  return tensor;
}

/// A tensor over memory that another tensor holds. `offset` counts elements of the new tensor's dtype.
at::Tensor over(const c10::Storage& storage, const BufferShape& shape, at::ScalarType dtype, int64_t offset) {
  const auto key = shape.device.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key),
                                                         c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(shape.sizes, shape.strides, offset);
  return tensor;
}

bool same_layout(const BufferShape& a, const BufferShape& b) {
  return a.known_dtype && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides;
}

/// Strides of dims with fewer than two elements say nothing.
bool strides_agree(const BufferShape& shape, c10::IntArrayRef strides) {
  if (strides == c10::IntArrayRef(shape.strides)) return true;
  for (const auto size : shape.sizes) {
    if (size == 0) return true;
  }
  for (size_t i = 0; i < shape.sizes.size(); ++i) {
    if (shape.sizes[i] > 1 && shape.strides[i] != strides[i]) return false;
  }
  return true;
}

/// What a library keeps in an order of its own, for itself to read: a tensor without memory that others know.
bool is_packed(const BufferShape& shape, const at::Tensor& tensor) {
  return !shape.known_dtype && tensor.layout() == c10::kMkldnn;
}

/// The same elements, perhaps in another order in memory.
bool agrees(const BufferShape& shape, const at::Tensor& tensor) {
  return (!shape.known_dtype || tensor.scalar_type() == shape.dtype) && tensor.device() == shape.device &&
         tensor.layout() == c10::kStrided && tensor.sizes() == c10::IntArrayRef(shape.sizes);
}

/// What cuDNN's batch norm keeps for its backward pass: bytes that nobody else reads, as many as the layout of the
/// image wants, which choose_layouts may have changed.
bool is_reserve(const ExternCall& call, size_t position) {
  constexpr size_t reserve = 3;
  return position == reserve && call.op == "aten::cudnn_batch_norm";
}

template <class Number>
Number scalar(const BufferShape& shape, const void* data) {
  switch (shape.dtype) {
    case at::kDouble:
      return static_cast<Number>(*static_cast<const double*>(data));
    case at::kFloat:
      return static_cast<Number>(*static_cast<const float*>(data));
    case at::kHalf:
      return static_cast<Number>(static_cast<float>(*static_cast<const c10::Half*>(data)));
    case at::kBFloat16:
      return static_cast<Number>(static_cast<float>(*static_cast<const c10::BFloat16*>(data)));
    case at::kLong:
      return static_cast<Number>(*static_cast<const int64_t*>(data));
    case at::kInt:
      return static_cast<Number>(*static_cast<const int32_t*>(data));
    case at::kShort:
      return static_cast<Number>(*static_cast<const int16_t*>(data));
    case at::kChar:
      return static_cast<Number>(*static_cast<const int8_t*>(data));
    case at::kByte:
      return static_cast<Number>(*static_cast<const uint8_t*>(data));
    case at::kBool:
      return static_cast<Number>(*static_cast<const bool*>(data));
    default:
      throw InternalError("scalar", "a kernel reads a scalar of a dtype that kernels do not compute in");
  }
}

/// Marks the buffers that something reads as a tensor, not only by address.
void mark_needs(const Plan& plan, std::vector<BufferShape>& buffers) {
  for (const auto& call : plan.calls) {
    for (const auto& arg : call.args) {
      ir::for_each_value(arg, [&buffers](ir::ValueId value) { buffers[value.index].needs_tensor = true; });
    }
  }
  for (const auto output : plan.outputs) buffers[output.index].needs_tensor = true;
  for (size_t i = buffers.size(); i-- > 0;) {
    if (is_derived(buffers[i].kind)) buffers[buffers[i].base].needs_tensor = true;
  }
}

}  // namespace

FrameLayout::FrameLayout(std::shared_ptr<const Plan> source, const std::vector<c10::IValue>& opaques)
    : plan(std::move(source)) {
  for (const auto& buffer : plan->buffers) buffers.push_back(shape_of(buffer));
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    buffers[i].in_arena = lies_in_arena(buffers, i);
    if (buffers[i].kind == BufferKind::input) {
      inputs.resize(std::max<size_t>(inputs.size(), buffers[i].index + 1));
      inputs[buffers[i].index] = i;
    }
    if (buffers[i].kind == BufferKind::state) states.push_back(i);
    if (buffers[i].kind == BufferKind::arena) arena.push_back(i);
  }
  mark_needs(*plan, buffers);
  for (const auto& call : plan->calls) {
    if (call.op == passes::library_product) {
      calls.emplace_back(std::in_place_type<ProductCall>, call);
    } else {
      calls.emplace_back(std::in_place_type<PreparedCall>, call, opaques);
    }
    auto& read = inputs_of_calls.emplace_back();
    for (const ir::Arg& arg : call.args) {
      ir::for_each_value(arg, [&](ir::ValueId value) {
        if (buffers[value.index].kind == BufferKind::input) read.push_back(value.index);
      });
    }
  }
}

TorchFrame::TorchFrame(std::shared_ptr<const FrameLayout> layout)
    : layout_(std::move(layout)), tensors_(layout_->buffers.size()), data_(layout_->buffers.size()) {}

void TorchFrame::bind_arguments(std::span<const InputMemory> inputs, std::span<const at::Tensor> states) {
  memories_.assign(inputs.begin(), inputs.end());
  for (uint32_t i = 0; i < layout_->inputs.size(); ++i) set_address(i, inputs[i]);
  bind_states(states);
}

void TorchFrame::bind_states(std::span<const at::Tensor> states) {
  for (const auto buffer : layout_->states) set(buffer, states[layout_->buffers[buffer].index]);
}

void TorchFrame::bind_input(uint32_t index, const InputMemory& memory) {
  if (memories_.size() <= index) memories_.resize(index + 1);
  memories_[index] = memory;
  if (index < layout_->inputs.size()) set_address(index, memory);
}

void TorchFrame::set_address(uint32_t input, const InputMemory& memory) {
  const auto buffer = layout_->inputs[input];
  if (!buffer) return;
  auto* const base = static_cast<char*>(const_cast<void*>(memory.storage->data()));
  const auto element_bytes = static_cast<int64_t>(c10::elementSize(memory.dtype));
  data_[*buffer] = base == nullptr ? nullptr : base + memory.offset * element_bytes;
}

void TorchFrame::make_input(uint32_t buffer) const {
  const BufferShape& shape = layout_->buffers[buffer];
  if (shape.kind != BufferKind::input || tensors_[buffer].defined()) return;
  const InputMemory& memory = memories_[shape.index];
  tensors_[buffer] = over(*memory.storage, shape, memory.dtype, memory.offset);
}

void TorchFrame::clear() {
  stack_.clear();  // what a call that threw was given
  for (auto& tensor : tensors_) tensor.reset();
  memories_.clear();
  writing_ = false;
  release_arena();
}

const at::Tensor& TorchFrame::tensor(BufferId buffer) {
  auto& tensor = tensors_[buffer.index];
  const auto& shape = layout_->buffers[buffer.index];
  if (!tensor.defined() && shape.in_arena) tensor = over_arena(shape, data_[buffer.index]);
  make_input(buffer.index);
  return tensor;
}

void TorchFrame::set(uint32_t buffer, at::Tensor tensor) {
  data_[buffer] = reinterpret_cast<void*>(address_of(*tensor.unsafeGetTensorImpl()));
  tensors_[buffer] = std::move(tensor);
}

double TorchFrame::scalar_f64(BufferId buffer) const {
  return scalar<double>(layout_->buffers[buffer.index], data_[buffer.index]);
}

int64_t TorchFrame::scalar_i64(BufferId buffer) const {
  return scalar<int64_t>(layout_->buffers[buffer.index], data_[buffer.index]);
}

void TorchFrame::allocate(BufferId buffer) { set(buffer.index, empty(layout_->buffers[buffer.index])); }

at::Tensor TorchFrame::bytes_on_device(int64_t bytes) const {
  const auto device = device_of(layout_->plan->device);
  const int64_t stride = 1;
  return device.is_cuda() ? cuda::empty_strided(bytes, stride, at::kByte, device)
                          : at::Tensor(at::detail::empty_strided_cpu(bytes, stride, at::kByte));
}

std::shared_ptr<void> TorchFrame::scratch(int64_t bytes) {
  const auto tensor = std::make_shared<at::Tensor>(bytes_on_device(bytes));
  return {tensor, reinterpret_cast<void*>(address_of(*tensor->unsafeGetTensorImpl()))};
}

void TorchFrame::allocate_arena() {
  const int64_t bytes = layout_->plan->arena_bytes;
  const auto device = device_of(layout_->plan->device);
  if (device.is_cuda() && !layout_->arena_was_made.test_and_set()) cuda::make_room(device.index(), bytes);
  arena_ = bytes_on_device(bytes);
  arena_data_ = reinterpret_cast<void*>(address_of(*arena_.unsafeGetTensorImpl()));
  for (const auto buffer : layout_->arena) {
    data_[buffer] = static_cast<char*>(arena_data_) + layout_->buffers[buffer].offset;
  }
}

void TorchFrame::release_arena() {
  arena_.reset();
  arena_data_ = nullptr;
}

at::Tensor TorchFrame::over_arena(const BufferShape& shape, void* data) const {
  const auto distance = static_cast<const char*>(data) - static_cast<const char*>(arena_data_);
  return over(arena_.storage(), shape, shape.dtype, distance / shape.element_bytes);
}

void TorchFrame::bind(BufferId buffer) {
  const auto index = buffer.index;
  const auto& shape = layout_->buffers[index];
  if (is_derived(shape.kind)) {
    const int64_t distance = shape.kind == BufferKind::view ? shape.offset * shape.element_bytes : 0;
    data_[index] = data_[shape.base] == nullptr ? nullptr : static_cast<char*>(data_[shape.base]) + distance;
  }
  if (shape.in_arena) {
    // Made when somebody asks: most are read by kernels alone.
    tensors_[index].reset();
    if (shape.needs_tensor) tensors_[index] = over_arena(shape, data_[index]);
    return;
  }
  make_input(shape.base);
  const auto& base = tensors_[shape.base];
  if (shape.kind == BufferKind::in_place && same_layout(shape, layout_->buffers[shape.base])) {
    tensors_[index] = base;
    return;
  }
  const auto extra = shape.kind == BufferKind::view ? shape.offset : 0;
  if (!shape.known_dtype) {
    if (layout_->buffers[shape.base].known_dtype) throw InternalError("plan", "a view with a dtype of its own");
    tensors_[index] = at::as_strided(base, shape.sizes, shape.strides, base.storage_offset() + extra);
    return;
  }
  const auto base_bytes = base.storage_offset() * static_cast<int64_t>(base.itemsize());
  tensors_[index] = over(base.storage(), shape, shape.dtype, base_bytes / shape.element_bytes + extra);
}

void TorchFrame::lend(BufferId buffer, void* address) {
  const BufferShape& shape = layout_->buffers[buffer.index];
  const size_t bytes =
      at::detail::computeStorageNbytes(shape.sizes, shape.strides, static_cast<size_t>(shape.element_bytes));
  const c10::Storage memory(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(address, shape.device));
  set(buffer.index, over(memory, shape, shape.dtype, 0));
}

void TorchFrame::release(BufferId buffer) { tensors_[buffer.index].reset(); }

void TorchFrame::share(BufferId buffer, const Frame& other, BufferId other_buffer) {
  const auto& source = static_cast<const TorchFrame&>(other);
  source.make_input(other_buffer.index);
  tensors_[buffer.index] = source.tensors_[other_buffer.index];
  data_[buffer.index] = source.data_[other_buffer.index];
}

void TorchFrame::call(uint32_t call) {
  for (const uint32_t input : layout_->inputs_of_calls[call]) make_input(input);
  std::visit([this](const auto& prepared) { prepared.run(tensors_, stack_); }, layout_->calls[call]);
  const ExternCall& source = layout_->plan->calls[call];
  size_t position = 0;
  for (const auto& result : stack_) {
    if (result.isTensor()) {
      if (result.toTensor().defined()) set_result(source, position++, result.toTensor());
    } else if (result.isTensorList()) {
      for (const at::Tensor& tensor : result.toTensorVector()) set_result(source, position++, tensor);
    }
  }
  stack_.clear();
  for (; position < source.results.size(); ++position) {
    if (!source.results[position].valid()) continue;
    throw InternalError("extern call", source.op + " returned fewer tensors than when it was recorded");
  }
}

bool TorchFrame::is_view_of_operand(const ExternCall& call, const at::Tensor& result) const {
  return std::ranges::any_of(call.args, [&](const ir::Arg& arg) {
    const ir::ValueId* value = arg.value();
    return value != nullptr && tensors_[value->index].defined() && tensors_[value->index].is_alias_of(result);
  });
}

void TorchFrame::set_result(const ExternCall& call, size_t position, const at::Tensor& tensor) {
  if (position >= call.results.size() || !call.results[position].valid()) return;
  const auto index = call.results[position].index;
  const auto& shape = layout_->buffers[index];
  if (is_packed(shape, tensor)) {
    tensors_[index] = tensor;
    return;
  }
  // New memory that comes as a conjugated view was recorded as what lies there, and a view of that.
  if (!reading_of(tensor).plain() && !is_view_of_operand(call, tensor))
    return set_result(call, position, plain_view(tensor));
  if (is_reserve(call, position) || runtime::says_what_it_drew(call, position)) {
    set(index, tensor);
    return;
  }
  if (!agrees(shape, tensor)) {
    const auto expected = layout_->plan->buffers[index].type;
    throw InternalError("extern call", fmt::format("{} returned {}, was recorded with {}", call.op,
                                                   ir::to_string(type_of(tensor), expected.device),
                                                   ir::to_string(expected, expected.device)));
  }
  if (strides_agree(shape, tensor.strides())) {
    set(index, tensor);
    return;
  }
  // A library chose another layout than it was seen or expected to choose: right all the same, at the price of a copy.
  const at::Tensor expected_layout = read_as(empty(shape), reading_of(tensor));
  expected_layout.copy_(tensor);
  set(index, expected_layout);
}

}  // namespace sinter::frontend
