#include "compiler/codegen/llvm.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/codegen/llvm_access.h"
#include "compiler/codegen/llvm_rows.h"
#include "compiler/codegen/llvm_text.h"
#include "compiler/codegen/op_names.h"
#include "compiler/ir/op_cost.h"
#include "compiler/kernel/joined_loads.h"
#include "compiler/support/ceil_div.h"
#include "compiler/support/errors.h"

namespace sinter::codegen {

namespace {

using ir::DType;
using kernel::Compute;
using kernel::Immediate;
using kernel::Inside;
using kernel::Instruction;
using kernel::JoinedLoads;
using kernel::Kernel;
using kernel::Load;
using kernel::Param;
using kernel::Slot;

/// Where an instruction runs: as far out as what it reads allows.
enum class LoopLevel : uint8_t { once, row, point };

/// Vectors handled by one step of the main loop. Short bodies gain from fewer branches; calls gain nothing.
int choose_unroll(const Kernel& kernel) {
  for (Slot slot = 0; slot < kernel.body.size(); ++slot) {
    if (is_call(kernel, slot)) return 1;
  }
  return kernel.body.size() <= 12 ? 4 : 2;
}

/// Writes the function of one kernel. Blocks: entry -> start -> (row ->) main and tail loops -> done -> exit. Where
/// rows run together, `row` goes to `block` instead while enough whole rows are left.
class Generator : public LlvmText {
 public:
  Generator(const Kernel& kernel, int vector_bits)
      : LlvmText(kernel, vector_bits, choose_lanes(kernel, vector_bits, reads_neighbours(kernel))),
        unroll_(choose_unroll(kernel)),
        nest_(make_nest(kernel, lanes_)),
        block_rows_(rows_per_block(kernel, nest_)),
        values_(kernel.body.size()),
        joined_(kernel.body.size()),
        left_out_(kernel.body.size(), false) {
    for (const Instruction& instruction : kernel.body) levels_.push_back(level_of(instruction));
    choose_joins();
  }

  std::string run() {
    if (nest_.numel() == 0) {
      out_.line("ret void");
      return finish();
    }
    out_.line("%any = icmp slt i64 %begin, %end");
    out_.line("br i1 %any, label %start, label %exit");
    out_.label("start");
    load_params();
    emit_level(LoopLevel::once, {});
    if (nest_.rank() == 1) {
      emit_row_pointers();
      emit_level(LoopLevel::row, {});
      inner_loops("start", "%begin", "%end");
      out_.line("br label %exit");
    } else {
      row_loop();
    }
    out_.label("exit");
    out_.line("ret void");
    return finish();
  }

  [[nodiscard]] int64_t points_per_step() const { return lanes_ * unroll_; }

 private:
  LoopLevel level_of(const Instruction& instruction) const {
    if (std::holds_alternative<Immediate>(instruction.operation)) return LoopLevel::once;
    if (std::holds_alternative<Inside>(instruction.operation)) return level_of_index();
    if (const auto* load = std::get_if<Load>(&instruction.operation)) {
      if (kernel_.params[load->param].role == Param::Role::host_scalar) return LoopLevel::once;
      return load->guard ? std::max(level_of_index(), levels_[*load->guard]) : level_of_index();
    }
    LoopLevel level = LoopLevel::once;
    for (const Slot operand : std::get<Compute>(instruction.operation).operands) {
      level = std::max(level, levels_[operand]);
    }
    return level;
  }

  /// Of what the next slot's index alone decides.
  LoopLevel level_of_index() const {
    const Access& access = nest_.loads[levels_.size()];
    if (access.walk != Walk::uniform) return LoopLevel::point;
    return access.varies_by_row ? LoopLevel::row : LoopLevel::once;
  }

  /// Joins of which every row reads one operand: where a row lies says which, and it alone is loaded.
  void choose_joins() {
    for (JoinedLoads& join : kernel::joined_loads(kernel_)) {
      if (!lies_by_rows(join)) continue;
      for (const Slot load : join.loads) left_out_[load] = true;
      for (const Slot choice : join.choices) left_out_[choice] = true;
      joined_[join.result] = std::move(join);
    }
  }

