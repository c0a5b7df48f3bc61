#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "compiler/codegen/llvm_row_text.h"

/// Rows one after the other, vectors of neighbouring points. Each pass goes through the row with several vectors at a
/// time, each with accumulators of its own; the rest of a line under a mask.
namespace sinter::codegen {

namespace {

using kernel::Kernel;
using kernel::Slot;

class AlongRows : public LlvmRowText {
 public:
  AlongRows(const Kernel& kernel, int vector_bits, const LlvmRowSchedule& schedule)
      : LlvmRowText(kernel, vector_bits, schedule, make_nest_along_rows(kernel, schedule.lanes)),
        unroll_(schedule.unroll) {}

  std::string run() {
    open();
    blocks_.counted({.name = "row", .first = "%begin", .end = "%end"}, 1, {},
                    [&](const std::string& row) { write_row(row); });
    return close();
  }

 private:
  /// A row is made of lines, the innermost loop of the nest each.
  [[nodiscard]] std::span<const int64_t> outer_extents() const {
    return std::span(kernel_.extents).first(kernel_.extents.size() - kernel_.reduced);
  }
  [[nodiscard]] std::span<const int64_t> line_extents() const {
    const size_t outer = outer_extents().size();
    return std::span(nest_.extents).subspan(outer, nest_.rank() - 1 - outer);
  }
  [[nodiscard]] int64_t lines() const { return kernel_.row_points() / nest_.inner(); }

  void write_row(const std::string& row) {
    values_ = once_;
    outer_ = split_index(row, outer_extents());
    std::vector<std::string> dims = outer_;
    dims.resize(nest_.rank() - 1, "0");
    const Place place = place_of_row(std::move(dims));
    const Step whole{.index = "0", .mask = ""};
    row_values(passes_.row_values, place, whole, values_);
    for (size_t p = 0; p < passes_.passes.size(); ++p) {
      const RowPass& pass = passes_.passes[p];
      if (reads_row(pass)) go_through_row(pass, fmt::format("pass{}", p));
      row_values(pass.row_values, place, whole, values_);
    }
    for (const size_t store : passes_.row_stores) {
      const ir::DType dtype = kernel_.params[kernel_.stores[store].param].dtype;
      emit_first_lane_store(out_, place.stores[store], dtype, stored(store, values_), lanes_);
    }
  }

  /// Vectors side by side. Short bodies gain from independent accumulators; calls gain nothing.
  [[nodiscard]] int64_t unroll_of(const RowPass& pass) const {
    const auto any = [&](auto is) { return std::ranges::any_of(pass.elements, is); };
    if (any([&](Slot slot) { return stays_call(slot); })) return 1;
    const bool is_long = pass.elements.size() > 12 || any([&](Slot slot) { return is_call(kernel_, slot); });
    return is_long ? std::min<int64_t>(unroll_, 2) : unroll_;
  }

  /// The accumulators of a pass: for each reduction one a vector.
  struct Accumulators {
    std::vector<std::vector<Accumulator>> of;

    [[nodiscard]] std::vector<Accumulator*> first(size_t vectors) {
      std::vector<Accumulator*> all;
      for (auto& reduction : of) {
        for (size_t v = 0; v < vectors; ++v) all.push_back(&reduction[v]);
      }
      return all;
    }
  };

  void go_through_row(const RowPass& pass, const std::string& name) {
    const int64_t unroll = unroll_of(pass);
    Accumulators accumulators;
    for (const Slot reduction : pass.reductions) {
      accumulators.of.emplace_back(static_cast<size_t>(unroll), accumulator(reduction));
    }
    if (line_extents().empty()) {
      go_through_line(pass, name, place_of(pass, outer_, "0"), accumulators, unroll);
    } else {
      accumulating_loop({.name = name + ".line", .first = "0", .end = out_.count(lines())}, 1, lines(),
                        accumulators.first(static_cast<size_t>(unroll)), [&](const std::string& line) {
                          go_through_line(pass, name, place_of_line(pass, line), accumulators, unroll);
                        });
    }
    for (size_t r = 0; r < pass.reductions.size(); ++r) {
      values_[pass.reductions[r]] = joined_lanes(pass.reductions[r], accumulators.of[r]);
    }
  }

  Place place_of_line(const RowPass& pass, const std::string& line) {
    std::vector<std::string> dims = outer_;
    std::ranges::copy(split_index(line, line_extents()), std::back_inserter(dims));
    const bool keeps = std::ranges::find(passes_.kept, true) != passes_.kept.end();
    const std::string kept = keeps ? out_.value("mul i64 {}, {}", line, out_.count(kept_points_ / lines())) : "0";
    return place_of(pass, std::move(dims), kept);
  }

