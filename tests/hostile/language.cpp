#include "groups.h"
#include "programs.h"

/// Texts: decoders with caches, search, sampling, attention and losses over sequences.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;

void a_search_by_beams(Session& s) {
  auto embedding = s.adopt(nn::Embedding(11, 6));
  auto head = s.adopt(nn::Linear(6, 11));
  auto f = s.compile([&](const Tensor& start, int64_t length) {
    Tensor tokens = start.unsqueeze(1), scores = at::zeros({3}, head->weight.options());
    for (int64_t t = 0; t < length; ++t) {
      const Tensor state = embedding->forward(tokens).mean(1);
      const Tensor all = scores.unsqueeze(1) + at::log_softmax(head->forward(state), -1);
      const auto [best, flat] = all.flatten().topk(3);
      const Tensor beam = flat.div(11, "floor"), word = flat.remainder(11);
      tokens = at::cat({tokens.index_select(0, beam), word.unsqueeze(1)}, 1);
      scores = best;
    }
    return std::make_pair(tokens, scores);
  });
  for (int call = 0; call < 8; ++call) f(s.integers(11, {3}), 4);
}

void a_cache_of_fixed_size_with_a_position(Session& s) {
  Tensor keys = at::zeros({1, 2, 16, 4}, s.options());
  Tensor at = at::zeros({1}, s.options(at::kLong));
  s.watch("keys", &keys);
  s.watch("at", &at);
  auto f = s.compile([&](const Tensor& k, const Tensor& q) {
    keys.index_copy_(2, at, k);
    const Tensor hidden = at::arange(16, at.options()) > at;
    const Tensor scores = at::matmul(q, keys.transpose(-1, -2)).masked_fill(hidden, -1e9);
    at.add_(1);
    return at::matmul(at::softmax(scores, -1), keys);
  });
  for (int call = 0; call < 10; ++call) f(s.randn({1, 2, 1, 4}), s.randn({1, 2, 1, 4}));
}

void a_token_drawn_from_the_likeliest(Session& s) {
  auto f = s.compile([](const Tensor& logits, double temperature, double mass) {
    const auto [sorted, order] = at::softmax(logits / temperature, -1).sort(-1, true);
    const Tensor beyond = sorted.cumsum(-1) - sorted > mass;
    const Tensor kept = sorted.masked_fill(beyond, 0);
    const Tensor drawn = at::multinomial(kept / kept.sum(-1, true), 1);
    return order.gather(-1, drawn);
  });
  for (int call = 0; call < 9; ++call) f(s.randn({3, 20}), 0.7 + 0.1 * (call % 3), 0.9);
}

void attention_over_sentences_that_are_padded(Session& s) {
  auto table = s.adopt(nn::Embedding(nn::EmbeddingOptions(20, 8).padding_idx(0)));
  auto attention = s.adopt(nn::Linear(8, 8));
  auto f = s.compile([&](const Tensor& tokens) {
    const Tensor padding = tokens.eq(0);
    const Tensor x = table->forward(tokens);
    const Tensor ahead = at::ones({tokens.size(1), tokens.size(1)}, tokens.options().dtype(at::kBool)).triu(1);
    const Tensor hidden = padding.unsqueeze(1).logical_or(ahead);
    const Tensor scores = at::bmm(attention->forward(x), x.transpose(1, 2)).masked_fill(hidden, -1e4);
    const Tensor y = at::bmm(at::softmax(scores, -1), x).masked_fill(padding.unsqueeze(-1), 0);
    return y.sum(1) / padding.logical_not().sum(1, true).clamp_min(1);
  });
  for (int call = 0; call < 10; ++call) {
    const int64_t length = 6 + call % 2;
    const Tensor tokens = s.integers(19, {3, length}) + 1;
    f(tokens * (at::arange(length, tokens.options()) < s.integers(length, {3, 1}) + 1));
  }
}

