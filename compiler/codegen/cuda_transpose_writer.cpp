#include "compiler/codegen/cuda_transpose_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace sinter::codegen {
namespace {

using kernel::Kernel;
using kernel::Slot;

constexpr int64_t bank_bytes = 4;  ///< of shared memory

class TransposeWriter : private CudaText {
 public:
  TransposeWriter(const Kernel& kernel, const TransposeSchedule& schedule)
      : CudaText(kernel, schedule.wide), plan_(schedule), written_loop_(kernel.extents.size() - 1) {}

  CudaFunction function() {
    find_square();
    declare_shared();
    line("const unsigned lane = threadIdx.x % {}u;", plan_.side);
    line("const unsigned part = threadIdx.x / {}u;", plan_.side);
    read_rows();
    line("__syncthreads();");
    write_columns();
    return finish(plan_.block);
  }

 private:
  [[nodiscard]] int64_t turns() const { return plan_.side * plan_.side / plan_.block; }

  /// Elements from one row of a square to the next: those of a column lie in different banks of four bytes.
  [[nodiscard]] int64_t pitch(Slot slot) const {
    return plan_.side + std::max<int64_t>(1, bank_bytes / ir::bytes_of(kernel_.body[slot].dtype));
  }

  /// The block's position in the other loops, and where its square begins in both of its own.
  void find_square() {
    std::vector<int64_t> blocks = kernel_.extents;
    for (const size_t loop : {plan_.read_loop, written_loop_}) blocks[loop] = plan_.squares(blocks[loop]);
    line("const {} square = blockIdx.x;", index_.type());
    dims_.resize(blocks.size());
    int64_t inside = 1;
    for (size_t d = blocks.size(); d-- > 0;) {
      std::string text = inside == 1 ? "square" : fmt::format("square / {}", index_.count(inside));
      if (d != 0) text += fmt::format(" % {}", index_.count(blocks[d]));
      const bool own = d == plan_.read_loop || d == written_loop_;
      line("const {} {}{} = {}{};", index_.type(), own ? "begin" : "i", d, text,
           own ? fmt::format(" * {}u", plan_.side) : "");
      dims_[d] = fmt::format("i{}", d);
      inside *= blocks[d];
    }
  }

  void declare_shared() {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!is_staged(slot)) continue;
      line("__shared__ {} square{}[{}][{}];", cuda_type(kernel_.body[slot].dtype), slot, plan_.side, pitch(slot));
    }
  }

  [[nodiscard]] bool is_staged(Slot slot) const { return plan_.staged[slot] && is_memory_load(slot); }

  /// Opens the loop over this thread's points: neighbours run along one loop, parts of the block along the
  /// other.
  void open_points(size_t neighbours, size_t parts) {
    line("#pragma unroll");
    open("for (unsigned turn = 0; turn < {}u; ++turn) {{", turns());
    line("const unsigned other = turn * {}u + part;", plan_.block / plan_.side);
    line("const {0} i{1} = begin{1} + lane;", index_.type(), neighbours);
    line("const {0} i{1} = begin{1} + other;", index_.type(), parts);
    std::vector<std::string> conditions;
    for (const size_t loop : {neighbours, parts}) {
      const bool partial = sizes_.generic() || kernel_.extents[loop] % plan_.side != 0;
      if (partial) conditions.push_back(fmt::format("i{} < {}", loop, index_.count(kernel_.extents[loop])));
    }
    open("{}{{", conditions.empty() ? "" : fmt::format("if ({}) ", fmt::join(conditions, " && ")));
  }

  void close_points() {
    close();
    close();
  }

  void read_rows() {
    open_points(plan_.read_loop, written_loop_);
    const std::vector<std::string> no_names(kernel_.body.size());
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (is_staged(slot)) line("square{}[other][lane] = {};", slot, element(slot, no_names));
    }
    close_points();
  }

  void write_columns() {
    open_points(written_loop_, plan_.read_loop);
    std::vector<std::string> names(kernel_.body.size());
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (live_[slot]) names[slot] = value(slot, names);
    }
    for (const kernel::Store& store : kernel_.stores) {
      line("{}[{}] = {};", param_name(store.param), index_.at(store.index, dims_), names[store.value]);
    }
    close_points();
  }

  /// A text for what is loaded at the current point: its place in memory, or a variable set under its guard.
  std::string element(Slot slot, const std::vector<std::string>& names) {
    const kernel::Load& from = load(slot);
    std::string place = fmt::format("{}[{}]", param_name(from.param), index_.at(from.index, dims_));
    if (!from.guard) return place;
    line("{} x{} = {{}};", cuda_type(kernel_.body[slot].dtype), slot);
    line("if ({}) x{} = {};", condition(*from.guard, names, dims_), slot, place);
    return fmt::format("x{}", slot);
  }

  /// The text that names a slot's value at the current point.
  std::string value(Slot slot, const std::vector<std::string>& names) {
    const kernel::Instruction& instruction = kernel_.body[slot];
    if (const auto* immediate = std::get_if<kernel::Immediate>(&instruction.operation)) {
      return cuda_literal(immediate->value, instruction.dtype);
    }
    if (is_staged(slot)) return fmt::format("square{}[lane][other]", slot);
    const std::string_view type = cuda_type(instruction.dtype);
    if (is_memory_load(slot)) {
      const std::string loaded = element(slot, names);
      if (!load(slot).guard) line("const {} x{} = {};", type, slot, loaded);
      return fmt::format("x{}", slot);
    }
    if (std::holds_alternative<kernel::Inside>(instruction.operation)) {
      line("const bool v{} = {};", slot, answer(slot, dims_));
      return fmt::format("v{}", slot);
    }
    if (std::holds_alternative<kernel::Load>(instruction.operation)) return host_scalar(slot);
    line("const {} v{} = {};", type, slot, expression(slot, names));
    return fmt::format("v{}", slot);
  }

  const TransposeSchedule& plan_;
  size_t written_loop_;
  std::vector<std::string> dims_;  ///< a text for each loop
};

}  // namespace

CudaFunction cuda_transpose_function(const Kernel& kernel, const TransposeSchedule& schedule) {
  return TransposeWriter(kernel, schedule).function();
}

}  // namespace sinter::codegen
