#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/support/report.h"
#include "frontend/capture.h"
#include "frontend/layout_guard.h"
#include "frontend/tensor_memory.h"

namespace sinter::frontend {

/// Guards on the tensors a program reads besides its arguments: parameters, buffers, what a closure holds. Each must be
/// alive and held by as many as then, lie in the same memory and have the same layout, and hold the same numbers where
/// the host read them. Thread-safe once built.
///
/// A call checks hundreds of them, so what a check compares lies in one cache line a tensor, in the order of checking.
/// Names and whatever only messages need lie elsewhere. The tensors themselves are held weakly, which keeps the memory
/// of each TensorImpl, so its count can be read without making it a strong reference.
class StateGuards {
 public:
  /// `results` are the tensors the program returned: references they hold do not count, as they go away with them.
  void add(std::span<const StateSlot> slots, std::span<const at::Tensor> results);

  /// `differentiates`: which of them require gradients matters.
  [[nodiscard]] bool hold(bool differentiates) const;
  /// True when they can never hold again: a tensor is gone or was replaced.
  [[nodiscard]] bool lost() const;
  void misses(bool differentiates, std::vector<GuardMiss>& out) const;
  void describe(std::vector<std::string>& words) const;
  /// Largest power of two up to 256 that divides each address, in the order of the slots.
  [[nodiscard]] std::vector<int64_t> alignments() const;

  struct NamedStorage {
    const std::string& name;  ///< lives as long as the guards
    const c10::StorageImpl* storage;
  };
  /// Where each tensor lies; all must be alive.
  [[nodiscard]] std::vector<NamedStorage> storages() const;

 private:
  struct State {
    std::string name;
    WeakTensor tensor;
    uint32_t references;
    const void* address;
    bool requires_grad;
    LayoutGuard layout;
    at::Tensor read_by_host;  ///< what it must hold; undefined: anything

    [[nodiscard]] bool holds(bool differentiates) const;
    [[nodiscard]] bool is_there() const;
    [[nodiscard]] bool holds_as_read(const c10::TensorImpl& now) const;
    void misses(bool differentiates, std::vector<GuardMiss>& out) const;
  };
  static constexpr size_t max_rank = 4;  ///< of records: as much as a cache line has room for

  /// All that the check of one ordinary tensor compares.
  struct alignas(64) Record {
    const c10::TensorImpl* tensor;  ///< its memory is kept by `states_`
    uintptr_t address;              ///< of the first element; never 0
    uint64_t keys;
    uint16_t references;
    caffe2::TypeMeta dtype;
    c10::Device device;
    uint8_t itemsize;
    bool requires_grad;
    std::array<uint32_t, max_rank> sizes, strides;
  };
  static_assert(sizeof(Record) == 64);

  [[nodiscard]] static bool fits_record(const State& state);
  [[nodiscard]] static Record record_of(const State& state);
  template <size_t rank, bool differentiates>
  [[nodiscard]] static bool hold(std::span<const Record> records);

  std::vector<State> states_;
  std::array<std::vector<Record>, max_rank + 1> records_;  ///< by rank
  std::vector<uint32_t> others_;                           ///< positions in `states_` that no record stands for
};

}  // namespace sinter::frontend
