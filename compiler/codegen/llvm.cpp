#include "compiler/codegen/llvm.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "compiler/codegen/llvm_access.h"
#include "compiler/codegen/llvm_ops.h"
#include "compiler/codegen/llvm_writer.h"
#include "compiler/codegen/op_names.h"
#include "compiler/support/errors.h"

namespace sinter::codegen {

namespace {

using ir::DType;
using kernel::Compute;
using kernel::Immediate;
using kernel::Instruction;
using kernel::Kernel;
using kernel::Load;
using kernel::Param;
using kernel::Slot;

/// Where an instruction runs: as far out as what it reads allows.
enum class Level : uint8_t { once, row, point };

/// Dtype in which an op computes: that of its operands (of the values chosen between, for a select).
DType compute_dtype(const Kernel& kernel, const Compute& compute) { return kernel.body[compute.operands.back()].dtype; }

bool is_cast(const Compute& compute) { return ir::row(compute.op).rule == ir::TypeRule::cast; }

bool calls(const Kernel& kernel, const Instruction& instruction, DType dtype) {
  const auto* compute = std::get_if<Compute>(&instruction.operation);
  return compute && !is_cast(*compute) && compute_dtype(kernel, *compute) == dtype &&
         is_call(ir::row(compute->op), dtype);
}

/// True when every access moves along the innermost dim by one element or not at all.
bool reads_neighbours(const Kernel& kernel) {
  if (kernel.extents.empty()) return true;
  const auto along = [&](const ir::Index& index) {
    const int64_t stride = stride_of(index.affine, kernel.extents.size() - 1);
    return index.is_affine() && (stride == 0 || stride == 1);
  };
  return std::ranges::all_of(kernel.stores, along, &kernel::Store::index) &&
         std::ranges::all_of(kernel.body, [&](const Instruction& instruction) {
           const auto* load = std::get_if<Load>(&instruction.operation);
           return load == nullptr || along(load->index);
         });
}

/// Elements of one vector: full registers of the dtype that calls vector functions, else of the widest dtype; no more
/// than 16 where they are loaded one by one.
int64_t choose_lanes(const Kernel& kernel, int vector_bits) {
  int64_t bytes = 1;
  for (const Instruction& instruction : kernel.body) {
    if (calls(kernel, instruction, DType::f32)) return vector_bits / 32;
    bytes = std::max(bytes, ir::bytes_of(instruction.dtype));
  }
  for (const Param& param : kernel.params) bytes = std::max(bytes, ir::bytes_of(param.dtype));
  const int64_t lanes = vector_bits / (8 * bytes);
  return reads_neighbours(kernel) ? lanes : std::min<int64_t>(lanes, 16);
}

/// Vectors handled by one step of the main loop. Short bodies gain from fewer branches; calls gain nothing.
int choose_unroll(const Kernel& kernel) {
  const bool any_call = std::ranges::any_of(kernel.body, [&](const Instruction& instruction) {
    return calls(kernel, instruction, DType::f32) || calls(kernel, instruction, DType::f64);
  });
  if (any_call) return 1;
  return kernel.body.size() <= 12 ? 4 : 2;
}

/// Writes the function of one kernel. Blocks: entry -> start -> (row ->) main and tail loops -> done -> exit. Where
/// rows run together, `row` goes to `block` instead while enough whole rows are left.
class Generator {
 public:
  Generator(const Kernel& kernel, int vector_bits)
      : kernel_(kernel),
        vector_bits_(vector_bits),
        lanes_(choose_lanes(kernel, vector_bits)),
        unroll_(choose_unroll(kernel)),
        nest_(make_nest(kernel, lanes_)),
        block_rows_(rows_per_block(kernel, nest_)),
        out_(Sizes(kernel.generic_sizes)),
        values_(kernel.body.size()) {
    for (const Instruction& instruction : kernel.body) levels_.push_back(level_of(instruction));
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
    emit_level(Level::once, {});
    if (nest_.rank() == 1) {
      emit_row_pointers();
      emit_level(Level::row, {});
      inner_loops("start", "%begin", "%end");
      out_.line("br label %exit");
    } else {
      row_loop();
    }
    out_.label("exit");
    out_.line("ret void");
    return finish();
  }

  /// What the parameters after the tensors are to hold.
  [[nodiscard]] const std::vector<int64_t>& sizes() const { return out_.sizes().values(); }

  [[nodiscard]] int64_t points_per_step() const { return lanes_ * unroll_; }

