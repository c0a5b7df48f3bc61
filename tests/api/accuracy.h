#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <sinter/sinter.h>

#include <cstdint>
#include <string_view>

namespace sinter::test {

/// Root mean square of the distance from float64.
inline double error(const at::Tensor& found, const at::Tensor& exact) {
  return (found.to(at::kDouble) - exact).square().mean().sqrt().item<double>();
}

/// How often a compiled segment calls an operator of the library, as it is named there.
inline int64_t calls_of(const EntryReport& entry, std::string_view op) {
  int64_t calls = 0;
  for (const ExternRecord& call : entry.externs) calls += call.op == op ? call.calls : 0;
  return calls;
}
inline int64_t calls_of(const Report& report, std::string_view op) {
  int64_t calls = 0;
  for (const EntryReport& entry : report.entries) calls += calls_of(entry, op);
  return calls;
}

}  // namespace sinter::test
