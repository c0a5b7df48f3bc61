#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sinter::frontend {

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
  /// True where the default dtype, which is one of the settings, is now as it is here.
  [[nodiscard]] bool has_current_default_dtype() const;

 private:
  std::array<int64_t, count> values_{};
};

}  // namespace sinter::frontend
