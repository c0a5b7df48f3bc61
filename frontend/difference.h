#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/capture.h"

namespace sinter::frontend {

/// Equal to the bit, so that nan equals itself and the zeros differ.
[[nodiscard]] inline bool same_number(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}
[[nodiscard]] inline bool same_number(int64_t a, int64_t b) { return a == b; }

/// Where in a trace a number stands.
struct NumberPlace {
  enum class Part : uint8_t {
    argument,      ///< `path`: argument, then element of each list it lies in
    size,          ///< `path`: result, dim
    stride,        ///< `path`: result, dim
    alias_offset,  ///< `path`: result
  };
  ir::NodeId node;  ///< of the first trace
  Part part = Part::argument;
  std::vector<uint32_t> path;
  bool operator==(const NumberPlace&) const = default;
};

/// A number that differs between two traces; both are int64_t or both are double.
struct NumberDifference {
  NumberPlace place;
  ir::Scalar first, second;
};

/// How two traces of the same program differ.
struct TraceComparison {
  std::optional<std::string> other;       ///< the first difference that is no number, as `difference` says it
  std::vector<NumberDifference> numbers;  ///< in the order of the nodes; complete only without `other`
};

/// Compares two traces of the same program: ops, wiring, attributes, states by identity, contents by value. Integers
/// and floats that differ (arguments, sizes, strides, alias offsets) are collected; anything else ends the comparison.
[[nodiscard]] TraceComparison compare(const Trace& first, const Trace& second);

/// A difference in words: op, place, what was and what is.
[[nodiscard]] std::string describe(const NumberDifference& difference, const Trace& first);

}  // namespace sinter::frontend
