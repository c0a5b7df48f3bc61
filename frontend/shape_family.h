#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/symbolic_graph.h"
#include "frontend/dynamic_marks.h"
#include "frontend/entry.h"
#include "frontend/trace/size_coverage.h"

namespace sinter::frontend {

/// Which sizes of a symbol captures have shown, and for which the caller vouches.
class Coverage {
 public:
  void add(int64_t size);
  /// The caller vouches for these.
  void add_range(int64_t min, int64_t max);
  [[nodiscard]] bool contains(int64_t size) const;

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;
  SizeCoverage seen_;
};

/// Calls that differ in sizes of arguments, and whose captures are one graph with other numbers. Used by one thread at
/// a time.
class ShapeFamily {
 public:
  /// Why captures are no family: what differs and does not follow from sizes. `evidence` is false where nothing speaks
  /// against the sizes being dynamic but that 0 and 1 are programs of their own.
  struct Refusal {
    std::string reason;
    bool evidence = true;
  };

  /// Joins two captures of one program under guards that differ in sizes only.
  [[nodiscard]] static std::variant<std::shared_ptr<ShapeFamily>, Refusal> make(const Trace& first,
                                                                                const Trace& second);

  /// The sizes that change, in a call whose guards fit but for sizes; nothing when the call is no member.
  [[nodiscard]] std::optional<std::vector<int64_t>> bind(const detail::Flat& arguments) const;
  /// True when captures under sizes like these have been seen.
  [[nodiscard]] bool covers(std::span<const int64_t> sizes) const;
  /// Takes sizes the caller vouches for as seen.
  void set_promises(std::vector<SizePromise> promises);
  /// What a capture of the call would be, without running it; nothing when the call is no member after all.
  [[nodiscard]] std::optional<Trace> instantiate(std::span<const int64_t> sizes, const detail::Flat& arguments) const;

  enum class Joined : uint8_t {
    as_expected,   ///< the capture is what `instantiate` makes
    solved_again,  ///< the numbers follow in another way than thought: what was instantiated so far is void
    refused,
  };
  struct Outcome {
    Joined joined = Joined::refused;
    Refusal refusal;
  };
  /// Adds a capture of a call.
  [[nodiscard]] Outcome add(const Trace& captured, const detail::Flat& arguments);

  /// The entry that stands for the family in reports.
  [[nodiscard]] const std::shared_ptr<Entry>& head() const { return head_; }
  void set_head(std::shared_ptr<Entry> head) { head_ = std::move(head); }
  /// The entry of the first shape, compiled before anybody knew of others.
  [[nodiscard]] const std::shared_ptr<Entry>& founder() const { return founder_; }
  void set_founder(std::shared_ptr<Entry> founder) { founder_ = std::move(founder); }
  /// "f32[s0,64]", for each input.
  [[nodiscard]] std::string signature() const;
  /// "s0: size[0] of input 0, size[1] of input 2".
  [[nodiscard]] std::vector<std::string> describe() const;

 private:
  ShapeFamily(Trace trace, ir::SymbolicGraph graph, std::vector<ir::Numbers> samples);
  void cover(std::span<const int64_t> sizes);
  void cover_samples();
  [[nodiscard]] Outcome solve_again(const Trace& captured);

  Trace trace_;  ///< one of the captures
  ir::SymbolicGraph graph_;
  std::vector<ir::Numbers> samples_;
  std::vector<Coverage> coverage_;             ///< by symbol
  std::vector<std::set<int64_t>> remainders_;  ///< by rounding of the graph
  std::vector<SizePromise> promises_;
  std::shared_ptr<Entry> head_, founder_;
};

}  // namespace sinter::frontend
