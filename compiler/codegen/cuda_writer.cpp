#include "compiler/codegen/cuda_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/codegen/cuda_guards.h"
#include "compiler/codegen/cuda_index.h"
#include "compiler/codegen/cuda_lanes.h"
#include "compiler/kernel/joined_loads.h"
#include "compiler/support/planted.h"

namespace sinter::codegen {
namespace {

using kernel::JoinedLoads;
using kernel::Kernel;
using kernel::Load;
using kernel::Slot;

class Writer : private CudaText {
  using Kind = LaneAccess::Kind;

 public:
  Writer(const Kernel& kernel, const Schedule& schedule)
      : CudaText(kernel, schedule.wide), plan_(schedule), joined_(kernel.body.size(), false) {
    for (JoinedLoads& join : kernel::joined_loads(kernel)) {
      if (live_[join.result] && read_alike(join)) joins_.push_back(std::move(join));
    }
    for (const JoinedLoads& join : joins_) {
      for (const Slot load : join.loads) joined_[load] = true;
      for (const Slot choice : join.choices) joined_[choice] = true;
    }
    choose_addresses_of(joined_);
  }

  CudaFunction function() {
    if (kernel_.numel() > 0) {
      first_vector();
      if (has_tail()) tail();
      if (plan_.unroll > 1) {
        batch();
      } else {
        single();
      }
    }
    return finish(plan_.block);
  }

 private:
  /// The number of this thread's first vector.
  void first_vector() {
    const int64_t per_block = plan_.block * plan_.unroll;
    line("const {} first = {} * {} + threadIdx.x;", index_.type(), index_.block(), index_.literal(per_block));
  }

  bool guarded() const { return sizes_.generic() || plan_.vectors % (plan_.block * plan_.unroll) != 0; }
  bool has_tail() const {
    if (planted(Bug::cuda_tail_lost)) return false;
    return plan_.tail > 0 || (sizes_.generic() && plan_.linear && plan_.width > 1);
  }

  /// Points after the last full vector, one a thread.
  void tail() {
    open("if (first < {}) {{", index_.count(plan_.tail));
    line("const {} p = first + {};", index_.type(), index_.count(plan_.vectors * plan_.width));
    positions();
    width_ = 1;
    name_guards();
    declare_and_load("", true);
    compute_and_store("");
    width_ = plan_.width;
    close();
  }

  /// One vector a thread.
  void single() {
    if (plan_.vectors == 0 && !sizes_.generic()) return;
    if (guarded()) line("if (first >= {}) return;", index_.count(plan_.vectors));
    points_of("first");
    name_guards();
    declare_and_load("", true);
    compute_and_store("");
  }

  /// Several vectors a thread: all loads first, so that they are under way together.
  void batch() {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!is_own_load(slot)) continue;
      line("{} x{}[{}]{};", storage_type(slot), slot, plan_.unroll, load(slot).guard ? " = {}" : "");
    }
    for (const JoinedLoads& join : joins_) {
      line("{} x{}[{}];", storage_type(join.loads.front()), join.result, plan_.unroll);
    }
    for (const bool loading : {true, false}) {
      line("#pragma unroll");
      open("for (unsigned u = 0; u < {}u; ++u) {{", plan_.unroll);
      line("const {} vec = first + u * {}u;", index_.type(), plan_.block);
      if (guarded()) open("if (vec < {}) {{", index_.count(plan_.vectors));
      points_of("vec");
      name_guards();
      if (loading) {
        declare_and_load("[u]", false);
      } else {
        compute_and_store("[u]");
      }
      if (guarded()) close();
      close();
    }
  }

  /// Where the vector with this number begins: its first point `p`, or with tiles its position in every loop.
  void points_of(const std::string& vector) {
    if (plan_.tile.used()) {
      dims_ = index_.tiled_dims_of(vector, kernel_.extents, plan_.width, plan_.tile);
      name_dims('i', dims_);
      return;
    }
    const std::string scale = plan_.width == 1 ? "" : fmt::format(" * {}", index_.literal(plan_.width));
    line("const {} p = {}{};", index_.type(), vector, scale);
    positions();
  }

  /// The point's position in every loop, where an access needs it.
  void positions() {
    dims_ = {"p"};
    if (kernel_.extents.size() <= 1 || !any_index([](const ir::Index&) { return true; })) return;
    dims_ = index_.dims_of("p", kernel_.extents);
    name_dims('i', dims_);
  }

