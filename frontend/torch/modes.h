#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sinter::frontend {

/// What settings are about. An operator looks at those of its concerns on its devices; reading one takes LibTorch up to
/// 20 ns, and there are 19.
struct SettingConcerns {
  bool products = false;      ///< of matrices
  bool convolutions = false;  ///< and norms of cuDNN
  bool others = false;        ///< everything else, attention among it
  bool on_cpu = true, on_cuda = true;

  [[nodiscard]] static constexpr SettingConcerns everything() {
    return {.products = true, .convolutions = true, .others = true};
  }
};

/// Some of LibTorch's settings.
class SettingSet {
 public:
  SettingSet() = default;
  /// Those that operators of these concerns look at.
  explicit SettingSet(const SettingConcerns& concerns);
  [[nodiscard]] static SettingSet all() { return SettingSet(SettingConcerns::everything()); }

  [[nodiscard]] bool empty() const { return bits_ == 0; }
  /// True where a condition holds for each of them, given by its place among the modes.
  template <class Condition>
  [[nodiscard]] bool all_of(const Condition& condition) const {
    for (uint32_t left = bits_; left != 0; left &= left - 1) {
      if (!condition(static_cast<size_t>(std::countr_zero(left)))) return false;
    }
    return true;
  }
  SettingSet& operator|=(SettingSet other) { return bits_ |= other.bits_, *this; }

 private:
  uint32_t bits_ = 0;
};

/// LibTorch's global and thread-local modes that can change what a program does.
class Modes {
 public:
  static constexpr size_t count = 27;

  /// Those of the calling thread, now.
  [[nodiscard]] static Modes current();

  /// Those alone that change what a kernel computes, whoever calls it: no grad mode, no autocast, no keys.
  [[nodiscard]] static Modes settings();

  bool operator==(const Modes&) const = default;
  /// Makes the settings that differ now what they are here, for all threads of the process, as LibTorch has them.
  void apply_settings() const;
  /// True where the default dtype and these settings are now as they are here.
  [[nodiscard]] bool has_current(SettingSet settings) const;

 private:
  std::array<int64_t, count> values_{};
};

}  // namespace sinter::frontend
