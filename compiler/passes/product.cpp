#include "compiler/passes/product.h"

namespace sinter::passes {
namespace {

using namespace ir;

bool is_one(const Arg& arg) { return arg == Arg{int64_t{1}} || arg == Arg{1.0}; }

}  // namespace

std::optional<Product> product_of(const Node& node) {
  const auto* call = node.as<Call>();
  if (call == nullptr || call->impure || node.results.size() != 1) return std::nullopt;
  return product_of(call->op, node.args);
}

std::optional<Product> product_of(std::string_view op, std::span<const Arg> args) {
  const bool mm = op == "aten::mm" && args.size() == 2;
  const bool addmm = op == "aten::addmm" && args.size() == 5 && is_one(args[3]) && is_one(args[4]);
  if (!mm && !addmm) return std::nullopt;
  const size_t first = addmm ? 1 : 0;
  const ValueId* left = args[first].value();
  const ValueId* right = args[first + 1].value();
  if (left == nullptr || right == nullptr || (addmm && args[0].value() == nullptr)) return std::nullopt;
  Product product{*left, *right, std::nullopt};
  if (addmm) product.bias = *args[0].value();
  return product;
}

}  // namespace sinter::passes
