#pragma once

#include <cstdint>

namespace sinter {

/// How often generated kernels round half-precision values.
enum class Numerics : uint8_t {
  fast,   ///< half values are rounded where they are stored
  eager,  ///< half values are rounded after every ATen op, as eager rounds them
};

}  // namespace sinter
