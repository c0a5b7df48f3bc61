#include "compiler/codegen/cuda_window_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "compiler/codegen/cuda_guards.h"
#include "compiler/codegen/cuda_lanes.h"

namespace sinter::codegen {
namespace {

using kernel::Kernel;
using kernel::Slot;
using Stage = kernel::WindowStage;

constexpr int64_t most_turns_unrolled = 3;

class WindowWriter : private CudaText {
  using Kind = LaneAccess::Kind;

 public:
  WindowWriter(const Kernel& kernel, const WindowSchedule& schedule)
      : CudaText(kernel, schedule.wide),
        plan_(schedule),
        windows_(schedule.windows),
        names_(kernel.body.size()),
        users_(kernel.body.size(), 0),
        early_(kernel.body.size(), false),
        paddings_(kernel.body.size()),
        single_(kernel.body.size(), false) {
    look_at_uses();
    find_single();
    find_paddings();
  }

  CudaFunction function() {
    find_tile();
    write_stage(Stage::once, [&](Slot slot) { return early_[slot]; });
    clear_accumulators();
    open_turns();
    write_stage(Stage::turn, all);
    read_taps();
    go_through_positions();
    for (size_t loop = 0; loop < turn_loops(); ++loop) close();
    write_stage(Stage::once, [&](Slot slot) { return !early_[slot]; });
    store_outputs();
    return finish(plan_.block);
  }

 private:
  static bool all(Slot /*slot*/) { return true; }

  // What is known of slots.

  [[nodiscard]] const kernel::Compute* compute(Slot slot) const {
    return std::get_if<kernel::Compute>(&kernel_.body[slot].operation);
  }
  [[nodiscard]] const kernel::Reduce* reduction(Slot slot) const {
    return std::get_if<kernel::Reduce>(&kernel_.body[slot].operation);
  }
  [[nodiscard]] bool is_question(Slot slot) const {
    return std::holds_alternative<kernel::Inside>(kernel_.body[slot].operation);
  }
  [[nodiscard]] Stage stage(Slot slot) const { return windows_.stages[slot]; }
  [[nodiscard]] std::string_view type(Slot slot) const { return cuda_type(kernel_.body[slot].dtype); }

  void look_at_uses() {
    for (Slot slot = static_cast<Slot>(kernel_.body.size()); slot-- > 0;) {
      if (!live_[slot]) continue;
      const bool for_taps = early_[slot] || (stage(slot) != Stage::once && stage(slot) != Stage::output);
      for (const Slot operand : expressions_[slot].operands) {
        ++users_[operand];
        early_[operand] = early_[operand] || for_taps || (reduction(slot) != nullptr);
      }
    }
    for (const kernel::Store& store : kernel_.stores) ++users_[store.value];
  }

  /// One element serves all lanes.
  void find_single() {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (is_load(slot)) {
        single_[slot] = plan_.loads[slot].kind == Kind::uniform || plan_.loads[slot].kind == Kind::scalar;
      } else {
        single_[slot] =
            reduction(slot) == nullptr &&
            std::ranges::all_of(expressions_[slot].operands, [&](Slot operand) { return single_[operand]; });
      }
    }
  }

  /// `guard ? load : number`, where nothing else reads what is loaded under the guard: memory is read over the number.
  void find_paddings() {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      const auto* choice = live_[slot] ? compute(slot) : nullptr;
      if (choice == nullptr || ir::row(choice->op).rule != ir::TypeRule::select) continue;
      const Slot read = choice->operands[1];
      const Slot number = choice->operands[2];
      if (!is_memory_load(read) || load(read).guard != choice->operands[0] || users_[read] != 1) continue;
      if (stage(number) != Stage::once || !single_[number] || stage(read) != Stage::position) continue;
      paddings_[read] = number;
      chosen_.emplace_back(slot, read);
    }
  }

  [[nodiscard]] const Slot* chosen(Slot slot) const {
    const auto found = std::ranges::find(chosen_, slot, &std::pair<Slot, Slot>::first);
    return found == chosen_.end() ? nullptr : &found->second;
  }

