#include "runtime/product.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace sinter::runtime {
namespace {

constexpr std::array<std::string_view, 3> activation_names = {"", ", relu", ", gelu tanh"};

constexpr std::array<std::string_view, 3> sums_names = {"rounded", "f32", "whole"};

std::string_view name_of(ProductActivation activation) { return activation_names[static_cast<size_t>(activation)]; }

std::string key_of(const ProductOperand& operand) {
  return fmt::format("{}{}/{}", operand.turned ? 't' : 'n', operand.line, operand.matrix);
}

}  // namespace

std::string to_string(const ProductProblem& p) {
  const std::string batch = p.batch == 1 ? "" : fmt::format("{},", p.batch);
  return fmt::format("{0}[{1}{2},{4}] x {0}[{1}{4},{3}]{5}{6}{7}", ir::name(p.dtype), batch, p.rows, p.columns, p.terms,
                     p.bias ? " + bias" : "", p.summand ? " + summand" : "", name_of(p.activation));
}

std::string key_of(const ProductProblem& p) {
  return fmt::format("{} left {} right {} sums {} alignment {}", to_string(p), key_of(p.left), key_of(p.right),
                     sums_names[static_cast<size_t>(p.sums)], p.alignment);
}

}  // namespace sinter::runtime
