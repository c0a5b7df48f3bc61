#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/type.h"

/// A product of matrices as a library that takes pointers is asked for it. Data only.
namespace sinter::runtime {

/// What is applied to each element before it is stored.
enum class ProductActivation : uint8_t { none, relu, gelu_tanh };

/// How long sums may be taken apart, LibTorch's flags for cuBLAS.
enum class PartialSums : uint8_t {
  rounded,  ///< parts may be rounded to the operands' dtype before they are added
  f32,      ///< parts stay f32
  none,     ///< sums are not taken apart
};

/// Where a matrix of an operand lies. Elements of a line are consecutive.
struct ProductOperand {
  bool turned = false;  ///< lines are columns; else they are rows
  int64_t line = 0;     ///< elements from one line to the next
  int64_t matrix = 0;   ///< elements from one matrix of a batch to the next

  bool operator==(const ProductOperand&) const = default;
};

/// result[b] = activation(left[b] right[b] + bias + summand), for `batch` matrices; result and summand are row-major
/// without gaps. Sums are f32.
struct ProductProblem {
  ir::DType dtype = ir::DType::f16;  ///< of all operands
  int64_t batch = 1;
  int64_t rows = 0;     ///< of left and the result
  int64_t columns = 0;  ///< of right and the result
  int64_t terms = 0;    ///< columns of left, rows of right
  ProductOperand left;
  ProductOperand right;
  bool bias = false;     ///< a vector of `columns` elements
  bool summand = false;  ///< a matrix like the result
  ProductActivation activation = ProductActivation::none;
  PartialSums sums = PartialSums::rounded;
  int64_t alignment = 1;  ///< bytes that all addresses are multiples of, a power of two

  bool operator==(const ProductProblem&) const = default;
};

/// "f16[25216,768] x f16[768,3072] + bias, relu": what a person asks about.
[[nodiscard]] std::string to_string(const ProductProblem& problem);
/// Everything in it, as one line.
[[nodiscard]] std::string key_of(const ProductProblem& problem);

/// Device addresses of one product's operands; null for those that the problem does not have.
struct ProductAddresses {
  const void* left = nullptr;
  const void* right = nullptr;
  const void* bias = nullptr;
  const void* summand = nullptr;
  void* result = nullptr;  ///< no operand's memory
};

/// One of a library's ways to compute a problem, for the version of the library that named it.
struct ProductAlgorithm {
  std::vector<std::byte> code;
  int64_t workspace_bytes = 0;

  bool operator==(const ProductAlgorithm&) const = default;
};

}  // namespace sinter::runtime
