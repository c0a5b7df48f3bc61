#include "frontend/host_call.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "compiler/support/errors.h"
#include "frontend/convert.h"
#include "frontend/libtorch_version.h"
#include "frontend/recorder.h"

// Declared here because ATen/autocast_mode.h includes every operator.
namespace at::autocast {
TORCH_API bool is_autocast_enabled(at::DeviceType device_type);
TORCH_API void set_autocast_enabled(at::DeviceType device_type, bool enabled);
}  // namespace at::autocast

namespace sinter::frontend {
namespace {

/// The slot that carries the scope.
constexpr std::string_view kScopeSlotName = "sinter host scope";
constexpr auto kScopeSlot = debug_slot(kScopeSlotName, 0x55);

class AutocastGuard {
 public:
  AutocastGuard(c10::DeviceType device, bool enabled)
      : device_(device), before_(at::autocast::is_autocast_enabled(device)) {
    at::autocast::set_autocast_enabled(device, enabled);
  }
  ~AutocastGuard() { at::autocast::set_autocast_enabled(device_, before_); }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  c10::DeviceType device_;
  bool before_;
};

std::vector<std::byte> bytes_of(const detail::HostFunction& function) {
  const auto* first = static_cast<const std::byte*>(function.closure);
  return {first, first + function.size};
}

std::optional<at::Scalar> run_watched(const detail::HostFunction& function, std::span<const at::Tensor> tensors,
                                      Recorder* recorder) {
  if (recorder == nullptr) return function.run(function.closure, tensors);
  const c10::DebugInfoGuard scope(kScopeSlot, std::make_shared<HostScope>(recorder, tensors));
  return function.run(function.closure, tensors);
}

HostLog::Entry entry_of(const std::type_info& type, const std::function<std::optional<at::Scalar>()>& run) {
  if (auto known = HostLog::take(type)) return std::move(*known);
  HostLog::Entry entry{.type = &type, .value = {}, .error = {}};
  try {
    entry.value = run();
  } catch (...) {
    entry.error = std::current_exception();
  }
  return entry;
}

}  // namespace

HostClosure::HostClosure(const detail::HostFunction& function)
    : type_(function.type),
      bytes_(bytes_of(function)),
      run_(function.run),
      grad_mode_(c10::GradMode::is_enabled()),
      autocast_cpu_(at::autocast::is_autocast_enabled(c10::kCPU)),
      autocast_cuda_(at::autocast::is_autocast_enabled(c10::kCUDA)),
      device_(current_cuda_device()) {}

std::optional<at::Scalar> HostClosure::run(std::span<const at::Tensor> tensors) const {
  const c10::AutoGradMode grad(grad_mode_);
  const AutocastGuard cpu(c10::kCPU, autocast_cpu_);
  const AutocastGuard cuda(c10::kCUDA, autocast_cuda_);
  const c10::OptionalDeviceGuard device(device_);
  return run_(bytes_.data(), tensors);
}

const HostClosure* closure_of(const c10::IValue& opaque) {
  return opaque.isCapsule() ? dynamic_cast<const HostClosure*>(opaque.toCapsule().get()) : nullptr;
}

bool same_opaque(const c10::IValue& a, const c10::IValue& b) {
  const HostClosure* first = closure_of(a);
  const HostClosure* second = closure_of(b);
  if (first != nullptr && second != nullptr) return first->same(*second);
  if (a.isComplexDouble() && b.isComplexDouble()) return a.toComplexDouble() == b.toComplexDouble();
  return a.is(b);
}

c10::IValue to_ivalue(const std::optional<at::Scalar>& value) { return value ? c10::IValue(*value) : c10::IValue(); }

ReadStep::ReadStep(const passes::ReadCall& read, const std::vector<c10::IValue>& opaques)
    : call_({.op = read.call.op,
             .args = read.args,
             .results = {},
             .module = read.scope.module,
             .source = read.scope.source}),
      prepared_(prepare(call_, opaques)) {}

std::variant<PreparedCall, ReadStep::HostCall> ReadStep::prepare(const ExternCall& call,
                                                                 const std::vector<c10::IValue>& opaques) {
  if (call.op != kHostOp) return PreparedCall(call, opaques);
  const auto* opaque = std::get_if<ir::Opaque>(&call.args.at(0).data);
  if (opaque == nullptr || closure_of(opaques.at(opaque->index)) == nullptr) {
    throw InternalError("host call", "a host function without its closure");
  }
  HostCall host{.closure = c10::static_intrusive_pointer_cast<HostClosure>(opaques[opaque->index].toCapsule()),
                .tensors = {}};
  ir::for_each_value(call.args.at(1), [&](ir::ValueId value) { host.tensors.push_back(value.index); });
  return host;
}

bool ReadStep::run(const std::vector<at::Tensor>& tensors, torch::jit::Stack& stack, HostLog& log) const {
  if (const auto* call = std::get_if<PreparedCall>(&prepared_)) {
    call->run(tensors, stack);
    return true;
  }
  const auto& host = std::get<HostCall>(prepared_);
  std::vector<at::Tensor> given;
  for (const uint32_t tensor : host.tensors) given.push_back(tensors.at(tensor));
  const HostLog::Entry done = entry_of(host.closure->type(), [&] { return host.closure->run(given); });
  log.add(done);
  stack.clear();
  if (done.value) stack.push_back(to_ivalue(done.value));
  return done.error == nullptr;
}

HostScope::HostScope(Recorder* watching, std::span<const at::Tensor> tensors) : recorder(watching) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.has_storage()) given.push_back(tensor.storage().unsafeGetStorageImpl());
  }
}

bool HostScope::gives(const at::Tensor& tensor) const {
  return std::find(given.begin(), given.end(), tensor.storage().unsafeGetStorageImpl()) != given.end();
}

const HostScope* HostScope::current() {
  return static_cast<const HostScope*>(c10::ThreadLocalDebugInfo::get(kScopeSlot));
}

}  // namespace sinter::frontend

namespace sinter::detail {

using frontend::HostLog;
using frontend::HostScope;
using frontend::Recorder;

bool watches_host() {
  return HostScope::current() == nullptr && (frontend::current_recorder() != nullptr || HostLog::answers());
}

std::optional<at::Scalar> run_host(const HostFunction& function, std::span<const at::Tensor> tensors) {
  Recorder* recorder = frontend::current_recorder();
  auto pending = recorder != nullptr ? recorder->before_host(function, tensors) : std::nullopt;
  const HostLog::Entry done =
      frontend::entry_of(*function.type, [&] { return frontend::run_watched(function, tensors, recorder); });
  if (done.error != nullptr) {
    if (recorder != nullptr) recorder->stop(frontend::host_threw());
    std::rethrow_exception(done.error);
  }
  if (pending) recorder->after_host(std::move(*pending), done.value, function.decides);
  return done.value;
}

}  // namespace sinter::detail
