#pragma once

#include "compiler/ir/graph.h"
#include "compiler/ir/op.h"

namespace sinter::ir {

/// A value seen as memory of another one: views looked through, to the value that is no view.
struct ViewSource {
  ValueId base;
  int64_t offset = 0;    ///< elements after base's first
  bool is_view = false;  ///< at least one view stands between
};

[[nodiscard]] inline ViewSource view_source(const Graph& graph, ValueId value) {
  ViewSource source{value, 0, false};
  while (const auto* view = graph.producer(source.base).as<View>()) {
    source.offset += view->offset;
    source.base = *graph.producer(source.base).args[0].value();
    source.is_view = true;
  }
  return source;
}

/// True for a view that shows a row-major value in other row-major sizes: element i stays element i.
[[nodiscard]] inline bool is_reshape(const Graph& graph, ValueId value) {
  const Node& node = graph.producer(value);
  if (node.as<View>() == nullptr || node.as<View>()->offset != 0) return false;
  const Type& from = graph.type(*node.args[0].value());
  const Type& to = graph.type(value);
  return from.is_contiguous() && to.is_contiguous() && from.numel() == to.numel();
}

/// The value, or the one that it is a copy of in another layout.
[[nodiscard]] inline ValueId before_copy(const Graph& graph, ValueId value) {
  const Node& node = graph.producer(value);
  const auto* primitive = node.as<Primitive>();
  if (primitive == nullptr || primitive->op != op_named("cast") || node.args[0].value() == nullptr) return value;
  const ValueId source = *node.args[0].value();
  const bool copy =
      graph.type(source).dtype == graph.type(value).dtype && graph.type(source).sizes == graph.type(value).sizes;
  return copy ? source : value;
}

/// memory_of through views as well.
[[nodiscard]] inline ValueId memory_base(const Graph& graph, ValueId value) {
  ValueId base = view_source(graph, value).base;
  while (graph.value(base).alias) base = view_source(graph, graph.value(base).alias->base).base;
  return base;
}

}  // namespace sinter::ir
