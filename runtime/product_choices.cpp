#include "runtime/product_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>

#include "runtime/disk_cache.h"
#include "runtime/product_library.h"

namespace sinter::runtime {
namespace {

using Alternative = ChoiceRecord::Alternative;

/// Ways that the library is asked for: those behind them have not won where it was tried.
constexpr int most_algorithms = 8;
/// Times that differ by less are equal.
constexpr double noise = 0.02;

constexpr std::string_view first_line = "sinter product choice 1";

constexpr std::string_view digits = "0123456789abcdef";

std::string hexadecimal(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<size_t>(byte);
    text += {digits[value / digits.size()], digits[value % digits.size()]};
  }
  return text;
}

std::optional<std::vector<std::byte>> from_hexadecimal(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  for (; !text.empty(); text.remove_prefix(2)) {
    const size_t high = digits.find(text[0]), low = digits.find(text[1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(high * digits.size() + low));
  }
  return bytes;
}

CacheKey cache_key(const ProductProblem& problem) {
  return {.kind = "product",
          .compiler = product_library::version(),
          .target = product_library::target(),
          .text = key_of(problem)};
}

/// What to do where nothing was measured: what LibTorch would need several calls for is one of the library's.
ProductChoice guess(const ProductProblem& problem) {
  ProductChoice choice{
      .algorithm = std::nullopt, .name = std::string(libtorch_way), .origin = "not measured", .measured = {}};
  if (!problem.summand && problem.activation == ProductActivation::none) return choice;
  auto first = product_library::algorithms(problem, 1);
  if (first.empty()) return choice;
  choice.algorithm = std::move(first.front());
  choice.name = library_way(0);
  return choice;
}

struct Measurement {
  ProductChoice choice;
  bool complete = true;  ///< false: the time was up
};

/// Measures the alternatives, LibTorch's first; nothing where that cannot be done now.
std::optional<Measurement> measure(const ProductProblem& problem, const ProductTrial& trial) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto watch = product_library::stopwatch(trial.stream);
  if (watch == nullptr) return std::nullopt;
  const auto algorithms = product_library::algorithms(problem, most_algorithms);
  Measurement result;
  ProductChoice& choice = result.choice;
  choice.origin = "measured";
  const auto time = [&](std::string name, const ProductAlgorithm* algorithm) {
    choice.measured.push_back({std::move(name), watch->microseconds([&] { return trial.compute(algorithm); })});
  };
  time(std::string(libtorch_way), nullptr);
  for (size_t i = 0; i < algorithms.size(); ++i) {
    result.complete = std::chrono::duration<double>(Clock::now() - begin).count() <= trial.seconds;
    if (!result.complete) break;
    time(library_way(i), &algorithms[i]);
  }
  const size_t best = pick(choice.measured);
  choice.name = choice.measured[best].name;
  if (best > 0) choice.algorithm = algorithms[best - 1];
  return result;
}

}  // namespace

std::string library_way(size_t index) { return fmt::format("cuBLASLt {}", index); }

size_t pick(const std::vector<Alternative>& measured) {
  const auto faster = [](const Alternative& a, const Alternative& b) { return a.microseconds < b.microseconds; };
  const auto best = std::ranges::min_element(measured, faster);
  if (best == measured.end() || best->microseconds >= measured.front().microseconds * (1 - noise)) return 0;
  return static_cast<size_t>(best - measured.begin());
}

std::string encode(const ProductChoice& choice) {
  std::string text = fmt::format("{}\nchosen {}\n", first_line, choice.name);
  if (choice.algorithm) {
    text += fmt::format("code {} {}\n", choice.algorithm->workspace_bytes, hexadecimal(choice.algorithm->code));
  }
  for (const Alternative& each : choice.measured) text += fmt::format("took {} {}\n", each.microseconds, each.name);
  return text;
}

std::optional<ProductChoice> decode(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string line;
  if (!std::getline(lines, line) || line != first_line) return std::nullopt;
  ProductChoice choice{.algorithm = std::nullopt, .name = {}, .origin = "disk", .measured = {}};
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string what, rest;
    words >> what >> std::ws;
    if (what == "chosen") {
      std::getline(words, choice.name);
    } else if (what == "code") {
      int64_t workspace = -1;
      words >> workspace >> rest;
      auto code = from_hexadecimal(rest);
      if (workspace < 0 || !code || code->empty()) return std::nullopt;
      choice.algorithm = ProductAlgorithm{std::move(*code), workspace};
    } else if (what == "took") {
      words >> rest >> std::ws;
      Alternative each;
      each.microseconds = std::strtod(rest.c_str(), nullptr);
      std::getline(words, each.name);
      choice.measured.push_back(std::move(each));
    } else {
      return std::nullopt;
    }
  }
  const bool whole = !choice.name.empty() && choice.algorithm.has_value() == (choice.name != libtorch_way);
  return whole ? std::optional(std::move(choice)) : std::nullopt;
}

std::shared_ptr<const ProductChoice> ProductChoices::choose(const ProductProblem& problem, const ProductTrial& trial) {
  const CacheKey key = cache_key(problem);
  const auto suffices = [&](const Found& found) { return found && (!found->measured.empty() || !(trial.seconds > 0)); };
  if (auto found = known(key); suffices(found)) return found;
  if (auto stored = on_disk(key)) return remember(key, std::move(*stored));
  if (!(trial.seconds > 0)) return remember(key, guess(problem));

  const std::lock_guard lock(measuring_);
  if (auto found = known(key); suffices(found)) return found;
  auto measurement = measure(problem, trial);
  if (!measurement) return std::make_shared<const ProductChoice>(guess(problem));
  // A cache that cannot store costs the next process this measurement, and nobody else anything.
  if (measurement->complete) static_cast<void>(disk_.store(key, encode(measurement->choice)));
  return remember(key, std::move(measurement->choice));
}

ProductChoices::Found ProductChoices::known(const CacheKey& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = choices_.find({key.target, key.text});
  return found == choices_.end() ? nullptr : found->second;
}

ProductChoices::Found ProductChoices::remember(const CacheKey& key, ProductChoice choice) {
  auto found = std::make_shared<const ProductChoice>(std::move(choice));
  const std::lock_guard lock(mutex_);
  choices_[{key.target, key.text}] = found;
  return found;
}

std::optional<ProductChoice> ProductChoices::on_disk(const CacheKey& key) const {
  const CacheLookup lookup = disk_.find(key);
  return lookup.hit() ? decode({lookup.payload.data(), lookup.payload.size()}) : std::nullopt;
}

ProductChoices& ProductChoices::process() {
  static ProductChoices instance(DiskCache::process());
  return instance;
}

}  // namespace sinter::runtime
