#include "frontend/torch/modes.h"

#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

// Declared here because ATen/autocast_mode.h includes every operator.
namespace at::autocast {
TORCH_API bool is_autocast_enabled(at::DeviceType device_type);
TORCH_API at::ScalarType get_autocast_dtype(at::DeviceType device_type);
}  // namespace at::autocast

namespace sinter::frontend {
namespace {

struct Mode {
  const char* name;
  int64_t (*read)();
  void (*write)(int64_t) = nullptr;  ///< of settings
  SettingConcerns concerns{};        ///< whose operators look at it
};

constexpr SettingConcerns everything = SettingConcerns::everything();
constexpr SettingConcerns attention{.others = true};
constexpr SettingConcerns products_on_cuda{.products = true, .others = true, .on_cpu = false};
constexpr SettingConcerns products_on_cpu{.products = true, .others = true, .on_cuda = false};
constexpr SettingConcerns convolutions_on_cuda{.convolutions = true, .others = true, .on_cpu = false};
constexpr SettingConcerns convolutions_on_cpu{.convolutions = true, .others = true, .on_cuda = false};
constexpr SettingConcerns everything_on_cpu{.products = true, .convolutions = true, .others = true, .on_cuda = false};

bool meet(const SettingConcerns& a, const SettingConcerns& b) {
  const bool about = (a.products && b.products) || (a.convolutions && b.convolutions) || (a.others && b.others);
  return about && ((a.on_cpu && b.on_cpu) || (a.on_cuda && b.on_cuda));
}

at::Context& context() { return at::globalContext(); }

template <at::DeviceType device>
int64_t autocast_enabled() {
  return static_cast<int64_t>(at::autocast::is_autocast_enabled(device));
}

template <at::DeviceType device>
int64_t autocast_dtype() {
  return static_cast<int64_t>(at::autocast::get_autocast_dtype(device));
}

template <at::Float32Backend backend, at::Float32Op op>
int64_t precision() {
  return static_cast<int64_t>(context().float32Precision(backend, op));
}

/// LibTorch has an older switch for CUDA, and refuses to compute where the two disagree: set together.
template <at::Float32Backend backend, at::Float32Op op>
void set_precision(int64_t value) {
  const auto wanted = static_cast<at::Float32Precision>(value);
  const bool tf32 = wanted == at::Float32Precision::TF32;
  if constexpr (backend == at::Float32Backend::CUDA && op == at::Float32Op::MATMUL) context().setAllowTF32CuBLAS(tf32);
  if constexpr (backend == at::Float32Backend::CUDA && op == at::Float32Op::CONV) context().setAllowTF32CuDNN(tf32);
  if constexpr (backend != at::Float32Backend::CUDA) context().setFloat32Precision(backend, op, wanted);
}

template <auto getter>
int64_t setting() {
  return static_cast<int64_t>((context().*getter)());
}

template <auto setter>
void set(int64_t value) {
  (context().*setter)(value != 0);
}

/// Reductions in cuBLAS, by at::CuBLASReductionOption.
template <auto setter>
void set_reduction(int64_t value) {
  using at::CuBLASReductionOption;
  const auto wanted = static_cast<CuBLASReductionOption>(value);
  (context().*setter)(wanted == CuBLASReductionOption::AllowReducedPrecisionWithSplitK,
                      wanted != CuBLASReductionOption::DisallowReducedPrecisionDisallowSplitK);
}

int64_t default_dtype() { return static_cast<int64_t>(c10::get_default_dtype_as_scalartype()); }

void set_default_dtype(int64_t value) {
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(static_cast<at::ScalarType>(value)));
}

void set_deterministic(int64_t value) {
  context().setDeterministicAlgorithms(value != 0, context().deterministicAlgorithmsWarnOnly());
}

void set_warn_only(int64_t value) {
  context().setDeterministicAlgorithms(context().deterministicAlgorithms(), value != 0);
}

int64_t included_keys() { return static_cast<int64_t>(c10::impl::tls_local_dispatch_key_set().included_.raw_repr()); }

int64_t excluded_keys() { return static_cast<int64_t>(c10::impl::tls_local_dispatch_key_set().excluded_.raw_repr()); }

using at::Context;
using at::Float32Backend;
using at::Float32Op;

constexpr std::array<Mode, Modes::count> modes{{
    {"grad mode", [] { return static_cast<int64_t>(c10::GradMode::is_enabled()); }},
    {"inference mode", [] { return static_cast<int64_t>(c10::InferenceMode::is_enabled()); }},
    {"autocast on the CPU", autocast_enabled<at::kCPU>},
    {"autocast dtype on the CPU", autocast_dtype<at::kCPU>},
    {"autocast on CUDA", autocast_enabled<at::kCUDA>},
    {"autocast dtype on CUDA", autocast_dtype<at::kCUDA>},
    {"default dtype", default_dtype, set_default_dtype},
    {"deterministic algorithms", setting<&Context::deterministicAlgorithms>, set_deterministic, everything},
    {"deterministic algorithms warn only", setting<&Context::deterministicAlgorithmsWarnOnly>, set_warn_only,
     everything},
    {"float32 precision of matmul on CUDA", precision<Float32Backend::CUDA, Float32Op::MATMUL>,
     set_precision<Float32Backend::CUDA, Float32Op::MATMUL>, products_on_cuda},
    {"float32 precision of convolution on CUDA", precision<Float32Backend::CUDA, Float32Op::CONV>,
     set_precision<Float32Backend::CUDA, Float32Op::CONV>, convolutions_on_cuda},
    {"float32 precision of matmul on the CPU", precision<Float32Backend::MKLDNN, Float32Op::MATMUL>,
     set_precision<Float32Backend::MKLDNN, Float32Op::MATMUL>, products_on_cpu},
    {"float32 precision of convolution on the CPU", precision<Float32Backend::MKLDNN, Float32Op::CONV>,
     set_precision<Float32Backend::MKLDNN, Float32Op::CONV>, convolutions_on_cpu},
    {"f16 reductions in cuBLAS", setting<&Context::allowFP16ReductionCuBLAS>,
     set_reduction<&Context::setAllowFP16ReductionCuBLAS>, products_on_cuda},
    {"bf16 reductions in cuBLAS", setting<&Context::allowBF16ReductionCuBLAS>,
     set_reduction<&Context::setAllowBF16ReductionCuBLAS>, products_on_cuda},
    {"f16 reductions on the CPU", setting<&Context::allowFP16ReductionCPU>, set<&Context::setAllowFP16ReductionCPU>,
     products_on_cpu},
    {"cuDNN", setting<&Context::userEnabledCuDNN>, set<&Context::setUserEnabledCuDNN>, convolutions_on_cuda},
    {"cuDNN benchmark", setting<&Context::benchmarkCuDNN>, set<&Context::setBenchmarkCuDNN>, convolutions_on_cuda},
    {"cuDNN deterministic", setting<&Context::deterministicCuDNN>, set<&Context::setDeterministicCuDNN>,
     convolutions_on_cuda},
    {"oneDNN", setting<&Context::userEnabledMkldnn>, set<&Context::setUserEnabledMkldnn>, everything_on_cpu},
    {"flash attention", setting<&Context::userEnabledFlashSDP>, set<&Context::setSDPUseFlash>, attention},
    {"memory-efficient attention", setting<&Context::userEnabledMemEfficientSDP>, set<&Context::setSDPUseMemEfficient>,
     attention},
    {"math attention", setting<&Context::userEnabledMathSDP>, set<&Context::setSDPUseMath>, attention},
    {"cuDNN attention", setting<&Context::userEnabledCuDNNSDP>, set<&Context::setSDPUseCuDNN>, attention},
    {"half reductions in math attention", setting<&Context::allowFP16BF16ReductionMathSDP>,
     set<&Context::setAllowFP16BF16ReductionMathSDP>, attention},
    {"included dispatch keys", included_keys},
    {"excluded dispatch keys", excluded_keys},
}};

/// Settings stand between autocast and dispatch keys; the default dtype is the first one.
constexpr size_t first_setting = 6;
constexpr size_t first_keys = Modes::count - 2;

}  // namespace

SettingSet::SettingSet(const SettingConcerns& concerns) {
  for (size_t i = first_setting + 1; i < first_keys; ++i) {
    if (meet(modes[i].concerns, concerns)) bits_ |= uint32_t{1} << i;
  }
}

Modes Modes::current() {
  Modes now;
  for (size_t i = 0; i < count; ++i) now.values_[i] = modes[i].read();
  return now;
}

Modes Modes::settings() {
  Modes now;
  for (size_t i = first_setting; i < first_keys; ++i) now.values_[i] = modes[i].read();
  return now;
}

void Modes::apply_settings() const {
  for (size_t i = first_setting; i < first_keys; ++i) {
    if (modes[i].read() != values_[i]) modes[i].write(values_[i]);
  }
}

bool Modes::has_current(SettingSet settings) const {
  if (values_[first_setting] != modes[first_setting].read()) return false;
  return settings.all_of([&](size_t setting) { return values_[setting] == modes[setting].read(); });
}

}  // namespace sinter::frontend
