#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinter::frontend {

/// What becomes of an ATen operator when it is captured.
enum class Coverage : uint8_t {
  fused,       ///< a primitive of generated kernels
  decomposed,  ///< becomes primitives and views
  opened,      ///< only calls other operators, which are captured in its place
  called,      ///< a library call in the graph
  read,        ///< the host reads what it gives: the graph is cut there, and goes on by the value
  ends,        ///< a break: the call runs as eager runs it
  answered,    ///< answers from sizes and dtypes: nothing to capture
};
[[nodiscard]] const char* name(Coverage coverage);

struct AuditedOp {
  std::string op;  ///< "aten::add.Tensor"
  Coverage coverage;
  std::string why;  ///< what is read, or why a call breaks, if only some calls do; or empty
};

/// Every operator of the aten namespace that this LibTorch has, by name. Out variants are left out: they are what their
/// functional forms are.
[[nodiscard]] std::vector<AuditedOp> audit_ops();

}  // namespace sinter::frontend
