#include "compiler/kernel/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/ir/print.h"

namespace sinter::kernel {
namespace {

std::string to_string(const ir::Affine& affine) {
  std::vector<std::string> terms;
  if (affine.offset != 0) terms.push_back(fmt::format("{}", affine.offset));
  for (size_t loop = 0; loop < affine.strides.size(); ++loop) {
    const int64_t stride = affine.strides[loop];
    if (stride != 0) terms.push_back(stride == 1 ? fmt::format("i{}", loop) : fmt::format("{}*i{}", stride, loop));
  }
  return terms.empty() ? "0" : fmt::format("{}", fmt::join(terms, " + "));
}

std::string to_string(const ir::QuasiTerm& term) {
  std::string text = fmt::format("{}*(({})", term.scale, to_string(term.inner));
  if (term.divisor != 1) text += fmt::format(" / {}", term.divisor);
  if (term.modulus != 0) text += fmt::format(" % {}", term.modulus);
  return text + ")";
}

std::string to_string(const Param& param) {
  static constexpr std::string_view roles[] = {"in", "out", "scalar"};
  std::string text = fmt::format("{} {}", roles[static_cast<size_t>(param.role)], ir::name(param.dtype));
  if (param.role != Param::Role::host_scalar) text += fmt::format(" align {}", param.alignment);
  return param.in_place ? text + " in_place" : text;
}

struct OperationPrinter {
  std::string operator()(const Load& load) const {
    std::string text = fmt::format("load p{}[{}]", load.param, kernel::to_string(load.index));
    return load.guard ? fmt::format("{} if %{} reach {}", text, *load.guard, load.reach) : text;
  }
  std::string operator()(const Gather& gather) const {
    std::string text = fmt::format("gather p{}[{}]", gather.param, kernel::to_string(gather.index));
    for (const Gather::Term& term : gather.terms) {
      text += fmt::format(" + {}*%{} of {}", term.stride, term.position, term.extent);
    }
    return text;
  }
  std::string operator()(const Position& position) const {
    return fmt::format("position {}", kernel::to_string(position.index));
  }
  std::string operator()(const Inside& inside) const {
    return fmt::format("inside {} in [{}, {})", kernel::to_string(inside.index), inside.begin, inside.end);
  }
  std::string operator()(const Immediate& immediate) const {
    return std::visit([](auto value) { return ir::to_string(ir::Arg{value}); }, immediate.value);
  }
  std::string operator()(const Compute& compute) const {
    std::vector<std::string> operands;
    for (const Slot operand : compute.operands) operands.push_back(fmt::format("%{}", operand));
    return fmt::format("{} {}", ir::row(compute.op).name, fmt::join(operands, ", "));
  }
  std::string operator()(const Reduce& reduce) const {
    return fmt::format("reduce {} %{}", ir::row(reduce.op).name, reduce.operand);
  }
};

}  // namespace

std::string to_string(const ir::Index& index) {
  std::string text = to_string(index.affine);
  for (const ir::QuasiTerm& term : index.terms) text += " + " + to_string(term);
  return text;
}

std::string print(const Kernel& kernel) {
  const size_t rows = kernel.extents.size() - std::min(kernel.reduced, kernel.extents.size());
  const std::span<const int64_t> extents(kernel.extents);
  std::string text = fmt::format("kernel @{} over [{}]", kernel.name, fmt::join(extents.first(rows), ", "));
  if (kernel.reduced > 0) text += fmt::format(" rows [{}]", fmt::join(extents.subspan(rows), ", "));
  std::vector<std::string> params;
  for (const Param& param : kernel.params) params.push_back(to_string(param));
  text += fmt::format(" ({})", fmt::join(params, ", "));
  if (!kernel.half_accuracy) text += " exact";
  if (kernel.generic_sizes) text += " generic";
  text += " {\n";
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    const Instruction& instruction = kernel.body[slot];
    text += fmt::format("  %{} = {} : {}\n", slot, std::visit(OperationPrinter{}, instruction.operation),
                        ir::name(instruction.dtype));
  }
  for (const Store& store : kernel.stores) {
    const std::string joined =
        store.over_group ? fmt::format(" {} over group", ir::row(*store.over_group).name) : std::string();
    text += fmt::format("  store %{} to p{}[{}]{}\n", store.value, store.param, to_string(store.index), joined);
  }
  return text + "}\n";
}

}  // namespace sinter::kernel
