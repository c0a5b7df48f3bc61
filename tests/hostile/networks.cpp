#include "groups.h"
#include "programs.h"

/// Graphs of nodes and edges: messages summed by index, ranks until they settle, searches by levels.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;

/// Sources and targets of random edges.
Tensor edges_among(Session& s, int64_t nodes, int64_t edges) { return s.integers(nodes, {2, edges}); }

void messages_between_nodes(Session& s) {
  auto layer = s.adopt(nn::Linear(4, 4));
  auto f = s.compile([&](const Tensor& x, const Tensor& edges) {
    const Tensor from = edges[0], to = edges[1];
    const Tensor degree = at::ones({x.size(0)}, x.options()).index_add(0, to, at::ones({to.size(0)}, x.options()));
    const Tensor scale = degree.rsqrt();
    const Tensor messages =
        layer->forward(x).index_select(0, from) * (scale.index({from}) * scale.index({to})).unsqueeze(1);
    return at::relu(at::zeros_like(x).index_add_(0, to, messages));
  });
  for (int call = 0; call < 9; ++call) f(s.randn({10, 4}), edges_among(s, 10, 40 + 5 * (call % 3)));
}

Tensor softmax_by_target(const Tensor& scores, const Tensor& to, int64_t nodes) {
  const Tensor most = at::full({nodes}, -1e9, scores.options()).scatter_reduce(0, to, scores, "amax");
  const Tensor raised = at::exp(scores - most.index({to}));
  const Tensor sums = at::zeros({nodes}, scores.options()).scatter_add(0, to, raised);
  return raised / (sums.index({to}) + 1e-12);
}

void attention_over_edges(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(3, 4));
  auto score = s.adopt(nn::Linear(8, 1));
  torch::optim::AdamW optimizer(layer->parameters(), 0.01);
  auto f = s.compile([&](const Tensor& x, const Tensor& edges, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor h = layer->forward(x);
    const Tensor pairs = at::cat({h.index({edges[0]}), h.index({edges[1]})}, -1);
    const Tensor weights =
        softmax_by_target(at::leaky_relu(score->forward(pairs), 0.2).squeeze(1), edges[1], x.size(0));
    const Tensor out = at::zeros_like(h).index_add(0, edges[1], weights.unsqueeze(1) * h.index({edges[0]}));
    const Tensor loss = at::cross_entropy_loss(out, y);
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({7, 3}), edges_among(s, 7, 20), s.integers(4, {7}));
}

/// How many graphs there are is read from the batch.
void graphs_pooled(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& graph) {
    const int64_t graphs = graph.max().item<int64_t>() + 1;
    const Tensor index = graph.unsqueeze(1).expand_as(x);
    const Tensor zero = at::zeros({graphs, x.size(1)}, x.options());
    return std::make_tuple(zero.scatter_reduce(0, index, x, "mean", false),
                           zero.scatter_reduce(0, index, x, "amax", false), at::bincount(graph, {}, graphs));
  });
  for (int call = 0; call < 9; ++call) {
    const Tensor graph = at::arange(12, s.options(at::kLong)).div(6 - call % 3, "floor");
    f(s.randn({12, 3}), graph);
  }
}

void ranks_until_they_settle(Session& s) {
  auto f = s.compile([](const Tensor& links) {
    const Tensor out = links.sum(1, true).clamp_min(1);
    const Tensor step = (links / out).t();
    Tensor rank = at::full({links.size(0)}, 1.0 / static_cast<double>(links.size(0)), links.options());
    int64_t turns = 0;
    for (; turns < 50; ++turns) {
      const Tensor next = 0.5 * step.mv(rank) + 0.5 / static_cast<double>(links.size(0));
      const bool settled = (next - rank).abs().sum().item<double>() < 1e-4;
      rank = next;
      if (settled) break;
    }
    return std::make_pair(rank, turns);
  });
  for (int call = 0; call < 8; ++call) f((s.randn({9, 9}, at::kDouble) > 0.5).to(at::kDouble));
}

void a_search_by_levels(Session& s) {
  auto f = s.compile([](const Tensor& links, int64_t start) {
    Tensor seen = at::zeros({links.size(0)}, links.options());
    seen[start] = true;
    Tensor level = at::where(seen, 0, -1);
    for (int64_t depth = 1; depth < links.size(0); ++depth) {
      const Tensor next = links.index({seen}).any(0) & ~seen;
      if (!next.any().item<bool>()) break;
      level.masked_fill_(next, depth);
      seen = seen | next;
    }
    return level;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({12, 12}) > 1, call % 3);
}

void paths_of_least_cost(Session& s) {
  auto f = s.compile([](const Tensor& costs) {
    Tensor least = costs.clone();
    for (int64_t k = 0; k < costs.size(0); ++k) {
      least = at::minimum(least, least.select(1, k).unsqueeze(1) + least.select(0, k).unsqueeze(0));
    }
    return least;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({6, 6}).abs());
}

void labels_that_spread(Session& s) {
  Tensor labels = at::arange(20, s.options(at::kLong));
  s.watch("labels", &labels);
  auto f = s.compile([&](const Tensor& edges) {
    const Tensor least = labels.scatter_reduce(0, edges[1], labels.index({edges[0]}), "amin");
    const Tensor changed = (least != labels).sum();
    labels.copy_(least);
    return changed;
  });
  for (int call = 0; call < 9; ++call) f(edges_among(s, 20, 70));
}

void neighbours_drawn(Session& s) {
  auto table = s.adopt(nn::Embedding(15, 4));
  auto f = s.compile([&](const Tensor& neighbours, const Tensor& nodes) {
    const Tensor rows = neighbours.index_select(0, nodes);
    const Tensor chosen = rows.gather(1, at::randint(rows.size(1), {nodes.size(0), 3}, rows.options()));
    const Tensor mixed = at::cat({table->forward(nodes), table->forward(chosen).mean(1)}, 1);
    return torch::nn::functional::normalize(mixed);
  });
  for (int call = 0; call < 8; ++call) f(s.integers(15, {15, 6}), s.integers(15, {5}));
}

const Program programs[] = {
    {"messages_between_nodes", messages_between_nodes},
    {"attention_over_edges", attention_over_edges},
    {"graphs_pooled", graphs_pooled},
    {"ranks_until_they_settle", ranks_until_they_settle},
    {"a_search_by_levels", a_search_by_levels},
    {"paths_of_least_cost", paths_of_least_cost},
    {"labels_that_spread", labels_that_spread},
    {"neighbours_drawn", neighbours_drawn},
};

}  // namespace

std::span<const Program> network_programs() { return programs; }

}  // namespace sinter::test::hostile
