#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <span>
#include <string>

#include "compiler/ir/arg.h"

namespace sinter::frontend {

/// What the host saw of a tensor while a program ran: the value of a number, those of all integers it holds, or the
/// sizes of tensors whose sizes depend on data. Programs that read the same go the same way. Numbers are the same to
/// the bit.
class Outcome {
 public:
  /// Of the results of a call; nothing where they are neither tensors nor bools, integers (also a list) or floats.
  [[nodiscard]] static std::optional<Outcome> of(std::span<const c10::IValue> results);

  bool operator==(const Outcome& other) const { return bytes_ == other.bytes_; }
  /// "true", "0.25", "[3,2]".
  [[nodiscard]] std::string text() const;
  /// The number, where the outcome is one.
  [[nodiscard]] std::optional<ir::Scalar> number() const;
  /// Writes the eight bytes of the number.
  void copy_number(char* to) const;

 private:
  std::string bytes_;  ///< of each result: 'b', 'i' or 'd' and eight bytes; 't', its rank, sizes and strides; 'n',
                       ///< their count, integers
};

/// One look of the host at data, in a trace.
struct HostRead {
  ir::NodeId node;  ///< the call, marked `read`
  Outcome outcome;
  bool decides = true;  ///< false: a number that operators take, whatever it is
};

}  // namespace sinter::frontend
