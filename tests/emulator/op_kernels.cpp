#include "tests/emulator/op_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "compiler/ir/op_types.h"
#include "tests/llvm/kernels.h"

namespace sinter::test {
namespace {

using ir::DType;
using ir::OpRow;
using ir::TypeRule;
using kernel::Slot;

/// Strides of up to three operands for one output over the extents.
using OperandStrides = std::array<std::vector<int64_t>, 3>;

/// Operands in memory: every entry of `outputs` is the op applied once more, to operands that lie another way.
struct Layout {
  std::string_view name;
  std::vector<int64_t> extents;
  std::vector<OperandStrides> outputs;
};

const std::array<Layout, layouts_per_op>& layouts() {
  static const std::array<Layout, layouts_per_op> all{{
      {"contiguous", {1103}, {{{{1}, {1}, {1}}}}},
      {"mixed",
       {5, 12, 8},
       {{{{96, 8, 1}, {1, 5, 60}, {0, 0, 1}}},
        {{{0, 8, 1}, {12, 1, 0}, {0, 0, 0}}},
        {{{96, 1, 12}, {192, 16, 2}, {8, 0, 1}}}}},
      {"short rows", {6, 9, 7}, {{{{63, 7, 1}, {0, 1, 0}, {9, 1, 0}}}}},
      {"one element", {}, {{{{}, {}, {}}}}},
      {"empty", {0}, {{{{1}, {1}, {1}}}}},
  }};
  return all;
}

DType result_of(const OpRow& row, DType computation) {
  return row.rule == TypeRule::compare || row.rule == TypeRule::predicate ? DType::b8 : computation;
}

/// Integer division by a tensor stays a call: it may throw. Kernels hold divisions by numbers only.
bool divides_by_number(const OpRow& row, DType dtype) {
  return row.domain == ir::Domain::nonzero_second && !ir::is_float(dtype);
}

void add_output(KernelBuilder& builder, const OpRow& row, DType dtype, const OperandStrides& strides,
                const std::vector<int64_t>& extents) {
  const DType computation = ir::computation_dtype(dtype);
  std::vector<Slot> operands;
  for (size_t i = 0; i < row.arity; ++i) {
    const bool condition = row.rule == TypeRule::select && i == 0;
    if (i == 1 && divides_by_number(row, dtype)) {
      operands.push_back(builder.number(int64_t{7}, computation));
      continue;
    }
    const Slot value = builder.input(condition ? DType::b8 : dtype, strides[i]);
    operands.push_back(condition || dtype == computation ? value : builder.cast(value, computation));
  }
  const DType result = result_of(row, computation);
  const Slot value = builder.op(row.name, operands, result);
  const DType stored = result == DType::b8 ? DType::b8 : dtype;
  builder.output(stored, stored == result ? value : builder.cast(value, stored), row_major(extents));
}

/// The reference computes in double; libm's f32 functions and the cheap ones for halves are this close to it. CUDA
/// promises no sign for the zero among two of the extremes.
Tolerance tolerance_of(const OpRow& row, DType dtype) {
  static const std::set<std::string_view> either_zero{"maximum", "minimum", "fmax", "fmin"};
  const std::string_view text = row.native().llvm.floating;
  const bool calls = text.starts_with("call:") || text.starts_with("inverse:");
  return {.ulps = ir::is_half(dtype) ? 1.0 : calls ? 6.0 : 0.0, .signed_zero = !either_zero.contains(row.name)};
}

}  // namespace

std::vector<DType> kernel_dtypes() {
  return {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
          DType::i32, DType::i16, DType::i8,  DType::u8,   DType::b8};
}

std::vector<Case> op_cases(DType dtype) {
  const DType computation = ir::computation_dtype(dtype);
  std::vector<Case> cases;
  for (const OpRow& row : ir::op_table()) {
    if (!row.is_native() || row.rule == TypeRule::cast || row.native().llvm_text(computation).empty()) continue;
    for (const Layout& layout : layouts()) {
      KernelBuilder builder(fmt::format("fused_{}", row.name), layout.extents);
      for (const auto& strides : layout.outputs) add_output(builder, row, dtype, strides, layout.extents);
      cases.push_back({.name = fmt::format("{} {} {}", row.name, ir::name(dtype), layout.name),
                       .kernel = builder.kernel(),
                       .tolerance = tolerance_of(row, dtype),
                       .domain = row.domain});
    }
  }
  return cases;
}

}  // namespace sinter::test
