#include "tests/emulator/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <utility>
#include <variant>

#include "compiler/codegen/cuda.h"
#include "tests/llvm/values.h"

namespace sinter::test {

using ir::DType;
using ir::RefValue;
using kernel::Param;

namespace {

/// Distance between neighbours at a value, for the dtype.
double unit_in_last_place(double value, DType dtype) {
  const int bits = dtype == DType::f64 ? 52 : dtype == DType::f32 ? 23 : dtype == DType::f16 ? 10 : 7;
  const int least = dtype == DType::f64 ? -1022 : dtype == DType::f16 ? -14 : -126;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - bits);
}

/// The first element that differs, in words; empty when none does.
std::string first_difference(const Case& test, const std::vector<Buffer>& before, const std::vector<Buffer>& got,
                             const std::vector<Buffer>& want) {
  for (size_t p = 0; p < want.size(); ++p) {
    for (int64_t e = 0; e < want[p].size(); ++e) {
      if (agree(got[p].get(e), want[p].get(e), want[p].dtype(), test.tolerance)) continue;
      std::string inputs;
      for (size_t q = 0; q < before.size(); ++q) {
        const bool input = test.kernel.params[q].role != Param::Role::output && e < before[q].size();
        if (input) inputs += fmt::format(" param{}[{}]={}", q, e, print(before[q].get(e)));
      }
      return fmt::format("param {} ({}) element {} is {}, want {};{}", p, ir::name(want[p].dtype()), e,
                         print(got[p].get(e)), print(want[p].get(e)), inputs);
    }
  }
  return {};
}

/// A copy of a buffer at a multiple of `alignment` that is no multiple of twice that, up to the last byte of its block.
class LeastAligned {
 public:
  LeastAligned(const Buffer& buffer, int64_t alignment)
      : bytes_(static_cast<size_t>(buffer.size() * ir::bytes_of(buffer.dtype()))),
        shift_(static_cast<size_t>(alignment)),
        block_(static_cast<std::byte*>(::operator new(shift_ + bytes_, block_alignment))) {
    std::memcpy(data(), buffer.data(), bytes_);
  }

  [[nodiscard]] void* data() const { return block_.get() + shift_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  static constexpr std::align_val_t block_alignment{64};
  struct Delete {
    void operator()(std::byte* block) const { ::operator delete(block, block_alignment); }
  };

  size_t bytes_;
  size_t shift_;
  std::unique_ptr<std::byte, Delete> block_;
};

}  // namespace

bool agree(const RefValue& got, const RefValue& want, DType dtype, Tolerance tolerance) {
  if (!ir::is_float(dtype)) return got == want;
  const double a = std::get<double>(got);
  const double b = std::get<double>(want);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return !tolerance.signed_zero || a != 0 || std::signbit(a) == std::signbit(b);
  if (std::isinf(a) || std::isinf(b)) return false;
  return std::fabs(a - b) <= tolerance.ulps * unit_in_last_place(b, dtype);
}

std::string print(const RefValue& value) {
  return std::visit([](auto number) { return fmt::format("{}", number); }, value);
}

DeviceInfo test_device() { return {.backend = Backend::cuda, .sm = 90, .multiprocessors = 0}; }

std::vector<Buffer> filled_params(const Case& test, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto sizes = param_sizes(test.kernel);
  std::vector<Buffer> params;
  for (size_t p = 0; p < sizes.size(); ++p) {
    params.emplace_back(test.kernel.params[p].dtype, sizes[p]);
    if (test.kernel.params[p].role != Param::Role::output) {
      fill(params.back(), random, {.domain = test.domain, .operand = p, .special = test.special});
    }
  }
  return params;
}

void run_emulated(const Emulator& emulator, size_t index, const kernel::Kernel& kernel, const KernelSource& source,
                  std::vector<Buffer>& params) {
  if (kernel.numel() == 0) return;
  std::vector<std::pair<Buffer*, LeastAligned>> placed;
  std::vector<EmulatedArg> args;
  for (size_t p = 0; p < params.size(); ++p) {
    if (kernel.params[p].role != Param::Role::host_scalar) {
      placed.emplace_back(&params[p], LeastAligned(params[p], source.params.at(p).alignment));
      args.emplace_back(placed.back().second.data());
    } else {
      std::visit([&](auto number) { args.emplace_back(number); }, params[p].get(0));
    }
  }
  for (const int64_t size : source.sizes) args.emplace_back(size);
  emulator.run(index, args);
  for (const auto& [buffer, copy] : placed) std::memcpy(buffer->data(), copy.data(), copy.bytes());
}

std::string compare_all(std::span<const Case> cases) {
  if (cases.empty()) return "no cases";
  std::vector<KernelSource> sources;
  for (const bool generic : {false, true}) {
    for (const Case& test : cases) {
      kernel::Kernel kernel = test.kernel;
      kernel.generic_sizes = generic;
      sources.push_back(codegen::generate_cuda(kernel, test_device()));
    }
  }
  const Emulator emulator(sources);
  std::string differences;
  for (size_t s = 0; s < sources.size(); ++s) {
    const size_t i = s % cases.size();
    const auto before = filled_params(cases[i], 17 + i);
    auto got = before;
    auto want = before;
    run_emulated(emulator, s, cases[i].kernel, sources[s], got);
    run_reference(cases[i].kernel, want);
    const std::string difference = first_difference(cases[i], before, got, want);
    if (!difference.empty()) {
      differences += fmt::format("{}: {}\n{}{}\n", cases[i].name, difference, sources[s].comment, sources[s].text);
    }
  }
  return differences;
}

}  // namespace sinter::test
