#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/arg.h"
#include "compiler/ir/index.h"
#include "compiler/ir/op.h"
#include "compiler/ir/reduction.h"

namespace sinter::kernel {

/// A parameter of a generated kernel.
struct Param {
  enum class Role : uint8_t {
    input,        ///< pointer to the first element of a device (or, for CPU kernels, host) tensor
    output,       ///< the same, written
    host_scalar,  ///< a 0-dim CPU tensor read at launch and passed by value, as double or int64
  };
  Role role = Role::input;
  ir::DType dtype = ir::DType::f32;
  int64_t alignment = 16;  ///< bytes the pointer is known to be a multiple of
  bool in_place = false;   ///< shares its memory with another parameter of this kernel, element by element
};

/// Index into Kernel::body.
using Slot = uint32_t;

struct Load {
  uint32_t param = 0;
  ir::Index index;  ///< over Kernel::extents; unused for host scalars
  /// A b8. Where it is false the index means nothing, nothing is read, and whatever stands for the value is chosen by
  /// none: 0, or 1 in code for the CPU, whose division of integers by 0 traps.
  std::optional<Slot> guard = std::nullopt;
  int64_t reach = 0;  ///< with a guard: elements that are read, at most
};
/// An element whose place other values tell: the one at `index`, and `stride` elements further for each unit of a
/// position. A position outside [0, extent) ends the program's work on the device with an error, as in eager.
struct Gather {
  struct Term {
    Slot position;  ///< an i64 or i32
    int64_t stride = 1;
    int64_t extent = 1;
  };
  uint32_t param = 0;
  ir::Index index;  ///< over Kernel::extents, at positions 0
  std::vector<Term> terms;
};
/// The index itself, as an i64 or i32.
struct Position {
  ir::Index index;
};
/// True where begin <= index < end. With guards of loads it says which operand of a join lies at a point.
struct Inside {
  ir::Index index;
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const Inside&) const = default;
};
struct Immediate {
  ir::Scalar value;
};
struct Compute {
  ir::OpId op;  ///< a native row; "cast" converts to the instruction's dtype
  std::vector<Slot> operands;
};
/// Joins the operand's elements at all points of the reduced loops; the same value at all of them.
struct Reduce {
  ir::ReductionId op;
  Slot operand = 0;
};
/// One scalar instruction of the loop body, in SSA form. `dtype` is that of its result. Half dtypes appear only on
/// loads, on casts and where one of two is chosen: arithmetic is done in the dtype of the operands, never in half.
struct Instruction {
  std::variant<Load, Gather, Position, Inside, Immediate, Compute, Reduce> operation;
  ir::DType dtype = ir::DType::f32;
};
struct Store {
  uint32_t param = 0;
  ir::Index index;
  Slot value = 0;
  /// Joins the values of a *group* of rows, those along the last loop that is not reduced, and stores them once. The
  /// index does not change along that loop.
  std::optional<ir::ReductionId> over_group = std::nullopt;
};

/// The loop form of one fused region: for every point of the nest `extents`, run `body`, then `stores`.
/// The last `reduced` loops make up a row: reductions join the points of a row. What is the same at all points of a row
/// (see `levels`) is computed once for it, and stores of such values happen once.
struct Kernel {
  std::string name;                  ///< "fused_add_relu"; a C identifier
  std::vector<std::string> comment;  ///< ops, module paths, sources; no part of the kernel's identity
  std::vector<int64_t> extents;      ///< outermost first, adjacent dims collapsed where every access allows it
  size_t reduced = 0;                ///< innermost loops that reductions run over; 0 where there is none
  std::vector<Param> params;         ///< inputs in the order of the fused node's args, then outputs
  std::vector<Instruction> body;
  std::vector<Store> stores;
  /// Values that only half-precision stores depend on may be computed to half accuracy (Numerics::fast). False: every
  /// op is as accurate as eager's.
  bool half_accuracy = true;
  bool generic_sizes = false;  ///< the text takes extents and strides as parameters (KernelSource::sizes)

  [[nodiscard]] int64_t numel() const;        ///< points of the nest; 1 for extents {}
  [[nodiscard]] int64_t row_points() const;   ///< points of the reduced loops; 1 without them
  [[nodiscard]] int64_t rows() const;         ///< points of the other loops
  [[nodiscard]] int64_t group_rows() const;   ///< rows of a group; 1 where no store joins them
  [[nodiscard]] int64_t bytes_moved() const;  ///< each element read and written once, broadcasts counted once
};

/// The instruction as a load from memory; nullptr for others, and for numbers passed by value.
[[nodiscard]] const Load* memory_load(const Kernel& kernel, const Instruction& instruction);

/// What each slot is computed from, by slot: a back end may compute it from others than the kernel says.
using Operands = std::vector<std::vector<Slot>>;
/// The operands of computations and reductions, the guards of loads and the positions of gathers, as they stand in the
/// kernel.
[[nodiscard]] Operands operands_of(const Kernel& kernel);
/// Slots that some store depends on.
[[nodiscard]] std::vector<bool> live_slots(const Kernel& kernel, const Operands& operands);

/// True where some instruction asks where a point lies.
[[nodiscard]] bool has_guards(const Kernel& kernel);

/// True where some value is a place, or the place of another.
[[nodiscard]] bool has_places(const Kernel& kernel);
/// The slots of a gather's positions, in order.
[[nodiscard]] std::vector<Slot> positions_of(const Gather& gather);

/// How often an instruction is computed.
enum class Level : uint8_t {
  row,      ///< once for all points of the reduced loops: it reads nothing that changes along them
  element,  ///< at every point
};
/// The level of every slot. Without reduced loops all are elements.
[[nodiscard]] std::vector<Level> levels(const Kernel& kernel);
/// True when the index changes along a reduced loop.
[[nodiscard]] bool varies_in_row(const Kernel& kernel, const ir::Index& index);
/// True where most bytes lie side by side along the innermost loop that is not reduced, and not along the innermost
/// reduced one: rows are neighbours in memory, not the points of a row.
[[nodiscard]] bool runs_across_rows(const Kernel& kernel);
/// True where some of what varies in a row lies side by side along it, and other across: whichever way the kernel runs,
/// the one or the other is read or written an element at a time.
[[nodiscard]] bool turns_rows(const Kernel& kernel);

}  // namespace sinter::kernel
