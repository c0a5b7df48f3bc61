#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/support/report.h"
#include "runtime/product.h"

namespace sinter::runtime {

class DiskCache;
struct CacheKey;

/// How a product is computed.
struct ProductChoice {
  std::optional<ProductAlgorithm> algorithm;  ///< none: as LibTorch computes it
  std::string name;                           ///< of the alternative, as in `measured`
  std::string origin;                         ///< see ChoiceRecord
  std::vector<ChoiceRecord::Alternative> measured;
};

/// What LibTorch's way, and the library's first, are called among the alternatives.
inline constexpr std::string_view libtorch_way = "LibTorch";
[[nodiscard]] std::string library_way(size_t index);

/// The alternative to take, by index: the fastest, but the first one where that is as fast but for noise.
[[nodiscard]] size_t pick(const std::vector<ChoiceRecord::Alternative>& measured);

/// A measured choice as text for the disk, and back; nothing where it is no such text.
[[nodiscard]] std::string encode(const ProductChoice& choice);
[[nodiscard]] std::optional<ProductChoice> decode(std::string_view text);

/// How a caller computes the problem that it asks about.
struct ProductTrial {
  double seconds = 0;  ///< that measuring may take; 0: what is not known is guessed
  void* stream = nullptr;
  /// Enqueues the problem on the stream by an algorithm, or as LibTorch computes it (null). False where the library
  /// refuses the algorithm.
  std::function<bool(const ProductAlgorithm*)> compute;
};

/// Choices of this process, by device and problem, and those that earlier ones left on disk. Thread-safe; one problem
/// is measured at a time.
class ProductChoices {
 public:
  explicit ProductChoices(DiskCache& disk) : disk_(disk) {}

  /// The choice for a problem on the current device. Measures where nobody has, the trial gives time for it, and the
  /// stream is not being recorded. Else a guess: LibTorch's way for what LibTorch computes in one call.
  [[nodiscard]] std::shared_ptr<const ProductChoice> choose(const ProductProblem& problem, const ProductTrial& trial);

  /// Those of the process, with its cache on disk.
  [[nodiscard]] static ProductChoices& process();

 private:
  using Found = std::shared_ptr<const ProductChoice>;

  [[nodiscard]] Found known(const CacheKey& key) const;
  [[nodiscard]] Found remember(const CacheKey& key, ProductChoice choice);
  [[nodiscard]] std::optional<ProductChoice> on_disk(const CacheKey& key) const;

  DiskCache& disk_;
  mutable std::shared_mutex mutex_;
  std::mutex measuring_;
  std::map<std::pair<std::string, std::string>, Found> choices_;  ///< by target and problem
};

}  // namespace sinter::runtime