  /// A product that only one sum takes, which rounds both together.
  [[nodiscard]] bool is_contracted(Slot slot) const {
    const auto* product = compute(slot);
    return product != nullptr && ir::row(product->op).name == "mul" && ir::is_float(kernel_.body[slot].dtype) &&
           users_[slot] == 1 && summed_.contains(slot);
  }

  // Where the thread is.

  void find_tile() {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!live_[slot]) continue;
      if (const auto* immediate = std::get_if<kernel::Immediate>(&kernel_.body[slot].operation)) {
        names_[slot] = cuda_literal(immediate->value, kernel_.body[slot].dtype);
      }
      const auto* reduce = reduction(slot);
      if (reduce != nullptr && ir::row(reduce->op).name == "sum") summed_.insert(reduce->operand);
    }
    line("const {} thread = {} * {} + threadIdx.x;", index_.type(), index_.block(), index_.literal(plan_.block));
    const int64_t threads = plan_.threads();
    if (threads % plan_.block != 0) line("if (thread >= {}) return;", index_.literal(threads));
    dims_.assign(kernel_.extents.size(), "0u");
    for (size_t loop = 0; loop + kernel_.reduced < kernel_.extents.size(); ++loop) {
      line("const {} i{} = {};", index_.type(), loop, position_along(loop));
      dims_[loop] = fmt::format("i{}", loop);
    }
  }

  [[nodiscard]] std::string position_along(size_t loop) const {
    std::string text;
    int64_t below = 1;
    for (const WindowSchedule::Digit& digit : plan_.digits) {
      if (digit.loop == loop) {
        text += text.empty() ? "thread" : " + thread";
        if (below != 1) text += " / " + index_.literal(below);
        if (below * digit.count != plan_.threads()) text += " % " + index_.literal(digit.count);
        if (digit.step != 1) text += " * " + index_.literal(digit.step);
      }
      below *= digit.count;
    }
    return text.empty() ? "0u" : text;
  }

  [[nodiscard]] size_t turn_loops() const { return kernel_.reduced - 1; }

  void open_turns() {
    const int64_t turns = kernel_.row_points() / kernel_.extents[windows_.taps];
    for (size_t loop = kernel_.extents.size() - kernel_.reduced; loop < kernel_.extents.size(); ++loop) {
      if (loop == windows_.taps) continue;
      line("#pragma unroll{}", turns <= most_turns_unrolled ? "" : " 1");
      open("for ({0} i{1} = 0; i{1} < {2}; ++i{1}) {{", index_.type(), loop, index_.literal(kernel_.extents[loop]));
      dims_[loop] = fmt::format("i{}", loop);
    }
  }

  void open_unrolled(std::string_view name, int64_t count) {
    line("#pragma unroll");
    open("for (unsigned {0} = 0; {0} < {1}u; ++{0}) {{", name, count);
  }

  // Values of one stage.

  /// Slots that the writer computes where a stage is: live ones that are no literals, reductions or parts of others.
  template <class Wanted>
  [[nodiscard]] std::vector<Slot> slots_of(Stage wanted, Wanted&& holds) const {
    std::vector<Slot> slots;
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      const bool literal = std::holds_alternative<kernel::Immediate>(kernel_.body[slot].operation);
      if (!live_[slot] || literal || reduction(slot) != nullptr || is_contracted(slot)) continue;
      if (stage(slot) == wanted && holds(slot)) slots.push_back(slot);
    }
    return slots;
  }

  /// Loads and values of a stage; values of lanes are kept in arrays.
  template <class Wanted>
  void write_stage(Stage wanted, Wanted&& holds) {
    const std::vector<Slot> slots = slots_of(wanted, holds);
    write_loads(slots);
    const bool lanes = std::ranges::any_of(slots, [&](Slot slot) { return in_lanes(slot); });
    if (!lanes) return;
    for (const Slot slot : slots) {
      if (in_lanes(slot)) line("{} v{}[{}];", type(slot), slot, plan_.width);
    }
    open_unrolled("k", plan_.width);
    for (const Slot slot : slots) {
      if (!in_lanes(slot)) continue;
      line("v{}[k] = {};", slot, expression(slot, names_));
      names_[slot] = fmt::format("v{}[k]", slot);
    }
    close();
  }

  /// A value that every lane computes.
  [[nodiscard]] bool in_lanes(Slot slot) const { return !is_load(slot) && !single_[slot] && chosen(slot) == nullptr; }

  /// What is no value of lanes: loads, questions, values that serve all lanes.
  void write_loads(const std::vector<Slot>& slots) {
    for (const Slot slot : slots) {
      if (in_lanes(slot)) continue;
      if (const Slot* read = chosen(slot)) {
        names_[slot] = names_[*read];
      } else if (is_memory_load(slot)) {
        write_load(slot);
      } else if (is_load(slot)) {
        name_value(slot, host_scalar(slot));
      } else {
        name_value(slot, is_question(slot) ? question(slot) : expression(slot, names_));
      }
    }
  }

  void name_value(Slot slot, const std::string& text) {
    line("const {} v{} = {};", type(slot), slot, text);
    names_[slot] = fmt::format("v{}", slot);
  }

  [[nodiscard]] std::string question(Slot slot) const {
    const auto& asked = std::get<kernel::Inside>(kernel_.body[slot].operation);
    ir::Index from_begin = asked.index;
    from_begin.affine.offset -= asked.begin;
    return fmt::format("{} < {}", place(from_begin, stage(slot)), index_.literal(asked.end - asked.begin));
  }

  /// The loop over taps, or positions, that a stage is in; empty where it is in neither.
  static std::string_view counter(Stage stage) {
    return stage == Stage::tap ? "r" : stage == Stage::position ? "p" : "";
  }

  /// What an index adds for each tap or position.
  [[nodiscard]] int64_t unit(const ir::Index& index, Stage stage) const {
    const int64_t stride = index.affine.strides[windows_.taps];
    return stage == Stage::position ? stride / windows_.spread : stride;
  }

  /// The index without the part that taps or positions add.
  [[nodiscard]] std::string first_place(ir::Index index) const {
    index.affine.strides[windows_.taps] = 0;
    return index_.at(index, dims_);
  }

  [[nodiscard]] std::string place(const ir::Index& index, Stage stage) const {
    const std::string_view number = counter(stage);
    if (number.empty()) return index_.at(index, dims_);
    return fmt::format("{} + {} * {}", first_place(index), number, index_.literal(unit(index, stage)));
  }

  // Loads.

  [[nodiscard]] std::string load_type(Slot slot) const {
    return single_[slot] ? std::string(type(slot))
                         : pack_type(kernel_.body[slot].dtype, plan_.loads[slot], plan_.width);
  }

  /// Addresses of what is read for taps or positions, so that each is one constant further.
  void point_to(Stage wanted) {
    for (const Slot slot : slots_of(wanted, all)) {
      if (!is_memory_load(slot)) continue;
      line("const {}* q{} = {} + ({})({});", type(slot), slot, param_name(load(slot).param),
           plan_.wide ? "long long" : "int", first_place(load(slot).index));
    }
  }

  [[nodiscard]] std::string address(Slot slot) const {
    const std::string_view number = counter(stage(slot));
    if (number.empty()) {
      return fmt::format("{} + {}", param_name(load(slot).param), parenthesised(index_.at(load(slot).index, dims_)));
    }
    return fmt::format("q{} + {} * {}", slot, number, unit(load(slot).index, stage(slot)));
  }

  /// The guards of a load; empty where it has none.
  [[nodiscard]] std::string conditions(Slot slot) const {
    std::string text = load(slot).guard ? names_[*load(slot).guard] : "";
    if (plan_.partial && stage(slot) == Stage::position) text += (text.empty() ? "" : " && ") + std::string("some");
    return text;
  }

  void write_load(Slot slot) {
    const std::string condition = conditions(slot);
    const bool lane_by_lane = plan_.loads[slot].kind == Kind::strided || plan_.loads[slot].kind == Kind::gather;
    names_[slot] = fmt::format("x{}{}", slot, single_[slot] ? "" : ".v[k]");
    if (lane_by_lane) return load_lanes(slot, condition);
    if (single_[slot]) return load_single(slot, condition);
    const std::string type = load_type(slot);
    const bool zero = !paddings_[slot] || is_zero(*paddings_[slot]);
    if (!zero) {
      line("{} o{};", type, slot);
      line("#pragma unroll");
      line("for (unsigned k = 0; k < {}u; ++k) o{}.v[k] = {};", plan_.width, slot, names_[*paddings_[slot]]);
    }
    const std::string otherwise = zero ? "{}" : fmt::format("o{}", slot);
    const std::string value = condition.empty()
                                  ? fmt::format("load<{}>({})", type, address(slot))
                                  : fmt::format("load_if<{}>({}, {}, {})", type, condition, address(slot), otherwise);
    line("const {} x{} = {};", type, slot, value);
  }

  void load_single(Slot slot, const std::string& condition) {
    if (condition.empty()) return line("const {} x{} = *({});", type(slot), slot, address(slot));
    line("{} x{} = {};", type(slot), slot, paddings_[slot] ? names_[*paddings_[slot]] : "{}");
    line("if ({}) x{} = *({});", condition, slot, address(slot));
  }

  /// True for +0, which `{}` is.
  [[nodiscard]] bool is_zero(Slot slot) const {
    const auto* cast = compute(slot);
    const Slot number = cast != nullptr ? cast->operands[0] : slot;
    const auto* immediate = std::get_if<kernel::Immediate>(&kernel_.body[number].operation);
    const auto* real = immediate == nullptr ? nullptr : std::get_if<double>(&immediate->value);
    return real != nullptr && *real == 0 && !std::signbit(*real);
  }

  void load_lanes(Slot slot, const std::string& condition) {
    line("{} x{} = {{}};", load_type(slot), slot);
    const std::string prefix = condition.empty() ? "" : fmt::format("if ({}) ", condition);
    open_unrolled("k", plan_.width);
    line("{}x{}.v[k] = {}[{}];", prefix, slot, param_name(load(slot).param), lane_place(load(slot).index));
    close();
  }

  /// Where lane k is.
  [[nodiscard]] std::string lane_place(const ir::Index& index) const {
    std::vector<std::string> dims = dims_;
    dims[windows_.lanes] = fmt::format("({} + k)", dims[windows_.lanes]);
    return index_.at(index, dims);
  }

  // Taps.

  void clear_accumulators() {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!live_[slot] || reduction(slot) == nullptr) continue;
      line("{} a{}[{}][{}];", type(slot), slot, plan_.outputs, plan_.width);
      open_unrolled("t", plan_.outputs);
      line("#pragma unroll");
      line("for (unsigned k = 0; k < {}u; ++k) a{}[t][k] = {};", plan_.width, slot, identity(slot));
      close();
      names_[slot] = fmt::format("a{}[t][k]", slot);
    }
  }

  /// Reads the weights of one turn into arrays.
  void read_taps() {
    const std::vector<Slot> slots = slots_of(Stage::tap, all);
    if (slots.empty()) return;
    point_to(Stage::tap);
    const int64_t taps = kernel_.extents[windows_.taps];
    for (const Slot slot : slots) line("{} w{}[{}][{}];", type(slot), slot, taps, plan_.width);
    open_unrolled("r", taps);
    write_loads(slots);
    open_unrolled("k", plan_.width);
    for (const Slot slot : slots) {
      if (in_lanes(slot)) {
        line("const {} v{} = {};", type(slot), slot, expression(slot, names_));
        names_[slot] = fmt::format("v{}", slot);
      }
      line("w{}[r][k] = {};", slot, names_[slot]);
    }
    close();
    close();
    for (const Slot slot : slots) names_[slot] = fmt::format("w{}[r][k]", slot);
  }

  [[nodiscard]] int64_t reach() const { return (kernel_.extents[windows_.taps] - 1) * windows_.spread; }

  void go_through_positions() {
    const std::vector<Slot> slots = slots_of(Stage::position, all);
    point_to(Stage::position);
    open_unrolled("p", plan_.positions);
    if (plan_.partial) {
      line("const bool some = {} + (p <= {}u ? 0u : (p + {}u) / {}u) < {};", dims_[*windows_.tile], reach(),
           static_cast<uint32_t>(windows_.step - 1 - reach()), windows_.step,
           index_.literal(kernel_.extents[*windows_.tile]));
    }
    write_loads(slots);
    open_unrolled("k", plan_.width);
    for (const Slot slot : slots) {
      if (in_lanes(slot)) name_value(slot, expression(slot, names_));
    }
    accumulate();
    close();
    close();
  }

  /// Adds an element to all outputs whose windows have it.
  void accumulate() {
    open_unrolled("t", plan_.outputs);
    line("const unsigned first = t * {}u;", windows_.step);
    open("if (p >= first && p - first <= {}u{}) {{", reach(),
         windows_.spread == 1 ? "" : fmt::format(" && (p - first) % {}u == 0", windows_.spread));
    if (!slots_of(Stage::tap, all).empty()) line("const unsigned r = (p - first) / {}u;", windows_.spread);
    for (const Slot slot : slots_of(Stage::pair, all)) name_value(slot, expression(slot, names_));
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (live_[slot] && reduction(slot) != nullptr) line("{} = {};", names_[slot], continued(slot));
    }
    close();
    close();
  }

  /// What the reduction has so far, joined with its operand.
  [[nodiscard]] std::string continued(Slot slot) const {
    const kernel::Reduce& reduce = *reduction(slot);
    if (is_contracted(reduce.operand)) {
      const std::vector<Slot>& factors = expressions_[reduce.operand].operands;
      return fmt::format("fma({}, {}, {})", names_[factors[0]], names_[factors[1]], names_[slot]);
    }
    return joined(slot, names_[slot], names_[reduce.operand]);
  }

  // Outputs.

  void store_outputs() {
    open_unrolled("t", plan_.outputs);
    if (windows_.tile) dims_[*windows_.tile] = fmt::format("(i{} + t)", *windows_.tile);
    if (plan_.partial) {
      open("if ({} < {}) {{", dims_[*windows_.tile], index_.literal(kernel_.extents[*windows_.tile]));
    }
    const std::vector<Slot> slots = slots_of(Stage::output, all);
    write_loads(slots);
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      if (is_vector_store(i)) line("{} y{};", store_type(i), i);
    }
    open_unrolled("k", plan_.width);
    for (const Slot slot : slots) {
      if (in_lanes(slot)) name_value(slot, expression(slot, names_));
    }
    for (size_t i = 0; i < kernel_.stores.size(); ++i) store_lane(i);
    close();
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      if (!is_vector_store(i)) continue;
      const kernel::Store& store = kernel_.stores[i];
      line("store({} + {}, y{});", param_name(store.param), parenthesised(index_.at(store.index, dims_)), i);
    }
    if (plan_.partial) close();
    close();
  }

  [[nodiscard]] bool is_vector_store(size_t i) const { return plan_.width > 1 && plan_.stores[i].kind == Kind::vector; }

  [[nodiscard]] std::string store_type(size_t i) const {
    return pack_type(kernel_.params[kernel_.stores[i].param].dtype, plan_.stores[i], plan_.width);
  }

  void store_lane(size_t i) {
    const kernel::Store& store = kernel_.stores[i];
    if (is_vector_store(i)) return line("y{}.v[k] = {};", i, names_[store.value]);
    line("{}[{}] = {};", param_name(store.param), lane_place(store.index), names_[store.value]);
  }

  const WindowSchedule& plan_;
  const kernel::Windows& windows_;
  std::vector<std::string> names_;             ///< by slot: the text of its value where it is known now
  std::vector<std::string> dims_;              ///< a text for each loop
  std::vector<size_t> users_;                  ///< by slot
  std::vector<bool> early_;                    ///< by slot: taps need it
  std::vector<std::optional<Slot>> paddings_;  ///< by load: the number beside it
  std::vector<std::pair<Slot, Slot>> chosen_;  ///< a choice between a load and its padding, and that load
  std::vector<bool> single_;                   ///< by slot: one element serves all lanes
  std::set<Slot> summed_;                      ///< operands of sums
};

}  // namespace

CudaFunction cuda_window_function(const Kernel& kernel, const WindowSchedule& schedule) {
  return WindowWriter(kernel, schedule).function();
}

}  // namespace sinter::codegen