 private:
  Level level_of(const Instruction& instruction) const {
    if (std::holds_alternative<Immediate>(instruction.operation)) return Level::once;
    if (const auto* load = std::get_if<Load>(&instruction.operation)) {
      if (kernel_.params[load->param].role == Param::Role::host_scalar) return Level::once;
      const Access& access = nest_.loads[levels_.size()];
      if (access.walk != Walk::uniform) return Level::point;
      return access.varies_by_row ? Level::row : Level::once;
    }
    Level level = Level::once;
    for (const Slot operand : std::get<Compute>(instruction.operation).operands) {
      level = std::max(level, levels_[operand]);
    }
    return level;
  }

  void load_params() {
    for (size_t p = 0; p < kernel_.params.size(); ++p) {
      const std::string slot = out_.value("getelementptr ptr, ptr %params, i64 {}", p);
      out_.line("%p{} = load ptr, ptr {}, align 8", p, slot);
      pointers_.push_back(fmt::format("%p{}", p));
    }
  }

  /// Pointers of the row's first elements.
  void emit_row_pointers() {
    load_rows_.assign(kernel_.body.size(), "");
    store_rows_.clear();
    for (size_t slot = 0; slot < kernel_.body.size(); ++slot) {
      const auto* load = std::get_if<Load>(&kernel_.body[slot].operation);
      if (load && levels_[slot] != Level::once) load_rows_[slot] = row_pointer(nest_.loads[slot]);
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
    split_row_index();
    emit_row_pointers();
    if (block_rows_ > 1) block_loops();
    emit_level(Level::row, {});
    inner_loops(block_rows_ > 1 ? "single" : "row", "%lo", "%hi");
    out_.line("%pos.next = add i64 %row.first, %hi");
    out_.line("%more.rows = icmp slt i64 %pos.next, %end");
    out_.line("br i1 %more.rows, label %row, label %exit");
  }

  void split_row_index() {
    outer_.assign(nest_.rank() - 1, "");
    std::string rest = "%row.index";
    for (size_t d = nest_.rank() - 1; d-- > 1;) {
      const std::string extent = out_.count(nest_.extents[d]);
      outer_[d] = out_.value("urem i64 {}, {}", rest, extent);
      rest = out_.value("udiv i64 {}, {}", rest, extent);
    }
    outer_[0] = rest;
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
      const Step last{.index = whole, .mask = first_lanes(rest)};
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
    const std::string count32 = out_.value("trunc i64 {} to i32", count);
    const std::string mask = out_.value("icmp ult {} {}, {}", vector_of(lanes_, "i32"), lane_numbers(lanes_, "i32"),
                                        emit_splat(out_, count32, "i32", lanes_));
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
    emit_level(Level::row, {});
    emit_step(step);
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

  [[nodiscard]] std::string first_lanes(int64_t count) const {
    std::string mask = "<";
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      mask += fmt::format("{}i1 {}", lane == 0 ? "" : ", ", lane < count);
    }
    return mask + ">";
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
    emit_step({.index = "%j", .mask = emit_tail_mask(hi)});
    out_.line("%j.next = add i64 %j, {}", lanes_);
    out_.line("%more.tail = icmp slt i64 %j.next, {}", hi);
    out_.line("br i1 %more.tail, label %tail, label %done");
    out_.label("done");
  }

  std::string emit_tail_mask(std::string_view hi) {
    const std::string left = out_.value("sub i64 {}, %j", hi);
    const std::string short_of = out_.value("icmp slt i64 {}, {}", left, lanes_);
    const std::string count = out_.value("select i1 {}, i64 {}, i64 {}", short_of, left, lanes_);
    const std::string count32 = out_.value("trunc i64 {} to i32", count);
    return out_.value("icmp ult {} {}, {}", vector_of(lanes_, "i32"), lane_numbers(lanes_, "i32"),
                      emit_splat(out_, count32, "i32", lanes_));
  }

  void emit_step(const Step& step) {
    emit_level(Level::point, step);
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

  void emit_level(Level level, const Step& step) {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (levels_[slot] == level) values_[slot] = emit_instruction(slot, step);
    }
  }

  std::string emit_instruction(Slot slot, const Step& step) {
    const Instruction& instruction = kernel_.body[slot];
    if (const auto* immediate = std::get_if<Immediate>(&instruction.operation)) {
      return emit_immediate(immediate->value, instruction.dtype);
    }
    if (const auto* load = std::get_if<Load>(&instruction.operation)) return emit_read(slot, *load, step);
    return emit_compute(std::get<Compute>(instruction.operation), instruction.dtype);
  }

  std::string emit_immediate(const ir::Scalar& value, DType dtype) {
    const DType written = ir::is_half(dtype) ? DType::f32 : dtype;
    std::string splat = fmt::format("splat ({} {})", register_type(written), constant(value, written));
    return emit_cast(out_, std::move(splat), written, dtype, lanes_);
  }

  std::string emit_read(Slot slot, const Load& load, const Step& step) {
    const Param& param = kernel_.params[load.param];
    const DType wanted = kernel_.body[slot].dtype;
    if (param.role == Param::Role::host_scalar) {
      const DType passed = ir::is_float(param.dtype) ? DType::f64 : DType::i64;
      return emit_cast(out_, emit_splat_load(out_, pointers_[load.param], passed, lanes_), passed, wanted, lanes_);
    }
    const Access& access = nest_.loads[slot];
    std::string value = levels_[slot] == Level::once ? emit_splat_load(out_, row_pointer(access), param.dtype, lanes_)
                                                     : emit_load(out_, site(access, load_rows_[slot]), step);
    return emit_cast(out_, std::move(value), param.dtype, wanted, lanes_);
  }

  std::string emit_compute(const Compute& compute, DType result) {
    out_.line("; {}", ir::row(compute.op).name);
    if (is_cast(compute)) {
      const Slot operand = compute.operands.front();
      return emit_cast(out_, values_[operand], kernel_.body[operand].dtype, result, lanes_);
    }
    std::vector<std::string> operands;
    operands.reserve(compute.operands.size());
    for (const Slot operand : compute.operands) operands.push_back(values_[operand]);
    return emit_op(out_, ir::row(compute.op), operands, compute_dtype(kernel_, compute), lanes_, vector_bits_);
  }

  /// Loads of the numbers that come after the tensors, each through a pointer.
  std::string size_parameters() const {
    std::string text;
    for (size_t n = 0; n < sizes().size(); ++n) {
      text += fmt::format("  %n{0}.slot = getelementptr ptr, ptr %params, i64 {1}\n", n, kernel_.params.size() + n);
      text += fmt::format("  %n{0}.at = load ptr, ptr %n{0}.slot, align 8\n", n);
      text += fmt::format("  %n{0} = load i64, ptr %n{0}.at, align 8\n", n);
    }
    return text;
  }

  std::string finish() const {
    std::string text;
    for (const std::string& declaration : out_.declarations()) text += fmt::format("declare {}\n", declaration);
    if (!text.empty()) text += '\n';
    for (const std::string& definition : out_.definitions()) text += definition + '\n';
    text += fmt::format("define void @{}(ptr readonly %params, i64 %begin, i64 %end) nounwind {{\n", kernel_.name);
    return text + "entry:\n" + size_parameters() + out_.body() + "}\n";
  }

  const Kernel& kernel_;
  int vector_bits_;
  int64_t lanes_;
  int unroll_;
  Nest nest_;
  int64_t block_rows_;  // rows run together where an access is transposed; else 1
  LlvmWriter out_;
  std::vector<Level> levels_;            // by slot
  std::vector<std::string> values_;      // by slot: the operand that holds it where the writer stands
  std::vector<std::string> pointers_;    // by param
  std::vector<std::string> outer_;       // by outer dim: its index
  std::vector<std::string> load_rows_;   // by slot
  std::vector<std::string> store_rows_;  // by store
};

/// Ranges of about this many points keep threads busy and start on cache lines.
constexpr int64_t granule_points = 4096;

int64_t choose_granule(const Kernel& kernel) {
  const int64_t row = kernel.extents.empty() ? 1 : kernel.extents.back();
  if (row <= 0 || row >= granule_points) return granule_points;
  return row * ((granule_points + row - 1) / row);
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
  if (kernel::has_guards(kernel)) throw InternalError("llvm", kernel.name + ": joins are generated for CUDA only");
  KernelSource source;
  source.name = kernel.name;
  for (const std::string& line : kernel.comment) source.comment += fmt::format("; {}\n", line);
  Generator generator(kernel, device.vector_bits);
  source.text = generator.run();
  source.params = params_of(kernel);
  source.sizes = generator.sizes();
  source.numel = kernel.numel();
  source.granule = choose_granule(kernel);
  source.bytes = kernel.bytes_moved();
  source.ops = op_names(kernel);
  return source;
}

}  // namespace sinter::codegen
