#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "compiler/codegen/llvm_row_text.h"

/// Rows that lie side by side, one a lane. A block of several vectors of rows goes through its points together; where
/// fewer rows are left, one vector of them does, under a mask.
namespace sinter::codegen {

namespace {

using kernel::Kernel;
using kernel::Slot;

class AcrossRows : public LlvmRowText {
 public:
  AcrossRows(const Kernel& kernel, int vector_bits, const LlvmRowSchedule& schedule)
      : LlvmRowText(kernel, vector_bits, schedule, make_nest_across_rows(kernel)), unroll_(schedule.unroll) {}

  std::string run() {
    open();
    blocks_.loop({.name = "rows", .first = "%begin", .end = "%end"}, {}, [&](const std::string& row) {
      const std::string taken = write_rows(row);
      return out_.value("add i64 {}, {}", row, taken);
    });
    return close();
  }

 private:
  [[nodiscard]] int64_t block_rows() const { return lanes_ * unroll_; }
  [[nodiscard]] std::span<const int64_t> outer_extents() const {
    return std::span(kernel_.extents).first(kernel_.extents.size() - kernel_.reduced);
  }
  [[nodiscard]] std::span<const int64_t> row_extents() const {
    return std::span(kernel_.extents).last(kernel_.reduced);
  }

  /// Runs rows from `row` on that lie side by side, and answers how many.
  std::string write_rows(const std::string& row) {
    outer_ = split_index(row, outer_extents());
    column_ = outer_.back();
    outer_.pop_back();
    const std::string neighbours = out_.value("sub i64 {}, {}", out_.count(nest_.inner()), column_);
    const std::string in_range = out_.value("sub i64 %end, {}", row);
    const std::string fewer = out_.value("icmp slt i64 {}, {}", neighbours, in_range);
    const std::string count = out_.value("select i1 {}, i64 {}, i64 {}", fewer, neighbours, in_range);
    Carried taken{.type = "i64", .value = "0"};
    const auto part = [&] {
      const std::string all = out_.value("icmp sgt i64 {}, {}", count, lanes_);
      taken.value = out_.value("select i1 {}, i64 {}, i64 {}", all, lanes_, count);
      write_vectors("part", 1, mask_below(taken.value));
    };
    if (nest_.inner() < block_rows() && !out_.sizes().generic()) {
      part();
      return taken.value;
    }
    const auto block = [&] {
      write_vectors("block", static_cast<size_t>(unroll_), "");
      taken.value = fmt::format("{}", block_rows());
    };
    const std::string has_block = out_.value("icmp sge i64 {}, {}", count, block_rows());
    blocks_.branch("block", has_block, {&taken}, block, part);
    return taken.value;
  }

  void write_vectors(const std::string& name, size_t vectors, const std::string& mask) {
    std::vector<Turn> turns;
    for (size_t v = 0; v < vectors; ++v) {
      const int64_t offset = static_cast<int64_t>(v) * lanes_;
      const std::string index = v == 0 ? column_ : out_.value("add i64 {}, {}", column_, offset);
      turns.push_back({.step = {.index = index, .mask = mask}, .kept_index = fmt::format("{}", offset)});
    }
    std::vector<Values> values(vectors, once_);
    std::vector<std::string> dims = outer_;
    dims.resize(nest_.rank() - 1, "0");
    const Place place = place_of_row(std::move(dims));
    const auto compute_rows = [&](const std::vector<Slot>& slots) {
      for (size_t v = 0; v < vectors; ++v) row_values(slots, place, turns[v].step, values[v]);
    };
    compute_rows(passes_.row_values);
    for (size_t p = 0; p < passes_.passes.size(); ++p) {
      const RowPass& pass = passes_.passes[p];
      if (reads_row(pass)) go_through_rows(pass, fmt::format("{}.pass{}", name, p), turns, values);
      compute_rows(pass.row_values);
    }
    for (const size_t store : passes_.row_stores) {
      for (size_t v = 0; v < vectors; ++v) {
        std::string value = stored(store, values[v]);
        emit_store(out_, site(nest_.stores[store], place.stores[store], place), turns[v].step, std::move(value));
      }
    }
  }

  void go_through_rows(const RowPass& pass, const std::string& name, const std::vector<Turn>& turns,
                       std::vector<Values>& values) {
    std::vector<std::vector<Accumulator>> accumulators(turns.size());
    std::vector<Accumulator*> all;
    for (auto& vector : accumulators) {
      for (const Slot reduction : pass.reductions) vector.push_back(accumulator(reduction));
      for (Accumulator& one : vector) all.push_back(&one);
    }
    const int64_t points = kernel_.row_points();
    accumulating_loop({.name = name, .first = "0", .end = out_.count(points)}, 1, points, all,
                      [&](const std::string& point) {
                        const Place place = place_of_point(pass, point);
                        for (size_t v = 0; v < turns.size(); ++v) {
                          const Values here = elements(pass, place, turns[v], values[v]);
                          for (Accumulator& one : accumulators[v]) accumulate(here, "", one);
                          store_elements(pass, place, turns[v], here);
                        }
                      });
    for (size_t v = 0; v < turns.size(); ++v) {
      for (const Accumulator& one : accumulators[v]) values[v][one.reduction] = one.value;
    }
  }

  Place place_of_point(const RowPass& pass, const std::string& point) {
    std::vector<std::string> dims = outer_;
    std::ranges::copy(split_index(point, row_extents()), std::back_inserter(dims));
    const bool keeps = std::ranges::find(passes_.kept, true) != passes_.kept.end();
    const std::string kept = keeps ? out_.value("mul i64 {}, {}", point, block_rows()) : "0";
    return place_of(pass, std::move(dims), kept);
  }

  const int64_t unroll_;
  std::vector<std::string> outer_;  ///< of the rows: an index for each outer loop but the last
  std::string column_;              ///< of the first row in the last outer loop
};

}  // namespace

LlvmRowFunction llvm_function_across_rows(const Kernel& kernel, int vector_bits, const LlvmRowSchedule& schedule) {
  AcrossRows writer(kernel, vector_bits, schedule);
  std::string text = writer.run();
  return {.text = std::move(text), .sizes = writer.sizes(), .block = schedule.lanes * schedule.unroll};
}

}  // namespace sinter::codegen
