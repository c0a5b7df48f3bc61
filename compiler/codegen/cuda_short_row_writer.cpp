#include "compiler/codegen/cuda_short_row_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sinter::codegen {
namespace {

using kernel::Kernel;
using kernel::Level;
using kernel::Slot;

class ShortRowWriter : private CudaText {
  using Kind = LaneAccess::Kind;

 public:
  ShortRowWriter(const Kernel& kernel, const ShortRowSchedule& schedule)
      : CudaText(kernel, schedule.wide),
        plan_(schedule),
        levels_(kernel::levels(kernel)),
        names_(kernel.body.size()),
        stores_of_(kernel.body.size()),
        missing_(kernel.stores.size(), 0) {
    take_outputs_as_given();
    find_held();
    find_stores();
  }

  CudaFunction function() {
    find_row();
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!live_[slot]) continue;
      visit(slot);
      for (const size_t store : stores_of_[slot]) store_known(store);
    }
    write_elements();
    return finish(plan_.block);
  }

 private:
  [[nodiscard]] bool is_reduction(Slot slot) const {
    return std::holds_alternative<kernel::Reduce>(kernel_.body[slot].operation);
  }
  [[nodiscard]] std::string_view type_of(Slot slot) const { return cuda_type(kernel_.body[slot].dtype); }
  [[nodiscard]] bool has_lanes() const { return plan_.width > 1; }

  /// Elements are written in runs, each up to a reduction. Those that a later run reads are held beside the runs.
  void find_held() {
    held_.assign(kernel_.body.size(), false);
    std::vector<size_t> run(kernel_.body.size(), 0);
    size_t current = 0;
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      run[slot] = current;
      for (const Slot operand : expressions_[slot].operands) {
        if (live_[slot] && run[operand] != current) held_[operand] = true;
      }
      if (live_[slot] && is_reduction(slot)) ++current;
    }
  }

  /// Neighbours that one access stores wait for each other.
  void find_stores() {
    size_t first = 0;
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      stores_of_[kernel_.stores[i].value].push_back(i);
      if (is_of_elements(i)) continue;
      if (plan_.stores[i].kind != Kind::scalar) first = i;
      ++missing_[first];
      first_of_.resize(i + 1);
      first_of_[i] = first;
    }
  }

  [[nodiscard]] bool is_of_elements(size_t store) const { return varies_in_row(kernel_, kernel_.stores[store].index); }

  void find_row() {
    line("const unsigned lane = threadIdx.x % {}u;", plan_.threads);
    line("const {} row = {} * {} + threadIdx.x / {}u;", index_.type(), index_.block(),
         index_.literal(plan_.rows_per_block), plan_.threads);
    if (kernel_.rows() % plan_.rows_per_block != 0) line("if (row >= {}) return;", index_.literal(kernel_.rows()));
    line("const {} p = lane * {};", index_.type(), index_.literal(plan_.width));
    row_ = index_.dims_of("row", outer_extents());
    name_all_dims('i', 0, row_);
    std::vector<std::string> inner = index_.dims_of("p", row_extents());
    name_all_dims('i', row_.size(), inner);
    point_ = row_;
    point_.insert(point_.end(), inner.begin(), inner.end());
    row_.resize(kernel_.extents.size(), "0u");
  }

  void visit(Slot slot) {
    if (const auto* immediate = std::get_if<kernel::Immediate>(&kernel_.body[slot].operation)) {
      names_[slot] = cuda_literal(immediate->value, kernel_.body[slot].dtype);
    } else if (is_reduction(slot)) {
      sum_ = slot;
      write_elements();
    } else if (levels_[slot] == Level::element) {
      elements_.push_back(slot);
    } else {
      line("const {} v{} = {};", type_of(slot), slot, value_of_row(slot));
      names_[slot] = fmt::format("v{}", slot);
    }
  }

  [[nodiscard]] std::string value_of_row(Slot slot) const {
    if (!is_load(slot)) return expression(slot, names_);
    if (!is_memory_load(slot)) return host_scalar(slot);
    return fmt::format("{}[{}]", param_name(load(slot).param), index_.at(load(slot).index, row_));
  }

  // Stores.

  void store_known(size_t store) {
    if (is_of_elements(store)) return element_stores_.push_back(store);
    const size_t first = first_of_[store];
    if (--missing_[first] == 0) store_of_row(first);
  }

  void store_of_row(size_t first) {
    const kernel::Store& store = kernel_.stores[first];
    const std::string into = param_name(store.param);
    const std::string at = index_.at(store.index, row_);
    if (plan_.stores[first].kind != Kind::vector) {
      return line("if (lane == 0u) {}[{}] = {};", into, at, names_[store.value]);
    }
    const int64_t count = plan_.stores[first].chunk;
    open("if (lane == 0u) {{");
    line("{} y;", pack_type(kernel_.params[store.param].dtype, plan_.stores[first], count));
    for (int64_t k = 0; k < count; ++k) line("y.v[{}] = {};", k, names_[kernel_.stores[first + k].value]);
    line("store({} + {}, y);", into, parenthesised(at));
    close();
  }

  // Elements.

  /// Writes those that wait, and the reduction that waits for them.
  void write_elements() {
    if (elements_.empty() && element_stores_.empty() && !sum_) return;
    for (const Slot slot : elements_) {
      if (is_load(slot)) {
        load_elements(slot);
      } else if (has_lanes() && held_[slot]) {
        line("{} x{}[{}];", type_of(slot), slot, plan_.width);
      }
    }
    for (const size_t i : element_stores_) {
      if (has_lanes() && plan_.stores[i].kind == Kind::vector) line("{} y{};", store_type(i), i);
    }
    if (sum_) line("{} a{} = {};", type_of(*sum_), *sum_, identity(*sum_));
    if (has_lanes()) {
      line("#pragma unroll");
      open("for (unsigned k = 0; k < {}u; ++k) {{", plan_.width);
    }
    compute_lane();
    if (has_lanes()) close();
    for (const size_t i : element_stores_) {
      if (!has_lanes() || plan_.stores[i].kind != Kind::vector) continue;
      const kernel::Store& store = kernel_.stores[i];
      line("store({} + {}, y{});", param_name(store.param), parenthesised(index_.at(store.index, point_)), i);
    }
    if (sum_) join_threads(*sum_);
    elements_.clear();
    element_stores_.clear();
    sum_.reset();
  }

  void compute_lane() {
    for (const Slot slot : elements_) {
      if (is_load(slot)) continue;
      line("const {} v{} = {};", type_of(slot), slot, expression(slot, names_));
      names_[slot] = fmt::format("v{}", slot);
      if (has_lanes() && held_[slot]) line("x{}[k] = v{};", slot, slot);
    }
    if (sum_) {
      const std::string& operand = names_[std::get<kernel::Reduce>(kernel_.body[*sum_].operation).operand];
      line("a{0} = {1};", *sum_, joined(*sum_, fmt::format("a{}", *sum_), operand));
    }
    for (const size_t i : element_stores_) store_element(i);
    if (!has_lanes()) return;
    for (const Slot slot : elements_) {
      if (held_[slot] && !is_load(slot)) names_[slot] = fmt::format("x{}[k]", slot);
    }
  }

  void load_elements(Slot slot) {
    const LaneAccess& access = plan_.loads[slot];
    const std::string from = param_name(load(slot).param);
    const std::string at = index_.at(load(slot).index, point_);
    if (!has_lanes() || access.kind == Kind::uniform) {
      line("const {} x{} = {}[{}];", type_of(slot), slot, from, at);
      names_[slot] = fmt::format("x{}", slot);
      return;
    }
    const std::string type = pack_type(kernel_.body[slot].dtype, access, plan_.width);
    names_[slot] = fmt::format("x{}.v[k]", slot);
    if (access.kind == Kind::vector) {
      return line("const {0} x{1} = load<{0}>({2} + {3});", type, slot, from, parenthesised(at));
    }
    line("{} x{};", type, slot);
    line("#pragma unroll");
    open("for (unsigned k = 0; k < {}u; ++k) {{", plan_.width);
    line("x{}.v[k] = {}[{}];", slot, from, index_.at(load(slot).index, lane_point()));
    close();
  }

  [[nodiscard]] std::string store_type(size_t i) const {
    return pack_type(kernel_.params[kernel_.stores[i].param].dtype, plan_.stores[i], plan_.width);
  }

  void store_element(size_t i) {
    const kernel::Store& store = kernel_.stores[i];
    if (has_lanes() && plan_.stores[i].kind == Kind::vector) return line("y{}.v[k] = {};", i, names_[store.value]);
    line("{}[{}] = {};", param_name(store.param), index_.at(store.index, has_lanes() ? lane_point() : point_),
         names_[store.value]);
  }

  /// Position of lane k.
  [[nodiscard]] std::vector<std::string> lane_point() const {
    std::vector<std::string> dims = point_;
    dims.back() = fmt::format("({} + k)", dims.back());
    return dims;
  }

  /// After this every thread of the row has the value.
  void join_threads(Slot slot) {
    line("const {0} v{1} = join_lanes<{2}u>(a{1}, {3});", type_of(slot), slot, plan_.threads, joining(slot));
    names_[slot] = fmt::format("v{}", slot);
  }

  const ShortRowSchedule& plan_;
  std::vector<Level> levels_;
  std::vector<bool> held_;                      ///< by slot: elements that a later run reads
  std::vector<std::string> names_;              ///< by slot
  std::vector<std::vector<size_t>> stores_of_;  ///< by slot
  std::vector<size_t> first_of_;    ///< by store of a value of the row: the first one of those that are stored with it
  std::vector<size_t> missing_;     ///< by such a first one: values that are not known yet
  std::vector<std::string> row_;    ///< of the row's first point: a text for each loop
  std::vector<std::string> point_;  ///< of this thread's first point
  std::vector<Slot> elements_;      ///< that wait
  std::vector<size_t> element_stores_;  ///< of these, or of values of the row
  std::optional<Slot> sum_;             ///< the reduction that waits
};

}  // namespace

CudaFunction cuda_short_row_function(const Kernel& kernel, const ShortRowSchedule& schedule) {
  return ShortRowWriter(kernel, schedule).function();
}

}  // namespace sinter::codegen