  [[nodiscard]] bool lies_by_rows(const JoinedLoads& join) const {
    const Access& first = nest_.loads[join.loads.front()];
    const size_t inner = nest_.rank() - 1;
    return first.walk != Walk::scattered && std::ranges::all_of(join.loads, [&](Slot slot) {
             const Access& access = nest_.loads[slot];
             return levels_[*guard_of(slot)] != LoopLevel::point && levels_[slot] != LoopLevel::once &&
                    access.walk == first.walk &&
                    stride_of(access.index.affine, inner) == stride_of(first.index.affine, inner);
           });
  }

  [[nodiscard]] std::optional<Slot> guard_of(Slot load) const {
    return std::get<Load>(kernel_.body[load].operation).guard;
  }

  /// Pointers of the row's first elements.
  void emit_row_pointers() {
    load_rows_.assign(kernel_.body.size(), "");
    store_rows_.clear();
    for (size_t slot = 0; slot < kernel_.body.size(); ++slot) {
      const auto* load = std::get_if<Load>(&kernel_.body[slot].operation);
      if (load && levels_[slot] != LoopLevel::once) load_rows_[slot] = row_pointer(nest_.loads[slot]);
    }
    for (const Access& store : nest_.stores) store_rows_.push_back(row_pointer(store));
  }

  std::string row_pointer(const Access& access) {
    return emit_row_pointer(out_, access, pointers_[access.param], kernel_.params[access.param].dtype, outer_);
  }

  /// One turn per row that [begin, end) touches; the first and the last row may be partial.
  void row_loop() {
    const std::string inner = out_.count(nest_.inner());
    out_.line("br label %row");
    out_.label("row");
    const std::string_view from_block = block_rows_ > 1 ? ", [ %pos.block, %block.done ]" : "";
    out_.line("%pos = phi i64 [ %begin, %start ], [ %pos.next, %done ]{}", from_block);
    out_.line("%row.index = udiv i64 %pos, {}", inner);
    out_.line("%row.first = mul i64 %row.index, {}", inner);
    out_.line("%lo = sub i64 %pos, %row.first");
    out_.line("%left = sub i64 %end, %row.first");
    out_.line("%partial = icmp slt i64 %left, {}", inner);
    out_.line("%hi = select i1 %partial, i64 %left, i64 {}", inner);
    outer_ = split_index("%row.index", std::span(nest_.extents).first(nest_.rank() - 1));
    emit_row_pointers();
    if (block_rows_ > 1) block_loops();
    emit_level(LoopLevel::row, {});
    inner_loops(block_rows_ > 1 ? "single" : "row", "%lo", "%hi");
    out_.line("%pos.next = add i64 %row.first, %hi");
    out_.line("%more.rows = icmp slt i64 %pos.next, %end");
    out_.line("br i1 %more.rows, label %row, label %exit");
  }

