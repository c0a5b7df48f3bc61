#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/support/strong_id.h"

namespace sinter::ir {

/// Element types. `other` stands for anything that no generated kernel touches (float8, quantized, complex halves);
/// values of it flow through extern calls only.
enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, b8, c64, c128, other };

[[nodiscard]] std::string_view name(DType dtype);  ///< "f16", "b8", ...
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view text);
[[nodiscard]] int64_t bytes_of(DType dtype);  ///< 0 for `other`
[[nodiscard]] constexpr bool is_float(DType d) { return d <= DType::bf16; }
[[nodiscard]] constexpr bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }
[[nodiscard]] constexpr bool is_int(DType d) { return d >= DType::i64 && d <= DType::u8; }
/// True for the dtypes generated kernels read, compute and write.
[[nodiscard]] constexpr bool is_kernel_dtype(DType d) { return d <= DType::b8; }

/// Bytes beyond which nobody asks how an address is aligned: the widest access of a kernel.
inline constexpr int64_t full_alignment = 16;

struct Device {
  enum class Kind : uint8_t { cpu, cuda, other };
  Kind kind = Kind::cpu;
  int8_t index = 0;  ///< 0 for the CPU
  bool operator==(const Device&) const = default;
};

[[nodiscard]] std::string to_string(Device device);  ///< "cpu", "cuda:0"

struct SymbolTag;
using SymbolId = StrongId<SymbolTag>;

/// A size or stride: an affine expression `constant + sum(coefficient * symbol)`. Terms are sorted by symbol and never
/// have a zero coefficient, so equal expressions compare equal.
class Dim {
 public:
  Dim(int64_t constant = 0) : constant_(constant) {}  // NOLINT(google-explicit-constructor): a number is a Dim
  [[nodiscard]] static Dim symbol(SymbolId id);

  [[nodiscard]] bool is_static() const { return terms_.empty(); }
  /// The number. Throws InternalError when the expression holds a symbol.
  [[nodiscard]] int64_t value() const;
  [[nodiscard]] int64_t constant() const { return constant_; }
  [[nodiscard]] const std::vector<std::pair<SymbolId, int64_t>>& terms() const { return terms_; }

  [[nodiscard]] Dim operator+(const Dim& other) const;
  [[nodiscard]] Dim operator-(const Dim& other) const;
  [[nodiscard]] Dim operator*(int64_t factor) const;
  bool operator==(const Dim&) const = default;

 private:
  int64_t constant_ = 0;
  std::vector<std::pair<SymbolId, int64_t>> terms_;
};

[[nodiscard]] std::string to_string(const Dim& dim);  ///< "8", "s0", "2*s0+1"

/// Dtype, sizes, strides (in elements) and device of one tensor.
struct Type {
  DType dtype = DType::f32;
  std::vector<Dim> sizes;
  std::vector<Dim> strides;  ///< same length as sizes
  Device device;

  bool operator==(const Type&) const = default;
  [[nodiscard]] size_t rank() const { return sizes.size(); }
  [[nodiscard]] bool is_static() const;
  [[nodiscard]] int64_t numel() const;  ///< product of the sizes; static types only
  /// Static sizes / strides as numbers.
  [[nodiscard]] std::vector<int64_t> static_sizes() const;
  [[nodiscard]] std::vector<int64_t> static_strides() const;
  [[nodiscard]] bool is_contiguous() const;  ///< row-major; strides of dims of size 1 do not count
  /// True when the elements fill [0, numel) of the storage exactly once, in some order of the dims.
  [[nodiscard]] bool is_dense() const;
  /// Elements between the first and one past the last element touched (0 for an empty tensor).
  [[nodiscard]] int64_t span() const;
};

/// Equal addresses for every element of two types of equal sizes: strides of dims of size 1 do not count.
[[nodiscard]] bool same_layout(const Type& a, const Type& b);

/// Row-major strides of static or symbolic sizes. Throws InternalError when a product of two symbols would be needed.
[[nodiscard]] std::vector<Dim> contiguous_strides(const std::vector<Dim>& sizes);
[[nodiscard]] Type contiguous(DType dtype, std::vector<Dim> sizes, Device device);
/// A dense type of other sizes whose dims lie in memory in the order of those of `like`. Static types only.
[[nodiscard]] Type dense_like(const Type& like, std::vector<Dim> sizes);

/// True when every element of a view is an element of what it looks at, too: it sees none of the gaps between the
/// elements of `base`. The view's first element is `offset` elements after the one of `base`. Static types of one
/// dtype; time and memory grow with the elements of both where `base` has gaps.
[[nodiscard]] bool lies_in_elements_of(const Type& base, const Type& view, int64_t offset);

/// Text form: "f16[8,768]", strides only where not row-major: "f16[768,8]{1,768}". The device is printed as "@cuda:1"
/// only where it differs from `home`.
[[nodiscard]] std::string to_string(const Type& type, Device home);

}  // namespace sinter::ir