  void go_through_line(const RowPass& pass, const std::string& name, const Place& place, Accumulators& accumulators,
                       int64_t unroll) {
    const bool generic = out_.sizes().generic();
    const int64_t inner = nest_.inner();
    const int64_t points = lanes_ * unroll;
    const std::string main_end = out_.count(inner / points * points);
    const std::string whole_end = out_.count(inner / lanes_ * lanes_);
    const auto turn = [&](const std::string& index, const std::string& mask, size_t vector) {
      run_turn(pass, place, {.step = {.index = index, .mask = mask}, .kept_index = index}, accumulators, vector);
    };
    if (generic || inner >= points) {
      accumulating_loop({.name = name, .first = "0", .end = main_end, .may_be_empty = generic}, points, inner / points,
                        accumulators.first(static_cast<size_t>(unroll)), [&](const std::string& index) {
                          for (int64_t v = 0; v < unroll; ++v) {
                            turn(v == 0 ? index : out_.value("add i64 {}, {}", index, v * lanes_), "",
                                 static_cast<size_t>(v));
                          }
                        });
    }
    if (unroll > 1 && (generic || inner % points >= lanes_)) {
      accumulating_loop({.name = name + ".vectors", .first = main_end, .end = whole_end, .may_be_empty = generic},
                        lanes_, unroll, accumulators.first(1), [&](const std::string& index) { turn(index, "", 0); });
    }
    if (!generic && inner % lanes_ != 0) turn(whole_end, first_lanes(inner % lanes_, lanes_), 0);
    if (!generic) return;
    const std::string rest = out_.count(inner % lanes_);
    const std::string has_rest = out_.value("icmp sgt i64 {}, 0", rest);
    const std::vector<Accumulator*> first = accumulators.first(1);
    blocks_.branch(
        name + ".tail", has_rest, {first.begin(), first.end()}, [&] { turn(whole_end, mask_below(rest), 0); }, nullptr);
  }

  void run_turn(const RowPass& pass, const Place& place, const Turn& turn, Accumulators& accumulators, size_t vector) {
    const Values values = elements(pass, place, turn, values_);
    for (size_t r = 0; r < pass.reductions.size(); ++r) {
      accumulate(values, turn.step.mask, accumulators.of[r][vector]);
    }
    store_elements(pass, place, turn, values);
  }

  /// Joins vectors, then lanes, in pairs, and gives the result to all lanes.
  std::string joined_lanes(Slot reduction, const std::vector<Accumulator>& accumulators) {
    std::vector<std::string> values;
    for (const Accumulator& accumulator : accumulators) values.push_back(accumulator.value);
    for (size_t count = values.size(); count > 1; count /= 2) {
      for (size_t v = 0; v < count / 2; ++v) values[v] = joined(reduction, values[2 * v], values[2 * v + 1], lanes_);
    }
    const std::string_view element = register_type(kernel_.body[reduction].dtype);
    std::string value = values.front();
    for (int64_t lanes = lanes_; lanes > 2; lanes /= 2) {
      const std::string low = lanes_from(value, element, lanes, 0);
      const std::string high = lanes_from(value, element, lanes, lanes / 2);
      value = joined(reduction, low, high, lanes / 2);
    }
    const std::string pair = vector_of(2, element);
    const std::string swapped = out_.value("shufflevector {0} {1}, {0} poison, <2 x i32> <i32 1, i32 0>", pair, value);
    const std::string both = joined(reduction, value, swapped, 2);
    const std::string first = out_.value("extractelement {} {}, i64 0", pair, both);
    return emit_splat(out_, first, element, lanes_);
  }

  /// Half of a vector, from lane `first` on.
  std::string lanes_from(const std::string& value, std::string_view element, int64_t lanes, int64_t first) {
    std::string mask;
    for (int64_t lane = 0; lane < lanes / 2; ++lane) {
      mask += fmt::format("{}i32 {}", lane == 0 ? "" : ", ", first + lane);
    }
    return out_.value("shufflevector {0} {1}, {0} poison, {2} <{3}>", vector_of(lanes, element), value,
                      vector_of(lanes / 2, "i32"), mask);
  }

  const int64_t unroll_;
  std::vector<std::string> outer_;  ///< of the row: an index for each outer loop
  Values values_;                   ///< of the row
};

}  // namespace

LlvmRowFunction llvm_function_along_rows(const Kernel& kernel, int vector_bits, const LlvmRowSchedule& schedule) {
  AlongRows writer(kernel, vector_bits, schedule);
  std::string text = writer.run();
  return {.text = std::move(text), .sizes = writer.sizes(), .block = 1};
}

}  // namespace sinter::codegen