  /// Ends block `row`: while a block of whole rows is left, runs it column by column; else goes on in `single`.
  void block_loops() {
    const std::string points = out_.count(block_rows_ * nest_.inner());
    const std::string last_row = out_.count(nest_.extents[nest_.rank() - 2] - block_rows_);
    out_.line("%left.points = sub i64 %end, %pos");
    out_.line("%is.whole = icmp eq i64 %lo, 0");
    out_.line("%has.points = icmp sge i64 %left.points, {}", points);
    out_.line("%has.rows = icmp sle i64 {}, {}", outer_.back(), last_row);
    out_.line("%is.long = and i1 %has.points, %has.rows");
    out_.line("%is.block = and i1 %is.whole, %is.long");
    out_.line("br i1 %is.block, label %block, label %single");
    out_.label("block");
    const int64_t rest = nest_.inner() % lanes_;
    const std::string whole = out_.count(nest_.inner() - rest);
    out_.line("br label %columns");
    out_.label("columns");
    out_.line("%c = phi i64 [ 0, %block ], [ %c.next, %columns.next ]");
    out_.line("br label %r");
    block_column("r", "columns", "columns.next", {.index = "%c", .mask = ""});
    out_.label("columns.next");
    out_.line("%c.next = add i64 %c, {}", lanes_);
    out_.line("%more.columns = icmp slt i64 %c.next, {}", whole);
    if (out_.sizes().generic()) {
      out_.line("br i1 %more.columns, label %columns, label %last.column");
      last_column(whole, out_.count(rest));
    } else {
      out_.line("br i1 %more.columns, label %columns, label %{}", rest == 0 ? "block.done" : "s");
      const Step last{.index = whole, .mask = first_lanes(rest, lanes_)};
      if (rest != 0) block_column("s", "columns.next", "block.done", last);
    }
    out_.label("block.done");
    out_.line("%pos.block = add i64 %pos, {}", points);
    out_.line("%more.blocks = icmp slt i64 %pos.block, %end");
    out_.line("br i1 %more.blocks, label %row, label %exit");
    out_.label("single");
  }

  /// Block `last.column`: the columns after the last whole vector, of which there may be none.
  void last_column(const std::string& first, const std::string& count) {
    out_.label("last.column");
    const std::string mask = mask_below(count);
    out_.line("%has.rest = icmp sgt i64 {}, 0", count);
    out_.line("br i1 %has.rest, label %s, label %block.done");
    block_column("s", "last.column", "block.done", {.index = first, .mask = mask});
  }

  /// One vector of columns in every row of the block. The loop's block and counter are called `name`.
  void block_column(std::string_view name, std::string_view from, std::string_view next, const Step& step) {
    out_.label(name);
    out_.line("%{0}.row = phi i64 [ 0, %{1} ], [ %{0}.next, %{0} ]", name, from);
    const std::vector<std::string> load_rows = load_rows_;
    const std::vector<std::string> store_rows = store_rows_;
    const std::string row = fmt::format("%{}.row", name);
    for (size_t slot = 0; slot < load_rows.size(); ++slot) {
      if (!load_rows[slot].empty()) load_rows_[slot] = advance(load_rows[slot], nest_.loads[slot], row);
    }
    for (size_t s = 0; s < store_rows.size(); ++s) store_rows_[s] = advance(store_rows[s], nest_.stores[s], row);
    const std::vector<std::string> outer = outer_;
    if (kernel::has_guards(kernel_)) outer_.back() = out_.value("add i64 {}, {}", outer.back(), row);
    emit_level(LoopLevel::row, {});
    emit_step(step);
    outer_ = outer;
    load_rows_ = load_rows;
    store_rows_ = store_rows;
    out_.line("%{0}.next = add i64 %{0}.row, 1", name);
    out_.line("%{0}.more = icmp slt i64 %{0}.next, {1}", name, block_rows_);
    out_.line("br i1 %{0}.more, label %{0}, label %{1}", name, next);
  }

  /// The pointer to the start of a later row of the block.
  std::string advance(const std::string& pointer, const Access& access, std::string_view rows) {
    const int64_t stride = stride_of(access.index.affine, nest_.rank() - 2);
    if (stride == 0) return pointer;
    const std::string offset = out_.value("mul i64 {}, {}", rows, out_.size(stride));
    return out_.value("getelementptr {}, ptr {}, i64 {}", memory_type(kernel_.params[access.param].dtype), pointer,
                      offset);
  }

