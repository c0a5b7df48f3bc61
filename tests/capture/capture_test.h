#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/print.h"
#include "frontend/capture.h"

namespace sinter::frontend::test {

using Program = std::function<std::vector<at::Tensor>()>;

/// Every parameter and buffer of a module by name.
inline std::vector<NamedTensor> names_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> names;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    const size_t dot = name.rfind('.');
    const std::string owner = dot == std::string::npos ? "" : name.substr(0, dot);
    names.push_back({name, owner, c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr())});
  };
  for (const auto& parameter : module.named_parameters()) add(parameter.key(), parameter.value());
  for (const auto& buffer : module.named_buffers()) add(buffer.key(), buffer.value());
  return names;
}

inline Trace trace_of(const Program& program, const std::vector<at::Tensor>& inputs,
                      const std::vector<NamedTensor>& names = {}) {
  return capture(program, inputs, names, nullptr);
}

/// Names of the ATen calls in a trace, in order, without "aten::".
inline std::vector<std::string> ops_of(const Trace& trace) {
  std::vector<std::string> ops;
  for (const ir::NodeId id : trace.graph.order()) {
    const auto* call = trace.graph.node(id).as<ir::Call>();
    if (call) ops.push_back(call->op.substr(call->op.find("::") + 2));
  }
  return ops;
}

inline std::string text_of(const Trace& trace) { return ir::print(trace.graph); }

inline bool shows(const Trace& trace, const std::string& part) {
  return text_of(trace).find(part) != std::string::npos;
}

#define EXPECT_SHOWS(trace, part) EXPECT_TRUE(shows(trace, part)) << "wanted: " << (part) << "\n" << text_of(trace)

using Ops = std::vector<std::string>;

}  // namespace sinter::frontend::test
