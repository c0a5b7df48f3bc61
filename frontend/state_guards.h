#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/support/report.h"
#include "frontend/capture.h"
#include "frontend/hooks.h"
#include "frontend/layout_guard.h"
#include "frontend/private_layout.h"
#include "frontend/tensor_memory.h"

namespace sinter::frontend {

/// Guards on the tensors a program reads besides its arguments: parameters, buffers, what a closure holds. Each must be
/// alive and held by as many as then, lie in the same memory and have the same layout, and hold the same numbers where
/// the host read them. Thread-safe once built.
///
/// A call checks hundreds of them, and what that costs is how many lines of the cache it touches. So it compares each
/// tensor's members as they lie in memory with a copy, and asks the tensor itself only where they differ. Names and
/// whatever only messages need lie elsewhere. The tensors are held weakly, which keeps the memory of each TensorImpl,
/// so its count can be read without making it a strong reference.
class StateGuards {
 public:
  explicit StateGuards(const PrivateLayout& layout = PrivateLayout::here()) : reads_words_(layout.tensor_words) {}

  /// `results` are the tensors the program returned: references they hold do not count, as they go away with them.
  void add(std::span<const StateSlot> slots, std::span<const at::Tensor> results);

  /// `differentiates`: which of them require gradients matters, and what hooks do with those.
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
    Hooks hooks;
    LayoutGuard layout;
    at::Tensor read_by_host;  ///< what it must hold; undefined: anything

    [[nodiscard]] bool holds(bool differentiates) const;
    [[nodiscard]] bool is_there() const;
    [[nodiscard]] bool holds_as_read(const c10::TensorImpl& now) const;
    void misses(bool differentiates, std::vector<GuardMiss>& out) const;
  };
  /// What the check of one ordinary tensor compares with.
  struct Record {
    const c10::TensorImpl* tensor;  ///< its memory is kept by `states_`
    const void* base;               ///< its storage's first byte
    uint16_t references;
    uint16_t words;       ///< position in `words_`
    uint32_t state : 31;  ///< position in `states_`
    uint32_t requires_grad : 1;
  };
  static_assert(sizeof(Record) == 24);
  struct alignas(64) Words {
    TensorWords::Copy copy;
  };
  using KnownWords = std::map<TensorWords::Copy, size_t>;  ///< positions in `words_`

  [[nodiscard]] bool fits_record(const State& state) const;
  void add_record(size_t index, KnownWords& known);
  using Equal = bool (*)(const c10::TensorImpl& tensor, const TensorWords::Copy& copy);
  template <bool differentiates, Equal equal>
  [[nodiscard, gnu::always_inline]] static inline bool is_unchanged(const Record& record, const Words& words);
  template <bool differentiates, Equal equal>
  [[nodiscard, gnu::always_inline]] inline bool hold_all() const;
#ifdef __x86_64__
  [[nodiscard, gnu::target("avx2")]] bool hold_avx2(bool differentiates) const;
#endif

  bool reads_words_;
  std::vector<State> states_;
  std::vector<Record> records_;  ///< by address of the tensor: neighbours share lines of the cache
  std::vector<Words> words_;     ///< each once: most tensors of a module are like others
  std::vector<size_t> others_;   ///< positions in `states_` that no record stands for
};

}  // namespace sinter::frontend