  /// Inner indices [lo, hi): whole steps in `main`, the rest under a mask in `tail`. Ends in block `done`.
  void inner_loops(std::string_view from, std::string_view lo, std::string_view hi) {
    const std::string count = out_.value("sub i64 {}, {}", hi, lo);
    const std::string whole = out_.value("and i64 {}, {}", count, -points_per_step());
    out_.line("%main.end = add i64 {}, {}", lo, whole);
    out_.line("%has.main = icmp slt i64 {}, %main.end", lo);
    out_.line("br i1 %has.main, label %main, label %rest");
    out_.label("main");
    out_.line("%i = phi i64 [ {}, %{} ], [ %i.next, %main ]", lo, from);
    for (int copy = 0; copy < unroll_; ++copy) {
      const std::string index = copy == 0 ? "%i" : out_.value("add i64 %i, {}", copy * lanes_);
      emit_step({.index = index, .mask = ""});
    }
    out_.line("%i.next = add i64 %i, {}", points_per_step());
    out_.line("%more.main = icmp slt i64 %i.next, %main.end");
    out_.line("br i1 %more.main, label %main, label %rest");
    out_.label("rest");
    out_.line("%has.tail = icmp slt i64 %main.end, {}", hi);
    out_.line("br i1 %has.tail, label %tail, label %done");
    out_.label("tail");
    out_.line("%j = phi i64 [ %main.end, %rest ], [ %j.next, %tail ]");
    emit_step({.index = "%j", .mask = mask_up_to(out_.value("sub i64 {}, %j", hi))});
    out_.line("%j.next = add i64 %j, {}", lanes_);
    out_.line("%more.tail = icmp slt i64 %j.next, {}", hi);
    out_.line("br i1 %more.tail, label %tail, label %done");
    out_.label("done");
  }

  void emit_step(const Step& step) {
    emit_level(LoopLevel::point, step);
    for (size_t s = 0; s < kernel_.stores.size(); ++s) {
      const kernel::Store& store = kernel_.stores[s];
      const DType dtype = kernel_.params[store.param].dtype;
      std::string value = emit_cast(out_, values_[store.value], kernel_.body[store.value].dtype, dtype, lanes_);
      emit_store(out_, site(nest_.stores[s], store_rows_[s]), step, std::move(value));
    }
  }

  AccessSite site(const Access& access, const std::string& row_pointer) const {
    return {nest_, access, row_pointer, outer_, kernel_.params[access.param].dtype, lanes_};
  }

  void emit_level(LoopLevel level, const Step& step) {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (levels_[slot] == level && !left_out_[slot]) values_[slot] = emit_instruction(slot, step);
    }
  }

  std::string emit_instruction(Slot slot, const Step& step) {
    if (std::holds_alternative<Immediate>(kernel_.body[slot].operation)) return immediate(slot);
    if (is_host_scalar(slot)) return host_scalar(slot);
    if (const auto* inside = std::get_if<Inside>(&kernel_.body[slot].operation)) {
      return emit_inside(out_, site(nest_.loads[slot], ""), step, inside->begin, inside->end);
    }
    if (std::holds_alternative<Load>(kernel_.body[slot].operation)) return emit_read(slot, step);
    if (joined_[slot]) return emit_joined(*joined_[slot], step);
    return compute(slot, values_);
  }

  std::string emit_read(Slot slot, const Step& step) {
    const Access& access = nest_.loads[slot];
    const DType dtype = kernel_.params[access.param].dtype;
    AccessSite place = site(access, levels_[slot] == LoopLevel::once ? row_pointer(access) : load_rows_[slot]);
    if (const auto guard = guard_of(slot)) {
      place.guard = values_[*guard];
      place.anywhere = pointers_[access.param];
    }
    std::string value = emit_load(out_, place, step);
    return emit_cast(out_, std::move(value), dtype, kernel_.body[slot].dtype, lanes_);
  }

  /// Elements of the operand whose row this is. What chooses it changes by row, and leaves the loop.
  std::string emit_joined(const JoinedLoads& join, const Step& step) {
    const Slot last = join.loads.back();
    std::string row = load_rows_[last];
    for (const Slot load : join.loads) {
      if (load == last) continue;
      const std::string answer =
          out_.value("extractelement {} {}, i64 0", vector_of(lanes_, "i1"), values_[*guard_of(load)]);
      row = out_.value("select i1 {}, ptr {}, ptr {}", answer, load_rows_[load], row);
    }
    const DType dtype = kernel_.params[nest_.loads[last].param].dtype;
    std::string value = emit_load(out_, site(nest_.loads[last], row), step);
    return emit_cast(out_, std::move(value), dtype, kernel_.body[last].dtype, lanes_);
  }

