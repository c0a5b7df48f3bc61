#include "compiler/codegen/cuda_row_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "compiler/codegen/cuda_guards.h"
#include "compiler/codegen/cuda_lanes.h"
#include "compiler/codegen/row_passes.h"

namespace sinter::codegen {
namespace {

using kernel::Kernel;
using kernel::Slot;

/// What a thread loads before it stores anything, in registers.
constexpr int64_t most_early_bytes = 128;

class RowWriter : private CudaText {
  using Kind = LaneAccess::Kind;

 public:
  RowWriter(const Kernel& kernel, const RowSchedule& schedule)
      : CudaText(kernel, schedule.wide),
        plan_(schedule),
        levels_(levels(kernel)),
        early_(kernel.body.size(), false),
        names_(kernel.body.size()) {}

  CudaFunction function() {
    name_literals();
    find_row();
    if (plan_.group > 1) {
      open_group();
    } else {
      name_loops("row", outer_extents());
    }
    declare_kept();
    compute_row(plan_.passes.row_values);
    for (const RowPass& pass : plan_.passes.passes) write_pass(pass);
    store_row();
    if (plan_.group > 1) close_group();
    return finish(plan_.block, plan_.resident);
  }

 private:
  void name_literals() {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      const auto* immediate = std::get_if<kernel::Immediate>(&kernel_.body[slot].operation);
      if (immediate != nullptr) names_[slot] = cuda_literal(immediate->value, kernel_.body[slot].dtype);
    }
  }

  // Which row, and where in it.

  /// Names the row `row`, or the group `group`.
  void find_row() {
    const char* row = plan_.group > 1 ? "group" : "row";
    if (plan_.across) {
      find_row_across();
    } else if (plan_.rows_per_block == 1) {
      line("const unsigned lane = threadIdx.x;");
      line("const {} {} = {};", index_.type(), row, index_.block());
    } else {
      line("const unsigned lane = threadIdx.x % {}u;", plan_.threads);
      line("const {} {} = {} * {} + threadIdx.x / {}u;", index_.type(), row, index_.block(),
           index_.literal(plan_.rows_per_block), plan_.threads);
      if (has_partial_block()) line("if ({} >= {}) return;", row, index_.count(kernel_.rows() / plan_.group));
    }
  }

  /// Names the loops outside of a row, `number` of a point of theirs.
  void name_loops(const std::string& number, std::span<const int64_t> extents) {
    dims_ = index_.dims_of(number, extents);
    name_dims('i', 0, dims_);
  }

  // Groups of rows.

  [[nodiscard]] bool joins(size_t store) const { return kernel_.stores[store].over_group.has_value(); }

