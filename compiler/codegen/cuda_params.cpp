#include "compiler/codegen/cuda_params.h"

#include <fmt/format.h>

#include "compiler/codegen/cuda_expression.h"

namespace sinter::codegen {
namespace {

using kernel::Param;

std::string declaration(const Param& param, uint32_t index) {
  if (param.role == Param::Role::host_scalar) {
    return fmt::format("const {} {}", ir::is_float(param.dtype) ? "double" : "long long",
                       cuda_param_name(param, index));
  }
  const char* constness = param.role == Param::Role::input ? "const " : "";
  const char* restricted = param.in_place ? "" : "__restrict__ ";
  return fmt::format("{}{}* {}{}", constness, cuda_type(param.dtype), restricted, cuda_param_name(param, index));
}

}  // namespace

std::string cuda_param_name(const Param& param, uint32_t index) {
  switch (param.role) {
    case Param::Role::host_scalar:
      return fmt::format("scalar{}", index);
    case Param::Role::output:
      return fmt::format("out{}", index);
    case Param::Role::input:
      break;
  }
  return fmt::format("in{}", index);
}

std::string cuda_declarations(std::span<const Param> params) {
  std::string list;
  for (uint32_t p = 0; p < params.size(); ++p) list += (p == 0 ? "" : ", ") + declaration(params[p], p);
  return list;
}

}  // namespace sinter::codegen
