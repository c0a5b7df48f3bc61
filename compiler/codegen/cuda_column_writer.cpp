#include "compiler/codegen/cuda_column_writer.h"

#include <fmt/format.h>

#include <ranges>
#include <span>
#include <utility>

namespace sinter::codegen {
namespace {

using kernel::Kernel;
using kernel::Slot;
using Kind = LaneAccess::Kind;

class ColumnWriter : private CudaText {
 public:
  ColumnWriter(const Kernel& kernel, const ColumnSchedule& schedule)
      : CudaText(kernel, schedule.wide), plan_(schedule), pass_(schedule.passes.passes.front()) {}

  CudaFunction function() {
    std::vector<std::string> names(kernel_.body.size());
    name_numbers(names);
    const std::vector<std::string> numbers = names;
    find_columns();
    values_of_columns(names);
    go_through(std::move(names));
    finish_column(numbers);
    return finish(plan_.block);
  }

 private:
  [[nodiscard]] int64_t columns_of_block() const { return plan_.beside * plan_.width; }
  /// True where the last block has threads without columns.
  [[nodiscard]] bool is_partial() const { return kernel_.rows() % columns_of_block() != 0; }
  [[nodiscard]] std::string_view type_of(Slot slot) const { return cuda_type(kernel_.body[slot].dtype); }

  /// What is one number for all columns: literals and host scalars.
  void name_numbers(std::vector<std::string>& names) const {
    for (Slot slot = 0; slot < names.size(); ++slot) {
      const auto* immediate = std::get_if<kernel::Immediate>(&kernel_.body[slot].operation);
      if (immediate != nullptr) names[slot] = cuda_literal(immediate->value, kernel_.body[slot].dtype);
      if (live_[slot] && is_load(slot) && !is_memory_load(slot)) names[slot] = host_scalar(slot);
    }
  }

  /// The first of this thread's columns, and its position in the outer loops.
  void find_columns() {
    line("const unsigned lane = threadIdx.x / {}u;", plan_.beside);
    take_own_or_last("vector", fmt::format("{} * {}u + threadIdx.x % {}u", index_.block(), plan_.beside, plan_.beside),
                     index_.literal(kernel_.rows() / plan_.width), is_partial());
    line("const {} first = vector * {}u;", index_.type(), plan_.width);
    dims_ = index_.dims_of("first", outer_extents());
    name_all_dims('i', 0, dims_);
  }

  /// An index at these positions of the outer loops; the others are at their beginning.
  [[nodiscard]] std::string at(const ir::Index& index, std::vector<std::string> dims) const {
    dims.resize(kernel_.extents.size(), "0u");
    return index_.at(index, dims);
  }

  void open_columns() {
    line("#pragma unroll");
    open("for (unsigned k = 0; k < {}u; ++k) {{", plan_.width);
  }

  /// Slots of `row_values` that elements need.
  [[nodiscard]] std::vector<bool> needed_by_elements() const {
    std::vector<bool> needed(kernel_.body.size(), false);
    const auto need_operands = [&](Slot slot) {
      for (const Slot operand : expressions_[slot].operands) needed[operand] = true;
    };
    for (const Slot slot : pass_.reductions) need_operands(slot);
    for (const Slot slot : pass_.elements) need_operands(slot);
    for (const size_t i : pass_.stores) needed[kernel_.stores[i].value] = true;
    for (const Slot slot : std::views::reverse(plan_.passes.row_values)) {
      if (needed[slot]) need_operands(slot);
    }
    return needed;
  }

  /// What elements need of their columns, for all columns of the thread: r5[k].
  void values_of_columns(std::vector<std::string>& names) {
    const std::vector<bool> needed = needed_by_elements();
    std::vector<Slot> values;
    for (const Slot slot : plan_.passes.row_values) {
      if (needed[slot] && names[slot].empty()) values.push_back(slot);
    }
    if (values.empty()) return;
    for (const Slot slot : values) {
      if (is_load(slot) && is_vector(slot)) {
        line("const {0} x{1} = load<{0}>({2} + {3});", loaded_type(slot), slot, param_name(load(slot).param),
             parenthesised(at(load(slot).index, dims_)));
      }
      line("{} r{}[{}];", type_of(slot), slot, plan_.width);
    }
    open_columns();
    for (const Slot slot : values) {
      names[slot] = fmt::format("r{}[k]", slot);
      line("r{}[k] = {};", slot, is_load(slot) ? element_of_column(slot) : expression(slot, names));
    }
    close();
  }

  [[nodiscard]] std::string element_of_column(Slot slot) const {
    if (is_vector(slot)) return fmt::format("x{}.v[k]", slot);
    std::vector<std::string> dims = dims_;
    dims.back() = fmt::format("({} + k)", dims.back());
    return fmt::format("{}[{}]", param_name(load(slot).param), at(load(slot).index, dims));
  }

  void go_through(std::vector<std::string> names) {
    for (const Slot slot : pass_.reductions) line("{} a{}[{}];", type_of(slot), slot, plan_.width);
    open_columns();
    for (const Slot slot : pass_.reductions) line("a{}[k] = {};", slot, identity(slot));
    close();
    const std::string count = index_.count(kernel_.row_points());
    open("for ({} first_point = lane; first_point < {}; first_point += {}) {{", index_.type(), count,
         index_.literal(plan_.lanes * plan_.batch));
    load_batch(names);
    open_points();
    compute_point(std::move(names));
    close_points();
    close();
  }

  /// Opens the loop over the points of a batch.
  void open_points() {
    line("#pragma unroll");
    open("for (unsigned u = 0; u < {}u; ++u) {{", plan_.batch);
    line("const {} p = first_point + u * {}u;", index_.type(), plan_.lanes);
    open("if (p < {}) {{", index_.count(kernel_.row_points()));
    std::vector<std::string> inner = index_.dims_of("p", row_extents());
    name_all_dims('i', dims_.size(), inner);
    point_ = dims_;
    point_.insert(point_.end(), inner.begin(), inner.end());
  }

