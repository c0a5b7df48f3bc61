#pragma once

#include <array>
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
  [[nodiscard]] bool has(size_t mode) const { return (bits_ >> mode & 1) != 0; }
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
