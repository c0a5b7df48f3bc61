#include "frontend/execute/host_torch.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdint>
#include <variant>

#include "compiler/passes/aten.h"
#include "compiler/support/errors.h"
#include "frontend/execute/cpu_libraries.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/cuda.h"
#include "runtime/llvm_jit.h"

namespace sinter::frontend {
namespace {

c10::DeviceIndex index_of(ir::Device device) { return static_cast<c10::DeviceIndex>(device.index); }

}  // namespace

TorchHost::TorchHost(std::shared_ptr<const Plan> plan, const std::vector<c10::IValue>& opaques)
    : layout_(std::make_shared<const FrameLayout>(std::move(plan), opaques)) {
  for (const c10::IValue& opaque : opaques) {
    if (opaque.isGenerator()) generators_.push_back(opaque.toGenerator());
  }
}

std::unique_ptr<TorchFrame> TorchHost::make_torch_frame() const { return std::make_unique<TorchFrame>(layout_); }

std::vector<ChoiceRecord> TorchHost::choices() const {
  std::vector<ChoiceRecord> choices;
  for (const auto& call : layout_->calls) {
    const auto* product = std::get_if<ProductCall>(&call);
    auto choice = product == nullptr ? std::nullopt : product->choice();
    if (!choice) continue;
    const auto known = std::ranges::find_if(choices, [&](const ChoiceRecord& other) {
      return other.problem == choice->problem && other.chosen == choice->chosen && other.origin == choice->origin;
    });
    if (known == choices.end()) {
      choices.push_back(*std::move(choice));
    } else {
      ++known->calls;
    }
  }
  return choices;
}

std::unique_ptr<runtime::Frame> TorchHost::make_frame(const Plan& plan) {
  if (&plan != layout_->plan.get()) throw InternalError("host", "a frame was asked for a plan of another entry");
  return make_torch_frame();
}

void* TorchHost::current_stream(ir::Device device) { return cuda::current_stream(index_of(device)); }

/// `at::parallel_for` is a template that runs on LibTorch's threads only in code compiled with OpenMP, and then on
/// those of whatever OpenMP that is. An iterator's loop is LibTorch's own code: it goes over `count` bytes, which only
/// tell where it is.
void TorchHost::parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= grain || at::in_parallel_region() || at::get_num_threads() == 1) return body(0, count);
  static uint8_t first = 0;
  const at::Tensor places = at::from_blob(&first, {count}, at::kByte);
  at::TensorIterator iterator = at::TensorIteratorConfig().set_check_mem_overlap(false).add_const_input(places).build();
  iterator.for_each(
      [&](char** place, const int64_t* /*strides*/, int64_t size, int64_t rows) {
        const auto begin =
            static_cast<int64_t>(reinterpret_cast<uintptr_t>(*place) - reinterpret_cast<uintptr_t>(&first));
        body(begin, begin + size * rows);
      },
      grain);
}

std::unique_ptr<runtime::Host::Recording> TorchHost::record(ir::Device device,
                                                            const std::optional<PoolRequest>& request) {
  return cuda::record(index_of(device), request);
}

void TorchHost::release_pool(ir::Device device, uint64_t pool) { cuda::release_pool(index_of(device), pool); }

std::unique_ptr<runtime::Host::Draws> TorchHost::draws(ir::Device device) {
  return cuda::make_graph_generators(index_of(device), generators_);
}

std::optional<c10::Device> device_to_set(const Plan& plan) {
  if (plan.backend != Backend::cuda) return std::nullopt;
  return device_of(plan.device);
}

DeviceInfo device_info(const ir::Graph& graph) {
  if (graph.device.kind == ir::Device::Kind::cuda) return cuda::device_info(index_of(graph.device));
  return {.backend = Backend::llvm,
          .vector_bits = runtime::host_vector_bits(),
          .onednn = has_onednn(),
          .onednn_products = passes::may_multiply(graph) && multiplies_faster_with_onednn(),
          .channels_last_float = has_onednn()};
}

}  // namespace sinter::frontend