  void close_points() {
    close();
    close();
  }

  /// Loads what the points of a batch have, and names it.
  void load_batch(std::vector<std::string>& names) {
    for (const Slot slot : pass_.elements) {
      if (is_load(slot)) line("{} x{}[{}];", loaded_type(slot), slot, plan_.batch);
    }
    open_points();
    for (const Slot slot : pass_.elements) {
      if (!is_load(slot)) continue;
      const std::string from = param_name(load(slot).param);
      const std::string place = index_.at(load(slot).index, point_);
      if (is_vector(slot)) {
        line("x{}[u] = load<{}>({} + {});", slot, loaded_type(slot), from, parenthesised(place));
      } else {
        line("x{}[u] = {}[{}];", slot, from, place);
      }
      names[slot] = fmt::format("x{}[u]{}", slot, is_vector(slot) ? ".v[k]" : "");
    }
    close_points();
  }

  void compute_point(std::vector<std::string> names) {
    for (const size_t i : pass_.stores) line("{} y{};", store_type(i), i);
    open_columns();
    for (const Slot slot : pass_.elements) {
      if (is_load(slot)) continue;
      line("const {} v{} = {};", type_of(slot), slot, expression(slot, names));
      names[slot] = fmt::format("v{}", slot);
    }
    for (const Slot slot : pass_.reductions) {
      const std::string sum = fmt::format("a{}[k]", slot);
      line("{} = {};", sum, joined(slot, sum, names[expressions_[slot].operands.front()]));
    }
    for (const size_t i : pass_.stores) line("y{}.v[k] = {};", i, names[kernel_.stores[i].value]);
    close();
    for (const size_t i : pass_.stores) {
      const kernel::Store& store = kernel_.stores[i];
      line("{}store({} + {}, y{});", is_partial() ? "if (stores) " : "", param_name(store.param),
           parenthesised(index_.at(store.index, point_)), i);
    }
  }

  [[nodiscard]] bool is_vector(Slot slot) const { return plan_.loads[slot].kind == Kind::vector; }

  [[nodiscard]] std::string loaded_type(Slot slot) const {
    return is_vector(slot) ? pack_type(kernel_.body[slot].dtype, plan_.loads[slot], plan_.width)
                           : std::string(type_of(slot));
  }

  [[nodiscard]] std::string store_type(size_t i) const {
    return pack_type(kernel_.params[kernel_.stores[i].param].dtype, plan_.stores[i], plan_.width);
  }

  /// One thread a column: the reductions, what follows from them, and stores.
  void finish_column(std::vector<std::string> names) {
    for (const Slot slot : pass_.reductions) join_threads(slot, names);
    if (plan_.passes.row_stores.empty()) return;
    open("if (threadIdx.x < {}u) {{", columns_of_block());
    line("const {} column = {} * {}u + threadIdx.x;", index_.type(), index_.block(), columns_of_block());
    if (is_partial()) line("if (column >= {}) return;", index_.literal(kernel_.rows()));
    std::vector<std::string> dims = index_.dims_of("column", outer_extents());
    name_all_dims('j', 0, dims);
    const std::vector<bool> needed = needed_by_stores();
    for (const auto* values : {&plan_.passes.row_values, &pass_.row_values}) {
      for (const Slot slot : *values) {
        if (!needed[slot] || !names[slot].empty()) continue;
        const bool loads = is_load(slot);
        line("const {} v{} = {};", type_of(slot), slot,
             loads ? fmt::format("{}[{}]", param_name(load(slot).param), at(load(slot).index, dims))
                   : expression(slot, names));
        names[slot] = fmt::format("v{}", slot);
      }
    }
    for (const size_t i : plan_.passes.row_stores) {
      const kernel::Store& store = kernel_.stores[i];
      line("{}[{}] = {};", param_name(store.param), at(store.index, dims), names[store.value]);
    }
    close();
  }

  /// Slots that stores of columns depend on.
  [[nodiscard]] std::vector<bool> needed_by_stores() const {
    std::vector<bool> needed(kernel_.body.size(), false);
    for (const size_t i : plan_.passes.row_stores) needed[kernel_.stores[i].value] = true;
    for (auto slot = static_cast<Slot>(needed.size()); slot-- > 0;) {
      const bool reduces = std::holds_alternative<kernel::Reduce>(kernel_.body[slot].operation);
      if (!needed[slot] || reduces) continue;
      for (const Slot operand : expressions_[slot].operands) needed[operand] = true;
    }
    return needed;
  }

  /// After this every thread has the value of column threadIdx.x of the block, counted round and round.
  void join_threads(Slot slot, std::vector<std::string>& names) {
    const std::string_view type = type_of(slot);
    const int64_t warps = plan_.block / warp_threads;
    line("__shared__ {} partial{}[{}];", type, slot, warps * columns_of_block());
    line("const {0} v{1} = join_columns<{2}u, {3}u>(a{1}, partial{1}, {4});", type, slot, plan_.beside, warps,
         joining(slot));
    names[slot] = fmt::format("v{}", slot);
  }

  const ColumnSchedule& plan_;
  const RowPass& pass_;
  std::vector<std::string> dims_;   ///< of the first column: a text for each outer loop
  std::vector<std::string> point_;  ///< of a point of it: a text for each loop
};

}  // namespace

CudaFunction cuda_column_function(const Kernel& kernel, const ColumnSchedule& schedule) {
  return ColumnWriter(kernel, schedule).function();
}

}  // namespace sinter::codegen
