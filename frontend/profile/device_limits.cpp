#include "frontend/profile/device_limits.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mm.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <exception>
#include <functional>

#include "compiler/ir/type.h"
#include "compiler/support/first_line.h"
#include "frontend/torch/convert.h"
#include "runtime/stopwatch.h"

namespace sinter::frontend {
namespace {

constexpr int runs = 3;                                    ///< of which the fastest counts
constexpr int64_t device_copy_bytes = int64_t{128} << 20;  ///< more than caches of second level hold
constexpr int64_t host_copy_bytes = int64_t{64} << 20;
constexpr int64_t device_rows = 4096;  ///< of square matrices: they keep every multiprocessor busy
constexpr int64_t host_rows = 768;
constexpr int device_repeats = 10;  ///< in one measurement, so that launching costs little

/// Seconds of one call, the first not counted.
double fastest(at::Device device, const std::function<void()>& call) {
  const int repeats = device.is_cpu() ? 1 : device_repeats;
  call();
  wait_for(device);
  double best = 0;
  for (int run = 0; run < runs; ++run) {
    const runtime::Stopwatch stopwatch;
    for (int i = 0; i < repeats; ++i) call();
    wait_for(device);
    const double seconds = stopwatch.seconds() / repeats;
    if (run == 0 || seconds < best) best = seconds;
  }
  return best;
}

double measured_bandwidth(at::Device device) {
  const int64_t bytes = device.is_cpu() ? host_copy_bytes : device_copy_bytes;
  const at::Tensor from = at::empty({bytes}, at::TensorOptions(at::kByte).device(device)).fill_(1);
  const at::Tensor to = at::empty_like(from);
  const double seconds = fastest(device, [&] { (void)to.copy_(from); });
  return seconds > 0 ? 2.0 * static_cast<double>(bytes) / seconds : 0;
}

/// Values that differ: devices multiply zeros with less power, and so faster.
double measured_peak(at::Device device, at::ScalarType dtype) {
  const int64_t rows = device.is_cpu() ? host_rows : device_rows;
  const at::Tensor a =
      at::linspace(-1, 1, rows * rows, at::TensorOptions(at::kFloat).device(device)).to(dtype).view({rows, rows});
  at::Tensor out = at::empty_like(a);
  const double seconds = fastest(device, [&] { (void)at::mm_out(out, a, a.t()); });
  const auto size = static_cast<double>(rows);
  return seconds > 0 ? 2 * size * size * size / seconds : 0;
}

DeviceLimits measured(at::Device device, const std::vector<std::string>& dtypes) {
  DeviceLimits limits{.bandwidth = measured_bandwidth(device)};
  for (const std::string& name : dtypes) {
    const auto dtype = ir::parse_dtype(name);
    if (!dtype || !ir::is_float(*dtype)) continue;
    const auto scalar = scalar_type_of(*dtype);
    if (scalar) limits.peaks.push_back({name, measured_peak(device, *scalar)});
  }
  return limits;
}

}  // namespace

void wait_for(at::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

DeviceLimits measure_limits(at::Device device, const std::vector<std::string>& dtypes) {
  const at::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  try {
    return measured(device, dtypes);
  } catch (const std::exception& error) {
    return {.problem = first_line(error.what())};
  }
}

std::vector<std::string> product_dtypes(const std::vector<ModeProfile>& profiles) {
  std::vector<std::string> dtypes;
  for (const ModeProfile& profile : profiles) {
    for (const ProfiledOperator& op : profile.operators) {
      const bool is_new = std::ranges::find(dtypes, op.dtype) == dtypes.end();
      if (!op.dtype.empty() && is_new) dtypes.push_back(op.dtype);
    }
  }
  return dtypes;
}

}  // namespace sinter::frontend
