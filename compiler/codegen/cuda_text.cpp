#include "compiler/codegen/cuda_text.h"

#include "compiler/codegen/cuda_guards.h"
#include "compiler/codegen/cuda_params.h"

namespace sinter::codegen {

using kernel::Param;
using kernel::Slot;

CudaText::CudaText(const kernel::Kernel& kernel, bool wide)
    : kernel_(kernel),
      sizes_(kernel.generic_sizes),
      index_(wide, sizes_),
      expressions_(cuda_expressions(kernel)),
      live_(live_slots(kernel, operands_of(expressions_))),
      guards_(shared_guards(kernel, 1, false)),
      chosen_(kernel.params.size(), false) {}

void CudaText::choose_addresses_of(const std::vector<bool>& loads) {
  for (const bool joined : {true, false}) {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (is_memory_load(slot) && loads[slot] == joined) chosen_[load(slot).param] = joined;
    }
  }
}

void CudaText::take_outputs_as_given() {
  for (size_t p = 0; p < kernel_.params.size(); ++p) {
    if (kernel_.params[p].role == Param::Role::output && !kernel_.params[p].in_place) chosen_[p] = true;
  }
}

std::string CudaText::joining(Slot reduction) const {
  return fmt::format("[]({0} a, {0} b) -> {0} {{ return {1}; }}", cuda_type(kernel_.body[reduction].dtype),
                     joined(reduction, "a", "b"));
}

void CudaText::name_all_dims(char letter, size_t first, std::vector<std::string>& dims) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].find(' ') == std::string::npos) continue;
    line("const {} {}{} = {};", index_.type(), letter, first + d, dims[d]);
    dims[d] = fmt::format("{}{}", letter, first + d);
  }
}

CudaFunction CudaText::finish(uint32_t block, uint32_t resident) const {
  std::string params = cuda_declarations(kernel_.params);
  for (size_t n = 0; n < sizes_.values().size(); ++n) {
    params += fmt::format("{}const {} n{}", params.empty() ? "" : ", ", index_.type(), n);
  }
  const std::string bounds = resident == 0 ? fmt::format("{}", block) : fmt::format("{}, {}", block, resident);
  const std::string signature =
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n", bounds, kernel_.name, params);
  return {signature + beginning() + lines() + "}\n", sizes_.values()};
}

std::string CudaText::beginning() const {
  std::string lines = "  wait_for_earlier();\n";
  for (uint32_t p = 0; p < kernel_.params.size(); ++p) {
    if (kernel_.params[p].role == Param::Role::host_scalar || chosen_[p]) continue;
    lines += fmt::format("  {0} = from_here({0});\n", param_name(p));
  }
  return lines;
}

std::string CudaText::param_name(uint32_t param) const { return cuda_param_name(kernel_.params[param], param); }

const kernel::Load& CudaText::load(Slot slot) const { return std::get<kernel::Load>(kernel_.body[slot].operation); }

bool CudaText::is_load(Slot slot) const { return std::holds_alternative<kernel::Load>(kernel_.body[slot].operation); }

bool CudaText::is_memory_load(Slot slot) const {
  return live_[slot] && memory_load(kernel_, kernel_.body[slot]) != nullptr;
}

const kernel::Gather* CudaText::gather(Slot slot) const {
  return live_[slot] ? std::get_if<kernel::Gather>(&kernel_.body[slot].operation) : nullptr;
}

std::string CudaText::places(const kernel::Gather& gather, const std::vector<std::string>& names) const {
  std::string text;
  for (const kernel::Gather::Term& term : gather.terms) {
    text += fmt::format(" + place_in({}, {})", names[term.position], index_.number(term.extent));
    if (term.stride != 1) text += fmt::format(" * {}", index_.number(term.stride));
  }
  return text;
}

std::string CudaText::pack_type(ir::DType dtype, const LaneAccess& access, int64_t width) {
  const int64_t chunk = access.kind == LaneAccess::Kind::vector ? access.chunk : 1;
  return fmt::format("pack<{}, {}, {}>", cuda_type(dtype), width, chunk * ir::bytes_of(dtype));
}

std::string CudaText::host_scalar(Slot slot) const {
  const ir::DType passed = ir::is_float(kernel_.body[slot].dtype) ? ir::DType::f64 : ir::DType::i64;
  return cuda_cast(param_name(load(slot).param), passed, kernel_.body[slot].dtype);
}

std::string CudaText::expression(Slot slot, const std::vector<std::string>& names) const {
  const Expression& e = expressions_[slot];
  std::vector<std::string> operands;
  for (const Slot operand : e.operands) operands.push_back(names[operand]);
  return render(e.text, cuda_type(computation_dtype(kernel_, slot)), operands);
}

std::string CudaText::identity(Slot reduction) const {
  const auto& reduce = std::get<kernel::Reduce>(kernel_.body[reduction].operation);
  return identity(reduce.op, kernel_.body[reduction].dtype);
}

std::string CudaText::identity(ir::ReductionId reduction, ir::DType dtype) {
  return cuda_literal(ir::identity(reduction, dtype), dtype);
}

std::string CudaText::joined(Slot reduction, const std::string& a, const std::string& b) const {
  const auto& reduce = std::get<kernel::Reduce>(kernel_.body[reduction].operation);
  return joined(reduce.op, kernel_.body[reduction].dtype, a, b);
}

std::string CudaText::joined(ir::ReductionId reduction, ir::DType dtype, const std::string& a, const std::string& b) {
  return render(ir::row(ir::combiner(reduction)).native().cuda_text(dtype), cuda_type(dtype), {a, b});
}

void CudaText::take_own_or_last(std::string_view name, const std::string& own, const std::string& count, bool partial) {
  if (!partial) return line("const {} {} = {};", index_.type(), name, own);
  line("const {} own = {};", index_.type(), own);
  line("const bool stores = own < {};", count);
  line("const {} {} = stores ? own : {} - 1u;", index_.type(), name, count);
}

std::span<const int64_t> CudaText::outer_extents() const {
  return std::span(kernel_.extents).first(kernel_.extents.size() - kernel_.reduced);
}

std::span<const int64_t> CudaText::row_extents() const { return std::span(kernel_.extents).last(kernel_.reduced); }

std::string CudaText::answer(Slot slot, const std::vector<std::string>& dims) const {
  if (const auto* position = std::get_if<kernel::Position>(&kernel_.body[slot].operation)) {
    const std::string index = index_.at(position->index, dims);
    return fmt::format("static_cast<{}>(static_cast<{}>({}))", cuda_type(kernel_.body[slot].dtype),
                       index_.signed_type(), index);
  }
  const auto& question = std::get<kernel::Inside>(kernel_.body[slot].operation);
  ir::Index from_begin = question.index;
  from_begin.affine.offset -= question.begin;
  return fmt::format("{} < {}", index_.at(from_begin, dims), index_.number(question.end - question.begin));
}

std::string CudaText::condition(Slot guard, const std::vector<std::string>& names,
                                const std::vector<std::string>& dims) const {
  if (!names[guard].empty()) return names[guard];
  const auto* both = std::get_if<kernel::Compute>(&kernel_.body[guard].operation);
  if (both == nullptr) return answer(guard, dims);
  return condition(both->operands[0], names, dims) + " && " + condition(both->operands[1], names, dims);
}

std::string CudaText::parenthesised(const std::string& text) {
  return text.find(' ') == std::string::npos ? text : "(" + text + ")";
}

}  // namespace sinter::codegen
