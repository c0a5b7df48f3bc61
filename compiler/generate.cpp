#include "compiler/generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "compiler/codegen/cuda.h"
#include "compiler/codegen/cuda_attention.h"
#include "compiler/codegen/llvm.h"
#include "compiler/ir/print.h"
#include "compiler/kernel/attention.h"
#include "compiler/kernel/lower.h"
#include "compiler/kernel/print.h"
#include "compiler/kernel/verify.h"
#include "compiler/passes/deciding.h"
#include "compiler/support/dump.h"
#include "compiler/support/errors.h"
#include "compiler/support/fault.h"

namespace sinter {
namespace {

using namespace ir;

constexpr int64_t cuda_alignment = 256;  ///< of fresh memory
constexpr int64_t cpu_alignment = 64;

int64_t at_index(const std::vector<int64_t>& alignments, const Buffer& buffer) {
  return buffer.index < alignments.size() ? alignments[buffer.index] : buffer.alignment;
}

/// Bytes that the address of a buffer should be a multiple of, by what guards, LibTorch's allocators and the capture
/// say. A kernel that relies on it says so (KernelSource::params), and every launch checks it.
int64_t alignment_of(const Plan& plan, BufferId id, const CompileOptions& options) {
  const Buffer& buffer = plan.buffers[id.index];
  const int64_t fresh = plan.device.kind == Device::Kind::cuda ? cuda_alignment : cpu_alignment;
  switch (buffer.kind) {
    case BufferKind::input:
      return at_index(options.input_alignment, buffer);
    case BufferKind::state:
      return at_index(options.state_alignment, buffer);
    case BufferKind::arena:
      return std::gcd(fresh, buffer.offset);
    case BufferKind::output:
      return fresh;
    case BufferKind::in_place:
      return alignment_of(plan, buffer.base, options);
    case BufferKind::view:
      return std::gcd(alignment_of(plan, buffer.base, options), buffer.offset * bytes_of(buffer.type.dtype));
    case BufferKind::result:
    case BufferKind::frozen:
      return buffer.alignment;
  }
  return buffer.alignment;
}

void add_distinct(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

std::string join(const std::vector<std::string>& list, std::string_view separator) {
  std::string text;
  for (const std::string& item : list) text += (text.empty() ? "" : std::string(separator)) + item;
  return text;
}

/// What a kernel stands for.
struct Origin {
  std::vector<std::string> ops;
  std::vector<std::string> modules;
  std::vector<std::string> sources;

  explicit Origin(const Graph& body) {
    for (NodeId id : body.order()) {
      const Node& node = body.node(id);
      if (is_computed(node) || node.as<Attention>() != nullptr) ops.emplace_back(computed_name(node));
      if (!node.scope.valid()) continue;
      add_distinct(modules, body.scope(node.scope).module);
      add_distinct(sources, body.scope(node.scope).source);
    }
  }
};

std::vector<std::string> comment(const Fused& fused, const Origin& origin) {
  const Graph& body = *fused.body;
  std::string title = fused.name + ": " + join(origin.modules, ", ");
  if (!origin.sources.empty()) title += "  [" + join(origin.sources, ", ") + "]";
  std::vector<std::string> reads;
  for (NodeId id : body.order()) {
    if (body.node(id).as<Input>()) reads.push_back(to_string(body.type(body.node(id).results[0]), body.device));
  }
  std::vector<std::string> writes;
  for (ValueId output : body.outputs) writes.push_back(to_string(body.type(output), body.device));
  return {title, join(reads, ", ") + " -> " + join(writes, ", ")};
}

/// The fault "lost_op": outputs that are the value of an operation become that operation's first operand.
Graph without_last_op(Graph body) {
  for (ValueId& output : body.outputs) {
    const Node& node = body.producer(output);
    if (!node.as<Primitive>() || node.args.empty()) continue;
    const auto* operand = node.args[0].value();
    if (operand != nullptr && body.type(*operand) == body.type(output)) output = *operand;
  }
  return body;
}

/// Text of the kernels of one plan; the second of two equal ones is the first.
class Generator {
 public:
  Generator(const Graph& graph, passes::PlannedMemory planned, const CompileOptions& options)
      : graph_(graph), planned_(std::move(planned)), options_(options), deciding_(passes::deciding_values(graph)) {}

  Plan run() {
    for (std::vector<Step>* steps : {&planned_.plan.once, &planned_.plan.steps}) {
      for (Step& step : *steps) {
        if (auto* launch = std::get_if<Launch>(&step)) launch->kernel = kernel_of(*launch);
      }
    }
    return std::move(planned_.plan);
  }

 private:
  uint32_t kernel_of(const Launch& launch) {
    const passes::PlannedKernel& use = planned_.kernels[launch.kernel];
    const Node& node = graph_.node(use.node);
    const bool decides = std::ranges::any_of(node.results, [&](ValueId result) { return deciding_[result.index]; });
    const bool half_accuracy = options_.numerics == Numerics::fast && !decides;
    KernelSource source = generate(*node.as<Fused>(), launch, use.in_place, half_accuracy);
    auto& plan = planned_.plan;
    const auto next = static_cast<uint32_t>(plan.kernels.size());
    const auto [known, added] = known_.try_emplace(identity(source), next);
    if (added) {
      plan.kernels.push_back(std::move(source));
    } else {
      add_origin(source, plan.kernels[known->second]);
    }
    return known->second;
  }

  /// A kernel that several launches share serves the modules of all of them.
  static void add_origin(const KernelSource& other, KernelSource& shared) {
    for (const std::string& module : other.modules) add_distinct(shared.modules, module);
    for (const std::string& place : other.sources) add_distinct(shared.sources, place);
  }

  /// What makes two launches the same kernel: the text, and the geometry it is launched with.
  static std::string identity(const KernelSource& source) {
    return fmt::format("{} {} {} {} {} {} {} {} {} {}\n{}", source.numel, source.row_points, source.granule,
                       source.grid[0], source.grid[1], source.grid[2], source.block[0], source.block[1],
                       source.block[2], fmt::join(source.sizes, ","), source.text);
  }

  KernelSource generate(const Fused& fused, const Launch& launch, const std::vector<bool>& in_place,
                        bool half_accuracy) {
    try {
      const Origin origin(*fused.body);
      if (auto attention = kernel::attention_of(*fused.body, fused.name)) {
        tell_params(attention->params, launch, in_place);
        attention->comment = comment(fused, origin);
        return finished(codegen::generate_cuda(*attention), origin);
      }
      const Faults& faults = Faults::environment();
      kernel::Kernel kernel =
          kernel::lower(faults.planted("lost_op") ? without_last_op(*fused.body) : *fused.body, fused.name);
      tell_params(kernel.params, launch, in_place);
      kernel.comment = comment(fused, origin);
      kernel.half_accuracy = half_accuracy;
      kernel.generic_sizes = options_.generic_sizes;
      kernel::require(kernel, "lower");
      Dump::environment().write("kernel", fused.name, kernel::print(kernel));
      return finished(
          is_cuda() ? codegen::generate_cuda(kernel, options_.device) : codegen::generate_llvm(kernel, options_.device),
          origin);
    } catch (const std::exception& error) {
      throw InternalError("codegen", fused.name + ": " + error.what(),
                          save_artifact(fused.name, "ir", print(*fused.body)));
    }
  }

  [[nodiscard]] bool is_cuda() const { return planned_.plan.backend == Backend::cuda; }

  /// What the plan knows of the memory behind a kernel's parameters.
  void tell_params(std::vector<kernel::Param>& params, const Launch& launch, const std::vector<bool>& in_place) const {
    for (size_t i = 0; i < params.size(); ++i) {
      params[i].in_place = in_place.at(i);
      params[i].alignment = alignment_of(planned_.plan, launch.args.at(i).buffer, options_);
    }
  }

  [[nodiscard]] KernelSource finished(KernelSource source, const Origin& origin) const {
    if (Faults::environment().planted("kernel_text")) source.text += "this line was planted by SINTER_FAULT\n";
    source.ops = origin.ops;
    source.modules = origin.modules;
    source.sources = origin.sources;
    Dump::environment().write(is_cuda() ? "cuda" : "llvm", source.name, source.comment + source.text);
    return source;
  }

  const Graph& graph_;
  passes::PlannedMemory planned_;
  const CompileOptions& options_;
  std::vector<bool> deciding_;                       ///< by value
  std::unordered_map<std::string, uint32_t> known_;  ///< by identity
};

}  // namespace

Plan generate_kernels(const Graph& graph, passes::PlannedMemory planned, const CompileOptions& options) {
  return Generator(graph, std::move(planned), options).run();
}

}  // namespace sinter