  int unroll_;
  Nest nest_;
  int64_t block_rows_;                              // rows run together where an access is transposed; else 1
  std::vector<LoopLevel> levels_;                   // by slot
  std::vector<std::string> values_;                 // by slot: the operand that holds it where the writer stands
  std::vector<std::optional<JoinedLoads>> joined_;  // by slot of the result
  std::vector<bool> left_out_;                      // by slot: a join is read in its place
  std::vector<std::string> outer_;                  // by outer dim: its index
  std::vector<std::string> load_rows_;              // by slot
  std::vector<std::string> store_rows_;             // by store
};

/// Ranges of about this many points keep threads busy and start on cache lines.
constexpr int64_t granule_points = 4096;

int64_t round_up(int64_t number, int64_t multiple) { return ceil_div(number, multiple) * multiple; }

int64_t choose_granule(const Kernel& kernel) {
  const int64_t row = kernel.extents.empty() ? 1 : kernel.extents.back();
  if (row <= 0 || row >= granule_points) return granule_points;
  return round_up(granule_points, row);
}

/// Measured with two threads: what takes less is not worth handing a part of to another one.
constexpr double nanoseconds_of_a_range = 5000;
constexpr double bytes_in_a_nanosecond = 64;            ///< through the caches, of one core
constexpr double nanoseconds_of_an_instruction = 0.05;  ///< at a point, of dear ops: others hide behind memory

/// Points that are worth a thread.
int64_t choose_range(const Kernel& kernel) {
  const auto points = static_cast<double>(std::max<int64_t>(1, kernel.numel()));
  double nanoseconds = static_cast<double>(kernel.bytes_moved()) / points / bytes_in_a_nanosecond;
  for (const Instruction& instruction : kernel.body) {
    const auto* compute = std::get_if<kernel::Compute>(&instruction.operation);
    if (compute == nullptr || !ir::is_dear(compute->op)) continue;
    nanoseconds += static_cast<double>(ir::instructions_of(compute->op)) * nanoseconds_of_an_instruction;
  }
  constexpr double shortest = 1e-5;
  return static_cast<int64_t>(nanoseconds_of_a_range / std::max(nanoseconds, shortest));
}

/// Vectors are loaded and stored as unaligned ones: an element's own alignment is enough.
std::vector<KernelParam> params_of(const Kernel& kernel) {
  std::vector<KernelParam> params;
  for (const Param& param : kernel.params) {
    if (param.role == Param::Role::host_scalar) {
      params.emplace_back();
    } else {
      params.push_back({ir::bytes_of(param.dtype), param.role == Param::Role::output});
    }
  }
  return params;
}

}  // namespace

KernelSource generate_llvm(const Kernel& kernel, const DeviceInfo& device) {
  if (kernel.reduced > 0 && kernel::has_guards(kernel)) {
    throw InternalError("llvm", kernel.name + ": joins in rows that are reduced are generated for CUDA only");
  }
  KernelSource source;
  source.name = kernel.name;
  for (const std::string& line : kernel.comment) source.comment += fmt::format("; {}\n", line);
  if (kernel.reduced > 0) {
    LlvmRowFunction function = llvm_row_function(kernel, device.vector_bits);
    source.text = std::move(function.text);
    source.sizes = std::move(function.sizes);
    source.numel = kernel.rows();
    source.row_points = kernel.row_points();
    source.granule = round_up(ceil_div(granule_points, source.row_points), function.block);
  } else {
    Generator generator(kernel, device.vector_bits);
    source.text = generator.run();
    source.sizes = generator.sizes();
    source.numel = kernel.numel();
    source.granule = choose_granule(kernel);
  }
  source.range = choose_range(kernel);
  source.params = params_of(kernel);
  source.bytes = kernel.bytes_moved();
  source.ops = op_names(kernel);
  return source;
}

}  // namespace sinter::codegen
