#pragma once

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// A value is broadcast, and copied for each user, when its user has at least this many times its elements.
constexpr int64_t broadcast_factor = 8;

/// Gives every primitive and join that reads a cheap value a copy of its own, so that regions need not store it:
/// constants, casts to a dtype at least as wide, values broadcast into much larger ones, and those whose users share
/// them out among each other (query, key and value of one product with its bias). What is computed once (frozen.h) and
/// read on every call stays one value. The first step of `fuse`.
void spread_cheap(ir::Graph& graph, bool freeze);

}  // namespace sinter::passes
