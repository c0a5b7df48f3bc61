#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/support/errors.h"
#include "frontend/gradients.h"
#include "frontend/host_read.h"

namespace sinter::frontend {

/// A parameter, buffer or closed-over tensor a program read, held weakly.
struct StateSlot {
  std::string name;  ///< from StateNames, else "closure.N"
  c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
  at::Tensor read_by_host;  ///< a copy, where the program's course depends on what a small CPU tensor holds
  bool named = true;        ///< false: the name is "closure.N"
};

/// A CPU tensor that was filled behind the dispatcher's back, by its content at its first use.
struct ContentSlot {
  at::Tensor value;  ///< a copy of its own
};

/// Names of the tensors a module owns: looked up by identity when an unknown tensor appears in a trace.
struct NamedTensor {
  std::string name;    ///< "layer1.0.bn1.weight"
  std::string module;  ///< "layer1.0.bn1"
  c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
};

/// A write to a parameter by an optimizer of LibTorch.
struct OptimizerStep {
  std::string function;  ///< "torch::optim::SGD::step"
  WeakTensor parameter;
};

/// What one run of a program did.
struct Trace {
  /// Captured stage. Inputs: the arguments, then the gradients that the program found and used. Outputs: the callable's
  /// flattened results, then the gradients that it assigned.
  ir::Graph graph;
  /// By output: the input or state that is the very tensor returned, in whatever version; not valid for other outputs.
  std::vector<ir::ValueId> returned_as_is;
  /// By output: the first output that is the very same tensor, which may be itself. Outputs of one value that are other
  /// tensors are views of each other.
  std::vector<uint32_t> first_twin;
  std::vector<StateSlot> states;
  std::vector<ContentSlot> contents;
  std::vector<OptimizerStep> steps;       ///< parameters that optimizers of LibTorch wrote to
  std::vector<GradientSlot> gradients;    ///< none where the program neither took gradients nor looked at any
  std::vector<HostRead> reads;            ///< in order: the graph holds for what they gave, and for nothing else
  std::vector<c10::IValue> opaques;       ///< arguments the IR cannot describe, by ir::Opaque index
  std::optional<GraphBreak> graph_break;  ///< set: the graph is incomplete and must not be compiled
  int cuda_device = -1;                   ///< current when the call began; -1: there is none
  double seconds = 0;
};

/// Runs `program` for real, recording every ATen call below autograd, and returns the trace; what the program returned
/// goes to `*outputs` (flattened, in order). Exceptions of the program pass through, with nothing left behind but, in
/// `*failed_at`, the module path and source place of the operator that threw, where it was one. `inputs` are the
/// flattened tensor arguments. `.grad` at the beginning of the call is known of inputs, named tensors and `leaves`; of
/// other tensors what it is when an operator first meets them counts. A break ends the recording, never the program.
/// Autocast's cache of cast weights works as AutocastCache says, so that two captures see the same casts. A capture in
/// a capture ends the outer one with an unsupported op: call the program directly where `capturing()`. Thread-safe:
/// each call has its own recorder, found through thread-local state LibTorch carries to its threads.
[[nodiscard]] Trace capture(const std::function<std::vector<at::Tensor>()>& program, std::span<const at::Tensor> inputs,
                            std::span<const NamedTensor> names, std::vector<at::Tensor>* outputs,
                            std::string* failed_at = nullptr, std::span<const WeakTensor> leaves = {});

/// True while the calling thread (or the thread whose LibTorch state it carries) records a trace.
[[nodiscard]] bool capturing();

/// The first difference between two traces of the same program under the same guards: op, argument, both values and
/// place; nothing when they are equal (same ops, wiring, attributes, states by identity, contents by value).
[[nodiscard]] std::optional<std::string> difference(const Trace& first, const Trace& second);

}  // namespace sinter::frontend
