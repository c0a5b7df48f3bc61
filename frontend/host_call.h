#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/passes/split_at_reads.h"
#include "frontend/extern_call.h"
#include "frontend/host_log.h"
#include "sinter/host.h"

namespace sinter::frontend {

class Recorder;

/// How host functions are called in graphs and reports. Its arguments: the closure, a list of tensors.
inline constexpr const char* kHostOp = "sinter::host";

/// A host function as a recording keeps it: a copy of what it captures, and the modes it ran under. Immutable.
class HostClosure : public torch::CustomClassHolder {
 public:
  /// Of a plain function, with this thread's modes.
  explicit HostClosure(const detail::HostFunction& function);

  /// Calls a copy of it under those modes.
  [[nodiscard]] std::optional<at::Scalar> run(std::span<const at::Tensor> tensors) const;
  [[nodiscard]] const std::type_info& type() const { return *type_; }
  /// Does the same as another one: the same function, which captures the same.
  [[nodiscard]] bool same(const HostClosure& other) const { return *type_ == *other.type_ && bytes_ == other.bytes_; }

 private:
  const std::type_info* type_;
  std::vector<std::byte> bytes_;
  std::optional<at::Scalar> (*run_)(const void* closure, std::span<const at::Tensor> tensors);
  bool grad_mode_;
  bool autocast_cpu_, autocast_cuda_;
  std::optional<c10::Device> device_;  ///< the current CUDA device
};

/// The closure in an opaque argument; null where it is something else.
[[nodiscard]] const HostClosure* closure_of(const c10::IValue& opaque);
/// The same thing, or closures that do the same.
[[nodiscard]] bool same_opaque(const c10::IValue& a, const c10::IValue& b);
[[nodiscard]] c10::IValue to_ivalue(const std::optional<at::Scalar>& value);

/// The call that ends a segment: an operator, or a host function. Immutable, thread-safe.
class ReadStep {
 public:
  /// Throws InternalError when the operator is not registered or an argument does not fit its schema.
  ReadStep(const passes::ReadCall& read, const std::vector<c10::IValue>& opaques);

  /// Runs it with the tensors it looks at; on return `stack` holds what it gave. A host function that the thread's log
  /// knows is answered from there; what it did is added to `log`. False when a host function threw.
  [[nodiscard]] bool run(const std::vector<at::Tensor>& tensors, torch::jit::Stack& stack, HostLog& log) const;

  [[nodiscard]] const ExternCall& source() const { return call_; }
  [[nodiscard]] bool runs_host_function() const { return std::holds_alternative<HostCall>(prepared_); }

 private:
  struct HostCall {
    c10::intrusive_ptr<HostClosure> closure;
    std::vector<uint32_t> tensors;
  };
  [[nodiscard]] static std::variant<PreparedCall, HostCall> prepare(const ExternCall& call,
                                                                    const std::vector<c10::IValue>& opaques);

  ExternCall call_;
  std::variant<PreparedCall, HostCall> prepared_;
};

/// While it stands in a thread's state, a host function runs there for a recording: its operators are not recorded.
struct HostScope : c10::DebugInfoBase {
  HostScope(Recorder* watching, std::span<const at::Tensor> tensors);
  [[nodiscard]] bool gives(const at::Tensor& tensor) const;
  /// That of this thread; null outside of host functions.
  [[nodiscard]] static const HostScope* current();

  Recorder* recorder;
  std::vector<const c10::StorageImpl*> given;
};

}  // namespace sinter::frontend