  /// Opens the loop over the rows of a group. What stores join is held beside it.
  void open_group() {
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      if (joins(i)) line("{} j{}[{}];", group_type(i), i, plan_.steps);
    }
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      if (!joins(i)) continue;
      const ir::DType dtype = kernel_.params[kernel_.stores[i].param].dtype;
      line("#pragma unroll");
      open("for (unsigned s = 0; s < {}u; ++s) {{", plan_.steps);
      if (plan_.width > 1) line("#pragma unroll");
      if (plan_.width > 1) open("for (unsigned k = 0; k < {}u; ++k) {{", plan_.width);
      line("{} = {};", joined_element(i), identity(*kernel_.stores[i].over_group, dtype));
      if (plan_.width > 1) close();
      close();
    }
    name_loops("group", outer_extents().first(outer_extents().size() - 1));
    dims_.push_back("r");
    line("#pragma unroll 1");
    open("for (unsigned r = 0; r < {}u; ++r) {{", plan_.group);
  }

  /// Closes it. The next row's partial values must not meet those that a slower warp still reads.
  void close_group() {
    if (plan_.threads > warp_threads) line("__syncthreads();");
    close();
    open_steps();
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      if (joins(i)) store_joined(i);
    }
    close_steps();
  }

  [[nodiscard]] std::string group_type(size_t i) const {
    const ir::DType dtype = kernel_.params[kernel_.stores[i].param].dtype;
    return plan_.width == 1 ? std::string(cuda_type(dtype)) : store_type(i);
  }

  [[nodiscard]] std::string joined_element(size_t i) const {
    return fmt::format("j{}[s]{}", i, plan_.width > 1 ? ".v[k]" : "");
  }

  void store_joined(size_t i) {
    const kernel::Store& store = kernel_.stores[i];
    const std::string into = param_name(store.param);
    if (plan_.width == 1) return line("{}[{}] = j{}[s];", into, index_.at(store.index, point_), i);
    if (plan_.stores[i].kind == Kind::vector) {
      return line("store({} + {}, j{}[s]);", into, parenthesised(index_.at(store.index, point_)), i);
    }
    line("#pragma unroll");
    open("for (unsigned k = 0; k < {}u; ++k) {{", plan_.width);
    line("{}[{}] = {};", into, index_.at(store.index, lane_dims()), joined_element(i));
    close();
  }

  void find_row_across() {
    line("const unsigned lane = threadIdx.x / 32u;");
    take_own_or_last("row", fmt::format("{} * 32u + threadIdx.x % 32u", index_.block()), index_.count(kernel_.rows()),
                     has_partial_block());
  }

  [[nodiscard]] bool has_partial_block() const {
    return sizes_.generic() || kernel_.rows() / plan_.group % plan_.rows_per_block != 0;
  }

  /// True where only some threads may store.
  [[nodiscard]] bool guards_stores() const { return plan_.across && has_partial_block(); }

  /// Gives every loop that an access depends on a variable of its own; `first` is the number of the first one.
  void name_dims(char letter, size_t first, std::vector<std::string>& dims) {
    for (size_t d = 0; d < dims.size(); ++d) {
      const std::vector<Reference> all = references(kernel_);
      const bool used = std::ranges::any_of(all, [&](const Reference& r) { return depends_on(*r.index, first + d); }) ||
                        std::ranges::any_of(questions(kernel_),
                                            [&](const ir::Index* asked) { return depends_on(*asked, first + d); });
      const bool is_name = dims[d].find(' ') == std::string::npos;
      if (!used || is_name) continue;
      line("const {} {}{} = {};", index_.type(), letter, first + d, dims[d]);
      dims[d] = fmt::format("{}{}", letter, first + d);
    }
  }

  /// Opens the loop over this thread's vectors of the row; the vector begins at point `p` of it.
  void open_steps() {
    const int64_t vectors = kernel_.row_points() / plan_.width;
    const std::string count = index_.count(vectors);
    if (plan_.keep == Keep::nothing) {
      line("#pragma unroll {}", plan_.width == 1 ? 8 : 4);  // loads under way at once
      open("for ({} vec = lane; vec < {}; vec += {}) {{", index_.type(), count, index_.literal(plan_.threads));
    } else {
      line("#pragma unroll");
      open("for (unsigned s = 0; s < {}u; ++s) {{", plan_.steps);
      line("const {} vec = lane + s * {}u;", index_.type(), plan_.threads);
      if (guarded()) open("if (vec < {}) {{", count);
    }
    line("const {} p = vec{};", index_.type(),
         plan_.width == 1 ? "" : fmt::format(" * {}", index_.literal(plan_.width)));
    std::vector<std::string> inner = index_.dims_of("p", row_extents());
    name_dims('i', dims_.size(), inner);
    point_ = dims_;
    point_.insert(point_.end(), inner.begin(), inner.end());
  }

  void close_steps() {
    if (plan_.keep != Keep::nothing && guarded()) close();
    close();
  }

  [[nodiscard]] bool guarded() const { return plan_.steps * plan_.threads * plan_.width != kernel_.row_points(); }

  // Values of a row.

  void compute_row(const std::vector<Slot>& slots) {
    for (const Slot slot : slots) {
      if (std::holds_alternative<kernel::Immediate>(kernel_.body[slot].operation)) continue;
      const std::string_view type = cuda_type(kernel_.body[slot].dtype);
      if (is_memory_load(slot)) {
        load_of_row(slot);
      } else if (gather(slot) != nullptr) {
        line("const {} v{} = {};", type, slot, gathered(slot, names_, row_dims()));
      } else if (is_question(slot)) {
        line("const {} v{} = {};", type, slot, answer(slot, row_dims()));
      } else if (is_load(slot)) {
        line("const {} v{} = {};", type, slot, host_scalar(slot));
      } else {
        line("const {} v{} = {};", type, slot, expression(slot, names_));
      }
      names_[slot] = fmt::format("v{}", slot);
    }
  }

  /// The element that a gather takes.
  [[nodiscard]] std::string gathered(Slot slot, const std::vector<std::string>& names,
                                     const std::vector<std::string>& dims) const {
    return fmt::format("{}[{}]", param_name(gather(slot)->param), place(slot, names, dims));
  }

  void load_of_row(Slot slot) {
    const kernel::Load& from = load(slot);
    const std::string_view type = cuda_type(kernel_.body[slot].dtype);
    const std::string element = fmt::format("{}[{}]", param_name(from.param), row_address(from.index));
    if (!from.guard) return line("const {} v{} = {};", type, slot, element);
    line("{} v{} = {{}};", type, slot);
    line("if ({}) v{} = {};", names_[*from.guard], slot, element);
  }

  [[nodiscard]] std::vector<std::string> row_dims() const {
    std::vector<std::string> dims = dims_;
    dims.resize(kernel_.extents.size(), "0u");
    return dims;
  }
  [[nodiscard]] std::string row_address(const ir::Index& index) const { return index_.at(index, row_dims()); }

  void store_row() {
    if (plan_.passes.row_stores.empty()) return;
    open("if (lane == 0u{}) {{", guards_stores() ? " && stores" : "");
    for (const size_t i : plan_.passes.row_stores) {
      const kernel::Store& store = kernel_.stores[i];
      line("{}[{}] = {};", param_name(store.param), row_address(store.index), names_[store.value]);
    }
    close();
  }

  // Elements.

  void declare_kept() {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (plan_.passes.kept[slot]) declare_steps(slot);
    }
  }

  /// What a thread holds of its part of the row.
  void declare_steps(Slot slot) {
    line("{} x{}[{}]{};", storage_type(slot), slot, plan_.steps, guard_of(slot) ? " = {}" : "");
  }

  [[nodiscard]] bool is_question(Slot slot) const { return asked_index(kernel_.body[slot]) != nullptr; }

  /// True for what is read a vector at a time: loads, and gathers whose places are known for the whole row.
  [[nodiscard]] bool is_read(Slot slot) const {
    if (gather(slot) == nullptr) return is_load(slot);
    return std::ranges::all_of(positions_of(*gather(slot)),
                               [&](Slot position) { return levels_[position] == kernel::Level::row; });
  }

  [[nodiscard]] std::optional<Slot> guard_of(Slot slot) const {
    return is_load(slot) ? load(slot).guard : std::nullopt;
  }

  /// True where one element serves all lanes.
  [[nodiscard]] bool is_single(Slot slot) const {
    return plan_.width == 1 || (is_read(slot) && plan_.loads[slot].kind == Kind::uniform);
  }

  /// The type of a thread's part of one step.
  [[nodiscard]] std::string storage_type(Slot slot) const {
    const ir::DType dtype = kernel_.body[slot].dtype;
    if (is_single(slot)) return std::string(cuda_type(dtype));
    return pack_type(dtype, is_read(slot) ? plan_.loads[slot] : LaneAccess{}, plan_.width);
  }

  /// True where all steps have a place.
  [[nodiscard]] bool is_held(Slot slot) const { return plan_.passes.kept[slot] || early_[slot]; }

  /// Where an element of the step's current lane is held.
  [[nodiscard]] std::string held(Slot slot) const {
    return fmt::format("x{}{}{}", slot, is_held(slot) ? "[s]" : "", is_single(slot) ? "" : ".v[k]");
  }

  void write_pass(const RowPass& pass) {
    for (const Slot slot : pass.reductions) {
      line("{} a{} = {};", cuda_type(kernel_.body[slot].dtype), slot, identity(slot));
    }
    if (!pass.elements.empty() || !pass.reductions.empty() || !pass.stores.empty()) {
      load_early(pass);
      open_steps();
      std::vector<std::string> names = names_;
      name_guards(pass, names);
      for (const Slot slot : pass.elements) {
        if (is_read(slot) && !early_[slot]) load_vector(slot, names);
      }
      compute_elements(pass, std::move(names));
      close_steps();
    }
    join_threads(pass.reductions);
    compute_row(pass.row_values);
  }

  /// Loads the vectors of all steps before the first one is stored, where a thread has registers for them: else the
  /// loads of each step would wait for the stores of the one before.
  void load_early(const RowPass& pass) {
    early_.assign(names_.size(), false);
    if (plan_.keep == Keep::nothing || plan_.steps == 1 || pass.stores.empty()) return;
    int64_t bytes = 0;
    for (const Slot slot : pass.elements) {
      early_[slot] = is_read(slot) && !is_single(slot);
      if (early_[slot]) bytes += plan_.steps * plan_.width * ir::bytes_of(kernel_.body[slot].dtype);
    }
    if (bytes > most_early_bytes) return early_.assign(names_.size(), false);
    for (Slot slot = 0; slot < names_.size(); ++slot) {
      if (early_[slot] && !plan_.passes.kept[slot]) declare_steps(slot);
    }
    if (bytes == 0) return;
    open_steps();
    std::vector<std::string> names = names_;
    name_guards(pass, names);
    for (const Slot slot : pass.elements) {
      if (early_[slot]) load_vector(slot, names);
    }
    close_steps();
  }

  /// Writes the guards that hold for a whole vector.
  void name_guards(const RowPass& pass, std::vector<std::string>& names) {
    for (const Slot slot : pass.elements) {
      if (!guards_[slot] || !plan_.shared[slot]) continue;
      line("const bool v{} = {};", slot, is_question(slot) ? answer(slot, point_) : expression(slot, names));
      names[slot] = fmt::format("v{}", slot);
    }
  }

  void load_vector(Slot slot, const std::vector<std::string>& names) {
    const LaneAccess& access = plan_.loads[slot];
    const std::string type = storage_type(slot);
    const bool kept = is_held(slot);
    const std::string name = fmt::format("x{}{}", slot, kept ? "[s]" : "");
    const auto guard = guard_of(slot);
    if (guard && !kept) line("{} {} = {{}};", type, name);
    const auto prefix = [&](const std::vector<std::string>& dims) {
      return guard ? fmt::format("if ({}) ", condition(*guard, names, dims)) : "";
    };
    const std::string declared = kept || guard ? name : fmt::format("{} {}", type, name);
    const std::string from = param_name(gather(slot) != nullptr ? gather(slot)->param : load(slot).param);
    if (is_single(slot)) {
      line("{}{} = {}[{}];", prefix(point_), declared, from, place(slot, names, point_));
    } else if (access.kind == Kind::vector) {
      line("{}{} = load<{}>({} + {});", prefix(point_), declared, type, from,
           parenthesised(place(slot, names, point_)));
    } else {
      if (!kept && !guard) line("{};", declared);
      line("#pragma unroll");
      open("for (unsigned k = 0; k < {}u; ++k) {{", plan_.width);
      line("{}{}.v[k] = {}[{}];", prefix(lane_dims()), name, from, place(slot, names, lane_dims()));
      close();
    }
  }

  /// Where a load or a gather reads.
  [[nodiscard]] std::string place(Slot slot, const std::vector<std::string>& names,
                                  const std::vector<std::string>& dims) const {
    if (gather(slot) == nullptr) return index_.at(load(slot).index, dims);
    return index_.at(gather(slot)->index, dims) + places(*gather(slot), names);
  }

  /// Position of lane k: vectors are neighbours along the innermost loop.
  [[nodiscard]] std::vector<std::string> lane_dims() const {
    std::vector<std::string> dims = point_;
    dims.back() = fmt::format("({} + k)", dims.back());
    return dims;
  }

  void compute_elements(const RowPass& pass, std::vector<std::string> names) {
    const bool lanes = plan_.width > 1;
    for (const size_t i : pass.stores) {
      if (lanes && !joins(i) && plan_.stores[i].kind == Kind::vector) line("{} y{};", store_type(i), i);
    }
    if (lanes) {
      line("#pragma unroll");
      open("for (unsigned k = 0; k < {}u; ++k) {{", plan_.width);
    }
    for (Slot slot = 0; slot < names.size(); ++slot) {
      if (plan_.passes.kept[slot]) names[slot] = held(slot);
    }
    for (const Slot slot : pass.elements) {
      if (names[slot].empty() || !guards_[slot]) names[slot] = element(slot, names);
    }
    for (const Slot slot : pass.reductions) accumulate(slot, names);
    for (const size_t i : pass.stores) store_element(i, names[kernel_.stores[i].value]);
    if (!lanes) return;
    close();
    for (const size_t i : pass.stores) {
      const kernel::Store& store = kernel_.stores[i];
      if (plan_.stores[i].kind != Kind::vector || joins(i)) continue;
      line("store({} + {}, y{});", param_name(store.param), parenthesised(index_.at(store.index, point_)), i);
    }
  }

  std::string element(Slot slot, const std::vector<std::string>& names) {
    if (is_read(slot)) return held(slot);
    const std::string text = element_text(slot, names);
    line("const {} v{} = {};", cuda_type(kernel_.body[slot].dtype), slot, text);
    if (plan_.passes.kept[slot]) line("{} = v{};", held(slot), slot);
    return fmt::format("v{}", slot);
  }

  [[nodiscard]] std::string element_text(Slot slot, const std::vector<std::string>& names) const {
    const bool lanes = plan_.width > 1;
    if (gather(slot) != nullptr) return gathered(slot, names, lanes ? lane_dims() : point_);
    return is_question(slot) ? answer(slot, lanes ? lane_dims() : point_) : expression(slot, names);
  }

  [[nodiscard]] std::string store_type(size_t i) const {
    return pack_type(kernel_.params[kernel_.stores[i].param].dtype, plan_.stores[i], plan_.width);
  }

  void store_element(size_t i, const std::string& value) {
    const kernel::Store& store = kernel_.stores[i];
    if (joins(i)) {
      const ir::DType dtype = kernel_.params[store.param].dtype;
      line("{} = {};", joined_element(i), joined(*store.over_group, dtype, joined_element(i), value));
    } else if (plan_.width > 1 && plan_.stores[i].kind == Kind::vector) {
      line("y{}.v[k] = {};", i, value);
    } else {
      line("{}{}[{}] = {};", guards_stores() ? "if (stores) " : "", param_name(store.param),
           index_.at(store.index, plan_.width > 1 ? lane_dims() : point_), value);
    }
  }

  // Reductions.

  void accumulate(Slot slot, const std::vector<std::string>& names) {
    const Slot operand = expressions_[slot].operands.front();
    line("a{0} = {1};", slot, joined(slot, fmt::format("a{}", slot), names[operand]));
  }

  /// After this every thread of the row has the values.
  void join_threads(const std::vector<Slot>& slots) {
    const bool in_block = !plan_.across && plan_.threads > warp_threads;
    if (in_block && !slots.empty()) leave_warps(slots);
    for (const Slot slot : slots) {
      const std::string_view type = cuda_type(kernel_.body[slot].dtype);
      const std::string join = joining(slot);
      names_[slot] = fmt::format("v{}", slot);
      if (plan_.across) {
        line("__shared__ {} partial{}[{}];", type, slot, plan_.block);
        line("const {0} v{1} = join_warps<{2}u>(a{1}, partial{1}, {3});", type, slot, plan_.threads, join);
      } else if (in_block) {
        line("const {0} v{1} = join_block<{2}u>(partial{1}, {3}, {4});", type, slot, plan_.threads, identity(slot),
             join);
      } else {
        line("const {0} v{1} = join_lanes<{2}u>(a{1}, {3});", type, slot, plan_.threads, join);
      }
    }
  }

  /// One barrier for all of them.
  void leave_warps(const std::vector<Slot>& slots) {
    for (const Slot slot : slots) {
      line("__shared__ {} partial{}[{}];", cuda_type(kernel_.body[slot].dtype), slot, plan_.threads / warp_threads);
      line("leave_warp(a{0}, partial{0}, {1});", slot, joining(slot));
    }
    line("__syncthreads();");
  }

  const RowSchedule& plan_;
  std::vector<kernel::Level> levels_;
  std::vector<bool> early_;         ///< by slot: loads of the current pass that are done for all steps at once
  std::vector<std::string> names_;  ///< by slot: literals and values of the row
  std::vector<std::string> dims_;   ///< of the row: a text for each outer loop
  std::vector<std::string> point_;  ///< of the first lane: a text for each loop
};

}  // namespace

CudaFunction cuda_row_function(const Kernel& kernel, const RowSchedule& schedule) {
  return RowWriter(kernel, schedule).function();
}

}  // namespace sinter::codegen
