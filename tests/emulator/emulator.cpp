#include "tests/emulator/emulator.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <initializer_list>
#include <stdexcept>

#include "tests/emulator/fiber_machine.h"
#include "tests/emulator/heap_blocks.h"
#include "tests/emulator/kernel_library.h"

/// Libraries of kernels stay open: what they hold at exit is no leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT(bugprone-reserved-identifier)

namespace sinter::test {
namespace {

std::filesystem::path scratch_directory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "sinter-emulator-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("emulator: no scratch directory");
  return pattern;
}

Geometry geometry_of(const KernelSource& kernel) {
  const auto index = [](const auto& sizes) { return Index3{sizes[0], sizes[1], sizes[2]}; };
  return {.grid = index(kernel.grid), .block = index(kernel.block)};
}

}  // namespace

Emulator::Emulator(std::span<const KernelSource> kernels) : directory_(scratch_directory()) {
  for (const char* header : {"cuda_on_cpu.h", "cuda_together.h", "cuda_traced.h", "machine.h"}) {
    std::filesystem::copy(std::filesystem::path(SINTER_SOURCE_DIR) / "tests/emulator" / header, directory_);
  }
  std::vector<size_t> all;
  std::vector<size_t> together;
  for (size_t i = 0; i < kernels.size(); ++i) {
    all.push_back(i);
    if (cooperates(kernels[i])) together.push_back(i);
  }
  const auto checked = build_kernels(directory_, kernels, all, Build::checked);
  const auto traced = build_kernels(directory_, kernels, together, Build::traced);
  for (const size_t i : all) {
    entries_.push_back({.name = kernels[i].name, .geometry = geometry_of(kernels[i]), .checked = checked[i]});
  }
  for (size_t i = 0; i < together.size(); ++i) entries_[together[i]].traced = traced[i];
}

Emulator::~Emulator() { std::filesystem::remove_all(directory_); }

void Emulator::run(size_t index, std::span<const EmulatedArg> args, size_t dynamic_shared_bytes) const {
  std::vector<EmulatedArg> values(args.begin(), args.end());
  std::vector<void*> pointers;
  for (auto& value : values) {
    pointers.push_back(std::visit([](auto& held) { return static_cast<void*>(&held); }, value));
  }
  const Entry& entry = entries_.at(index);
  if (entry.traced == nullptr) {
    entry.checked(pointers.data(), entry.geometry, nullptr);
    return;
  }
  try {
    run_together(entry, args, pointers.data(), dynamic_shared_bytes);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", entry.name, error.what()));
  }
}

void Emulator::run_together(const Entry& entry, std::span<const EmulatedArg> args, void** pointers,
                            size_t dynamic_shared_bytes) {
  const HeapBlocks memory(args);
  const auto before = memory.contents();
  FiberMachine in_order(entry.geometry, dynamic_shared_bytes, Order::forward);
  entry.checked(pointers, entry.geometry, &in_order);
  const auto after = memory.contents();
  for (const Order order : {Order::backward, Order::random}) {
    memory.set(before);
    FiberMachine machine(entry.geometry, dynamic_shared_bytes, order);
    entry.traced(pointers, entry.geometry, &machine);
    const std::string difference = memory.difference(after);
    if (difference.empty()) continue;
    throw std::runtime_error(difference + " depends on the order in which threads or blocks run");
  }
}

}  // namespace sinter::test