  /// Writes the guards that hold for a whole vector.
  void name_guards() {
    names_of_guards_.assign(kernel_.body.size(), "");
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!live_[slot] || !guards_[slot] || (width_ > 1 && !plan_.shared[slot])) continue;
      line("const bool v{} = {};", slot, guard_text(slot, names_of_guards_, dims_));
      names_of_guards_[slot] = fmt::format("v{}", slot);
    }
  }

  std::string guard_text(Slot slot, const std::vector<std::string>& names, const std::vector<std::string>& dims) const {
    return is_question(slot) ? answer(slot, dims) : expression(slot, names);
  }

  bool is_question(Slot slot) const { return asked_index(kernel_.body[slot]) != nullptr; }

  /// Gives every dim that an access depends on a variable of its own.
  void name_dims(char letter, std::vector<std::string>& dims) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!any_index([&](const ir::Index& index) { return depends_on(index, d); })) continue;
      line("const {} {}{} = {};", index_.type(), letter, d, dims[d]);
      dims[d] = fmt::format("{}{}", letter, d);
    }
  }

  /// True when the point's number alone addresses the access.
  bool by_point(const ir::Index& index) const { return !plan_.tile.used() && is_linear(index, kernel_.extents); }

  /// True when the predicate holds for a live question, or for an access that the point's number alone does not
  /// address.
  template <class Predicate>
  bool any_index(Predicate&& holds) const {
    const auto asks = [&](const ir::Index& index) { return !by_point(index) && holds(index); };
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (is_memory_load(slot) && asks(load(slot).index)) return true;
      if (gather(slot) != nullptr && asks(gather(slot)->index)) return true;
      const ir::Index* asked = asked_index(kernel_.body[slot]);
      if (asked != nullptr && live_[slot] && holds(*asked)) return true;
    }
    return std::ranges::any_of(kernel_.stores, [&](const kernel::Store& store) { return asks(store.index); });
  }

  /// True for a load from memory that is no operand of a join which is loaded as one.
  bool is_own_load(Slot slot) const { return is_memory_load(slot) && !joined_[slot]; }

  /// True when one access does for every operand.
  bool read_alike(const JoinedLoads& join) const {
    const LaneAccess& first = plan_.loads[join.loads.front()];
    if (lane_by_lane(first)) return false;
    return std::ranges::all_of(join.loads, [&](Slot load) {
      return plan_.loads[load].kind == first.kind && plan_.loads[load].chunk == first.chunk;
    });
  }

  Kind kind(const LaneAccess& access) const { return width_ == 1 ? Kind::uniform : access.kind; }

  /// The type that holds what one vector needs of a load: one element, or one a lane.
  std::string storage_type(Slot slot) const {
    const ir::DType dtype = kernel_.body[slot].dtype;
    const LaneAccess& access = plan_.loads[slot];
    return kind(access) == Kind::uniform ? std::string(cuda_type(dtype)) : pack_type(dtype, access, width_);
  }

  /// The address text of the vector's first element.
  std::string address(const ir::Index& index, const std::vector<std::string>& dims) const {
    if (by_point(index) && dims == dims_) {
      return index.affine.offset == 0 ? "p" : fmt::format("p + {}", index_.number(index.affine.offset));
    }
    return index_.at(index, dims);
  }

  /// Loads the operand that lies here: its address is chosen first.
  void load_joined(const JoinedLoads& join, std::string_view suffix, bool declare) {
    const auto place = [&](Slot operand) {
      return fmt::format("{} + {}", param_name(load(operand).param),
                         parenthesised(address(load(operand).index, dims_)));
    };
    const Slot first = join.loads.front();
    const std::string from = fmt::format("a{}", join.result);
    line("const {}* {} = {};", cuda_type(kernel_.body[first].dtype), from, place(first));
    for (const Slot operand : join.loads) {
      if (operand != first) line("{}{} = {};", guarded(operand, dims_), from, place(operand));
    }
    line("{0} = from_here({0});", from);
    const std::string type = storage_type(first);
    const std::string read =
        kind(plan_.loads[first]) == Kind::uniform ? "*" + from : fmt::format("load<{}>({})", type, from);
    line("{}x{}{} = {};", declare ? fmt::format("const {} ", type) : "", join.result, suffix, read);
  }

  void declare_and_load(std::string_view suffix, bool declare) {
    for (const JoinedLoads& join : joins_) load_joined(join, suffix, declare);
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!is_own_load(slot)) continue;
      const std::string type = storage_type(slot);
      const auto& guard = load(slot).guard;
      if (guard && declare) line("{} x{} = {{}};", type, slot);
      const std::string prefix = guard ? guarded(slot, dims_) : declare ? fmt::format("const {} ", type) : "";
      const std::string name = param_name(load(slot).param);
      switch (kind(plan_.loads[slot])) {
        case Kind::uniform:
          line("{}x{}{} = {}[{}];", prefix, slot, suffix, name, address(load(slot).index, dims_));
          break;
        case Kind::vector:
          line("{}x{}{} = load<{}>({} + {});", prefix, slot, suffix, type, name,
               parenthesised(address(load(slot).index, dims_)));
          break;
        default:
          if (declare && !guard) line("{} x{};", type, slot);
      }
    }
    load_lanes(suffix);
  }

  /// What stands before a load that is done only where its guard holds.
  std::string guarded(Slot slot, const std::vector<std::string>& dims) const {
    const auto& guard = load(slot).guard;
    return guard ? fmt::format("if ({}) ", condition(*guard, names_of_guards_, dims)) : "";
  }

  bool lane_by_lane(const LaneAccess& access) const {
    return kind(access) == Kind::strided || kind(access) == Kind::gather;
  }

  /// Loads that fetch every lane on its own.
  void load_lanes(std::string_view suffix) {
    const auto wanted = [&](Slot slot) { return is_own_load(slot) && lane_by_lane(plan_.loads[slot]); };
    bool any = false;
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) any = any || wanted(slot);
    if (!any) return;
    open_lanes();
    const auto dims = lane_dims();
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!wanted(slot)) continue;
      line("{}x{}{}.v[k] = {}[{}];", guarded(slot, dims), slot, suffix, param_name(load(slot).param),
           lane_address(load(slot).index, plan_.loads[slot], dims));
    }
    close();
  }

  void open_lanes() {
    line("#pragma unroll");
    open("for (unsigned k = 0; k < {}u; ++k) {{", width_);
  }

  /// Positions of lane k; lanes that may cross rows take their own divisions.
  std::vector<std::string> lane_dims() {
    auto dims = dims_;
    if (kernel_.extents.size() <= 1 || !plan_.linear) {
      dims.back() = fmt::format("({} + k)", dims.back());
      return dims;
    }
    line("const {} q = p + k;", index_.type());
    dims = index_.dims_of("q", kernel_.extents);
    name_dims('j', dims);
    return dims;
  }

  std::string lane_address(const ir::Index& index, const LaneAccess& access,
                           const std::vector<std::string>& dims) const {
    if (access.kind == Kind::gather) return index_.at(index, dims);
    return fmt::format("{} + k * {}", index_.at(index, dims_), index_.number(access.stride));
  }

  /// By slot: gathers that take a vector or one element for all lanes, and what tells their places.
  std::vector<bool> whole_gathers() const {
    const kernel::Operands operands = operands_of(expressions_);
    std::vector<bool> whole(kernel_.body.size(), false);
    for (Slot slot = static_cast<Slot>(whole.size()); slot-- > 0;) {
      whole[slot] = whole[slot] || (gather(slot) != nullptr && plan_.loads[slot].kind != Kind::gather);
      if (!whole[slot]) continue;
      for (const Slot operand : operands[slot]) whole[operand] = true;
    }
    return whole;
  }

  /// Gathers what all lanes get at once, and gives the text that names each slot known by then.
  std::vector<std::string> gather_whole(std::string_view suffix) {
    std::vector<std::string> names = names_of_guards_;
    const std::vector<bool> whole = whole_gathers();
    for (const JoinedLoads& join : joins_) {
      if (kind(plan_.loads[join.loads.front()]) == Kind::uniform) names[join.result] = loaded_join(join, suffix);
    }
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!whole[slot] || !live_[slot] || joined_[slot] || !names[slot].empty()) continue;
      if (gather(slot) == nullptr) {
        names[slot] = one_value(slot, suffix, names, dims_);
      } else if (kind(plan_.loads[slot]) == Kind::uniform) {
        names[slot] = gathered(slot, names, dims_);
      } else {
        const std::string type = storage_type(slot);
        line("const {0} x{1} = load<{0}>({2} + {3});", type, slot, param_name(gather(slot)->param),
             parenthesised(gathered_address(slot, names, dims_)));
        names[slot] = fmt::format("x{}.v[k]", slot);
      }
    }
    return names;
  }

  std::string gathered_address(Slot slot, const std::vector<std::string>& names,
                               const std::vector<std::string>& dims) const {
    return address(gather(slot)->index, dims) + places(*gather(slot), names);
  }

  /// Reads one element, and gives its name.
  std::string gathered(Slot slot, const std::vector<std::string>& names, const std::vector<std::string>& dims) {
    line("const {} v{} = {}[{}];", cuda_type(kernel_.body[slot].dtype), slot, param_name(gather(slot)->param),
         gathered_address(slot, names, dims));
    return fmt::format("v{}", slot);
  }

  /// Computes a slot that is no gather, for one point or for all lanes, and gives the text that names its value.
  std::string one_value(Slot slot, std::string_view selector, const std::vector<std::string>& names,
                        const std::vector<std::string>& dims) {
    const auto& instruction = kernel_.body[slot];
    if (const auto* immediate = std::get_if<kernel::Immediate>(&instruction.operation)) {
      return cuda_literal(immediate->value, instruction.dtype);
    }
    if (std::holds_alternative<Load>(instruction.operation)) return loaded(slot, selector);
    line("const {} v{} = {};", cuda_type(instruction.dtype), slot, guard_text(slot, names, dims));
    return fmt::format("v{}", slot);
  }

  void compute_and_store(std::string_view suffix) {
    if (width_ == 1) {
      const auto names = compute(suffix, dims_, names_of_guards_);
      for (const auto& store : kernel_.stores) {
        line("{}[{}] = {};", param_name(store.param), address(store.index, dims_), names[store.value]);
      }
      return;
    }
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      if (plan_.stores[i].kind == Kind::vector) line("{} y{};", store_type(i), i);
    }
    const std::vector<std::string> known = gather_whole(suffix);
    open_lanes();
    std::vector<std::string> dims;
    if (lanes_need_dims()) dims = lane_dims();
    const auto names = compute(fmt::format("{}.v[k]", suffix), dims, known);
    for (size_t i = 0; i < kernel_.stores.size(); ++i) store_lane(i, names[kernel_.stores[i].value], dims);
    close();
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      const auto& store = kernel_.stores[i];
      if (plan_.stores[i].kind != Kind::vector) continue;
      line("store({} + {}, y{});", param_name(store.param), parenthesised(address(store.index, dims_)), i);
    }
  }

  /// True where a store, a gather or a question takes every lane on its own.
  bool lanes_need_dims() const {
    if (std::ranges::any_of(plan_.stores, [&](const LaneAccess& a) { return lane_by_lane(a); })) return true;
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (live_[slot] && guards_[slot] && !plan_.shared[slot]) return true;
      if (gather(slot) != nullptr && lane_by_lane(plan_.loads[slot])) return true;
      if (live_[slot] && std::holds_alternative<kernel::Position>(kernel_.body[slot].operation)) return true;
    }
    return false;
  }

  std::string store_type(size_t i) const {
    return pack_type(kernel_.params[kernel_.stores[i].param].dtype, plan_.stores[i], width_);
  }

  void store_lane(size_t i, const std::string& value, const std::vector<std::string>& dims) {
    const auto& store = kernel_.stores[i];
    const LaneAccess& access = plan_.stores[i];
    if (access.kind == Kind::vector) {
      line("y{}.v[k] = {};", i, value);
    } else {
      line("{}[{}] = {};", param_name(store.param), lane_address(store.index, access, dims), value);
    }
  }

  /// Writes the body for one point and gives the text that names each slot's value. `lane` selects a load's element;
  /// `dims` are the point's positions, where something needs them; `names` those of the slots that are known.
  std::vector<std::string> compute(std::string_view lane, const std::vector<std::string>& dims,
                                   std::vector<std::string> names) {
    const std::string_view whole = lane.substr(0, lane.find('.'));
    const auto selector = [&](Slot read) { return kind(plan_.loads[read]) == Kind::uniform ? whole : lane; };
    for (const JoinedLoads& join : joins_) {
      names[join.result] = loaded_join(join, selector(join.loads.front()));
    }
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!live_[slot] || joined_[slot] || !names[slot].empty()) continue;
      names[slot] =
          gather(slot) != nullptr ? gathered(slot, names, dims) : one_value(slot, selector(slot), names, dims);
    }
    return names;
  }

  static std::string loaded_join(const JoinedLoads& join, std::string_view selector) {
    return fmt::format("x{}{}", join.result, selector);
  }

  std::string loaded(Slot slot, std::string_view selector) const {
    return plan_.loads[slot].kind == Kind::scalar ? host_scalar(slot) : fmt::format("x{}{}", slot, selector);
  }

  const Schedule& plan_;
  std::vector<JoinedLoads> joins_;  ///< that are loaded as one
  std::vector<bool> joined_;        ///< by slot: a load or a choice of these, which has no name
  std::vector<std::string> dims_;
  std::vector<std::string> names_of_guards_;  ///< by slot: of those that hold for the whole vector
  int64_t width_ = plan_.width;
};

}  // namespace

CudaFunction cuda_function(const Kernel& kernel, const Schedule& schedule) {
  return Writer(kernel, schedule).function();
}

}  // namespace sinter::codegen