void a_loss_over_alignments(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(5, 6));
  const std::vector<int64_t> frames{7, 6}, letters{3, 2};
  auto f = s.compile([&](const Tensor& x, const Tensor& targets) {
    layer->zero_grad();
    const Tensor loss = at::ctc_loss(at::log_softmax(layer->forward(x), -1), targets, frames, letters);
    loss.backward();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({7, 2, 5}), s.integers(5, {2, 3}) + 1);
}

void classes_with_some_mass_elsewhere(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(4, 7));
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    layer->zero_grad();
    const Tensor logs = at::log_softmax(layer->forward(x), -1);
    const Tensor target = at::full_like(logs, 0.1 / 6).scatter_(1, y.unsqueeze(1), 0.9);
    const Tensor loss = at::kl_div(logs, target.detach(), at::Reduction::Sum) / x.size(0);
    const Tensor other = at::cross_entropy_loss(layer->forward(x), y, {}, at::Reduction::Mean, -100, 0.1);
    (loss + other).backward();
    return at::stack({loss.detach(), other.detach(), (logs.argmax(-1) == y).to(at::kFloat).mean()});
  });
  for (int call = 0; call < 8; ++call) f(s.randn({5, 4}), s.integers(7, {5}));
}

/// A table filled row by row over a diagonal, as strings are compared.
void a_distance_between_strings(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    Tensor row = at::arange(b.size(0) + 1, b.options());
    for (int64_t i = 0; i < a.size(0); ++i) {
      const Tensor change = row.slice(0, 0, -1) + a[i].ne(b);
      const Tensor best = at::minimum(change, row.slice(0, 1) + 1);
      const Tensor first = at::full({1}, i + 1, b.options());
      const Tensor steps = at::arange(b.size(0) + 1, b.options());
      row = std::get<0>(at::cummin(at::cat({first, best}) - steps, 0)) + steps;
    }
    return row[-1].item<int64_t>();
  });
  for (int call = 0; call < 8; ++call) f(s.integers(4, {5}), s.integers(4, {80}));
}

void words_counted_and_weighed(Session& s) {
  auto f = s.compile([](const Tensor& documents) {
    const Tensor counts = at::zeros({documents.size(0), 30}, documents.options().dtype(at::kFloat))
                              .scatter_add(1, documents, at::ones_like(documents, at::kFloat));
    const Tensor rare = at::log(documents.size(0) / (1.0 + (counts > 0).sum(0)));
    const Tensor weighed = counts / documents.size(1) * rare;
    return at::matmul(weighed, weighed.t()) / weighed.norm(2, {1}).clamp_min(1e-6).unsqueeze(1);
  });
  for (int call = 0; call < 8; ++call) f(s.integers(30, {4, 25}));
}

void runs_of_letters_merged(Session& s) {
  auto f = s.compile([](const Tensor& letters) {
    const auto [merged, inverse, counts] = at::unique_consecutive(letters, true, true);
    return std::make_tuple(merged, counts, letters * 2 + inverse);
  });
  for (int call = 0; call < 8; ++call) f(s.integers(2, {90}));
}

const Program programs[] = {
    {"a_search_by_beams", a_search_by_beams},
    {"a_cache_of_fixed_size_with_a_position", a_cache_of_fixed_size_with_a_position},
    {"a_token_drawn_from_the_likeliest", a_token_drawn_from_the_likeliest},
    {"attention_over_sentences_that_are_padded", attention_over_sentences_that_are_padded},
    {"a_loss_over_alignments", a_loss_over_alignments},
    {"classes_with_some_mass_elsewhere", classes_with_some_mass_elsewhere},
    {"a_distance_between_strings", a_distance_between_strings},
    {"words_counted_and_weighed", words_counted_and_weighed},
    {"runs_of_letters_merged", runs_of_letters_merged},
};

}  // namespace

std::span<const Program> language_programs() { return programs; }

}  // namespace sinter::test::hostile
