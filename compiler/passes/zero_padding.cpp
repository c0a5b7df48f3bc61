#include "compiler/passes/zero_padding.h"

#include <utility>

namespace sinter::passes {

using namespace ir;

ValueId side_by_side(Rewriter& rewrite, std::vector<Arg> parts, uint32_t dim, ScopeId scope) {
  if (parts.size() == 1) return *parts.front().value();
  const Type first = rewrite.next().type(*parts.front().value());
  std::vector<Dim> sizes = first.sizes;
  for (size_t i = 1; i < parts.size(); ++i) {
    sizes[dim] = sizes[dim] + rewrite.next().type(*parts[i].value()).sizes[dim];
  }
  return rewrite.add(Join{dim}, std::move(parts), dense_like(first, std::move(sizes)), scope);
}

ValueId among_zeros(Rewriter& rewrite, ValueId value, uint32_t dim, int64_t before, int64_t after, ScopeId scope) {
  const Type like = rewrite.next().type(value);
  const auto zeros = [&](int64_t count) {
    std::vector<Dim> sizes = like.sizes;
    sizes[dim] = count;
    return Arg{rewrite.add(Primitive{op_named("cast")}, {{0.0}}, dense_like(like, std::move(sizes)), scope)};
  };
  std::vector<Arg> parts{{value}};
  if (before > 0) parts.insert(parts.begin(), zeros(before));
  if (after > 0) parts.push_back(zeros(after));
  return side_by_side(rewrite, std::move(parts), dim, scope);
}

}  // namespace sinter::passes
