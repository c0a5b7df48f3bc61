#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/print.h"
#include "frontend/capture.h"

namespace capture_test {

using namespace sinter;
using namespace sinter::frontend;

using Program = std::function<std::vector<at::Tensor>()>;
using Ops = std::vector<std::string>;

inline NamedTensor named(const std::string& name, const at::Tensor& tensor) {
  const size_t dot = name.rfind('.');
  return {name, dot == std::string::npos ? "" : name.substr(0, dot),
          c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr())};
}

/// Every parameter and buffer of a module by name.
inline std::vector<NamedTensor> names_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> names;
  for (const auto& parameter : module.named_parameters()) names.push_back(named(parameter.key(), parameter.value()));
  for (const auto& buffer : module.named_buffers()) names.push_back(named(buffer.key(), buffer.value()));
  return names;
}

/// Three positive numbers.
inline const at::Tensor& small() {
  static const at::Tensor x = torch::rand({3}) + 0.5;
  return x;
}

/// The trace of a program over these inputs, without gradients.
inline Trace trace_of(const Program& program, const std::vector<at::Tensor>& inputs = {},
                      const std::vector<NamedTensor>& names = {}) {
  const torch::NoGradGuard no_grad;
  return capture(program, inputs, names, nullptr);
}

/// The trace of a function of one tensor.
inline Trace trace_of(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& x) {
  return trace_of([&] { return std::vector<at::Tensor>{function(x)}; }, {x});
}

/// Names of the ATen calls in a trace, in order, without "aten::".
inline Ops ops_of(const Trace& trace) {
  Ops ops;
  for (const ir::NodeId id : trace.graph.order()) {
    const auto* call = trace.graph.node(id).as<ir::Call>();
    if (call) ops.push_back(call->op.substr(call->op.find("::") + 2));
  }
  return ops;
}

inline std::string text_of(const Trace& trace) {
  std::string text = ir::print(trace.graph);
  if (trace.graph_break) {
    text += name(trace.graph_break->code) + (" " + trace.graph_break->op) + " at " + trace.graph_break->where + ": " +
            trace.graph_break->reason;
  }
  return text;
}

inline testing::AssertionResult shows(const Trace& trace, const std::string& part) {
  const std::string text = text_of(trace);
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "wanted: " << part << "\n" << text;
}

/// True when the trace is complete.
inline testing::AssertionResult whole(const Trace& trace) {
  if (!trace.graph_break) return testing::AssertionSuccess();
  return testing::AssertionFailure() << text_of(trace);
}

inline testing::AssertionResult breaks(const Trace& trace, BreakCode code, const std::string& op,
                                       const std::string& reason) {
  if (!trace.graph_break) return testing::AssertionFailure() << "no break\n" << text_of(trace);
  const GraphBreak& found = *trace.graph_break;
  const bool same = found.code == code && found.op == op && found.reason.find(reason) != std::string::npos;
  if (same && !found.hint.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << text_of(trace);
}

}  // namespace capture_test
