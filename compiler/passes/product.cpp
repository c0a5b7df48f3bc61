#include "compiler/passes/product.h"

namespace sinter::passes {
namespace {

using namespace ir;

bool is_one(const Arg& arg) { return arg == Arg{int64_t{1}} || arg == Arg{1.0}; }

}  // namespace

std::optional<Product> product_of(const Node& node) {
  const auto* call = node.as<Call>();
  if (call == nullptr || call->impure || node.results.size() != 1) return std::nullopt;
  const bool mm = call->op == "aten::mm" && node.args.size() == 2;
  const bool addmm = call->op == "aten::addmm" && node.args.size() == 5 && is_one(node.args[3]) && is_one(node.args[4]);
  if (!mm && !addmm) return std::nullopt;
  const size_t first = addmm ? 1 : 0;
  const ValueId* left = node.args[first].value();
  const ValueId* right = node.args[first + 1].value();
  if (left == nullptr || right == nullptr || (addmm && node.args[0].value() == nullptr)) return std::nullopt;
  Product product{*left, *right, std::nullopt};
  if (addmm) product.bias = *node.args[0].value();
  return product;
}

}  // namespace sinter::passes
