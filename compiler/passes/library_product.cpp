#include "compiler/passes/library_product.h"

#include <algorithm>
#include <string>
#include <variant>

namespace sinter::passes {
namespace {

ir::Arg as_arg(std::optional<ir::ValueId> value) { return value ? ir::Arg{*value} : ir::Arg{}; }

std::optional<ir::ValueId> as_value(const ir::Arg& arg) {
  return arg.value() == nullptr ? std::nullopt : std::optional(*arg.value());
}

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

std::optional<LibraryProduct> library_product_of(std::string_view op, std::span<const ir::Arg> args) {
  if (op != library_product || args.size() != 6) return std::nullopt;
  const auto left = as_value(args[0]), right = as_value(args[1]);
  const auto* name = std::get_if<std::string>(&args[4].data);
  const auto* seconds = std::get_if<double>(&args[5].data);
  if (!left || !right || name == nullptr || seconds == nullptr) return std::nullopt;
  const auto activation = std::ranges::find(library_activations, *name);
  if (activation == library_activations.end()) return std::nullopt;
  return LibraryProduct{*left, *right, as_value(args[2]), as_value(args[3]), *activation, *seconds};
}

bool has_library_product(const ir::Type& left, const ir::Type& right, const ir::Type& result) {
  return is_half(result.dtype) && left.dtype == result.dtype && right.dtype == result.dtype &&
         result.device.kind == ir::Device::Kind::cuda;
}

}  // namespace sinter::passes
