#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "compiler/ir/op_types.h"
#include "tests/llvm/harness.h"
#include "tests/llvm/kernels.h"
#include "tests/llvm/values.h"

/// Every native row of the op table, in every dtype it has a form for, against its reference function.
namespace sinter::test {
namespace {

using ir::DType;
using ir::OpRow;
using ir::TypeRule;
using kernel::Slot;

constexpr std::array dtypes{DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                            DType::i32, DType::i16, DType::i8,  DType::u8,   DType::b8};

/// How the operands and the result of a test lie in memory.
struct Layout {
  std::string_view name;
  std::vector<int64_t> extents;
  std::array<std::vector<int64_t>, 3> operands;  ///< strides
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all{
      {"contiguous", {147}, {{{1}, {1}, {1}}}},
      {"transposed", {21, 37}, {{{1, 21}, {37, 1}, {1, 21}}}},
      {"broadcast", {5, 43}, {{{43, 1}, {0, 1}, {1, 0}}}},
      {"short rows", {4, 9, 3}, {{{27, 3, 1}, {3, 0, 1}, {0, 9, 27}}}},
      {"one element", {}, {{{}, {}, {}}}},
      {"empty", {0}, {{{1}, {1}, {1}}}},
  };
  return all;
}

DType result_of(const OpRow& row, DType computation) {
  return row.rule == TypeRule::compare || row.rule == TypeRule::predicate ? DType::b8 : computation;
}

/// Integer division by a tensor stays a call: it may throw. Kernels hold divisions by numbers only.
bool divides_by_number(const OpRow& row, DType dtype) {
  return row.domain == ir::Domain::nonzero_second && !ir::is_float(dtype);
}

kernel::Kernel op_kernel(const OpRow& row, DType dtype, const Layout& layout) {
  const DType computation = ir::computation_dtype(dtype);
  KernelBuilder b(fmt::format("{}_{}", row.name, ir::name(dtype)), layout.extents);
  std::vector<Slot> operands;
  for (size_t i = 0; i < row.arity; ++i) {
    const bool condition = row.rule == TypeRule::select && i == 0;
    if (i == 1 && divides_by_number(row, dtype)) {
      operands.push_back(b.number(int64_t{7}, computation));
      continue;
    }
    const Slot value = b.input(condition ? DType::b8 : dtype, layout.operands[i]);
    operands.push_back(condition || dtype == computation ? value : b.cast(value, computation));
  }
  const DType result = result_of(row, computation);
  const Slot value = b.op(row.name, operands, result);
  const DType stored = result == DType::b8 ? DType::b8 : dtype;
  b.output(stored, stored == result ? value : b.cast(value, stored), row_major(layout.extents));
  return b.kernel();
}

/// SLEEF's functions promise one unit, ATen's choice of sine and cosine 3.5; inverses are rounded twice; the rest is
/// exact.
Tolerance tolerance_of(const OpRow& row) {
  const std::string_view text = row.native().llvm.floating;
  const bool calls = text.starts_with("call:") || text.starts_with("inverse:");
  static const std::set<std::string_view> either_zero{"maximum", "minimum", "fmax", "fmin"};
  return {.ulps = calls ? 4.0 : 0.0, .signed_zero = !either_zero.contains(row.name)};
}

/// SLEEF's fmod, as ATen's, loses precision where the quotient is large.
Draw draw_of(const OpRow& row, size_t operand) {
  return {.domain = row.domain, .operand = operand, .special = row.name != "fmod"};
}

class EveryOp : public testing::TestWithParam<size_t> {
 protected:
  static const OpRow& row() { return ir::op_table()[GetParam()]; }

  static std::string check(DType dtype, const Layout& layout, int vector_bits) {
    const kernel::Kernel kernel = op_kernel(row(), dtype, layout);
    std::vector<Buffer> params = make_params(kernel);
    std::mt19937_64 random(17);
    for (size_t p = 0; p < params.size(); ++p) fill(params[p], random, draw_of(row(), p));
    return compare_with_reference(kernel, params, vector_bits, tolerance_of(row()));
  }
};

std::vector<size_t> native_rows() {
  std::vector<size_t> rows;
  for (size_t i = 0; i < ir::op_table().size(); ++i) {
    const OpRow& row = ir::op_table()[i];
    if (row.is_native() && row.rule != TypeRule::cast) rows.push_back(i);
  }
  return rows;
}

bool has_form(const OpRow& row, DType dtype) { return !row.native().llvm_text(ir::computation_dtype(dtype)).empty(); }

TEST_P(EveryOp, agrees_with_its_reference_in_every_dtype_and_layout) {
  for (const DType dtype : dtypes) {
    if (!has_form(row(), dtype)) continue;
    for (const Layout& layout : layouts()) {
      const std::string difference = check(dtype, layout, runtime::host_vector_bits());
      ASSERT_EQ(difference, "") << layout.name;
    }
  }
}

TEST_P(EveryOp, agrees_with_its_reference_on_narrower_vectors) {
  for (const int width : host_widths()) {
    for (const DType dtype : dtypes) {
      if (width == runtime::host_vector_bits() || !has_form(row(), dtype)) continue;
      ASSERT_EQ(check(dtype, layouts().front(), width), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpTable, EveryOp, testing::ValuesIn(native_rows()),
                         [](const auto& param) { return std::string(ir::op_table()[param.param].name); });

}  // namespace
}  // namespace sinter::test
