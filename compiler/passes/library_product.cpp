#include "compiler/passes/library_product.h"

namespace sinter::passes {
namespace {

ir::Arg as_arg(std::optional<ir::ValueId> value) { return value ? ir::Arg{*value} : ir::Arg{}; }

}  // namespace

std::pair<ir::Call, std::vector<ir::Arg>> call_of(const LibraryProduct& product) {
  ir::Call call;
  call.op = library_product;
  std::vector<ir::Arg> args{{product.left},
                            {product.right},
                            as_arg(product.bias),
                            as_arg(product.summand),
                            {std::string(product.activation)},
                            {product.seconds}};
  return {std::move(call), std::move(args)};
}

bool has_library_product(const ir::Type& operand) {
  return is_half(operand.dtype) && operand.device.kind == ir::Device::Kind::cuda;
}

}  // namespace sinter::passes
