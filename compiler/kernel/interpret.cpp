#include "compiler/kernel/interpret.h"

#include <fmt/format.h>

#include <array>

#include "compiler/ir/host_tensor.h"
#include "compiler/support/errors.h"

namespace sinter::kernel {
namespace {

using ir::RefValue;

/// One row of a kernel: every instruction is run for all of its points before the next one.
class RowRun {
 public:
  RowRun(const Kernel& kernel, std::span<Memory> memory, std::vector<std::vector<int64_t>> points)
      : kernel_(kernel), memory_(memory), points_(std::move(points)) {}

  void run() {
    for (const Instruction& instruction : kernel_.body) {
      values_.push_back(std::visit([&](const auto& operation) { return over_row(operation, instruction.dtype); },
                                   instruction.operation));
    }
    for (const Store& store : kernel_.stores) {
      for (size_t point = 0; point < points_.size(); ++point) {
        RefValue& place = element(store.param, store.index, point);
        const RefValue& value = values_[store.value][point];
        place = joins_earlier(store, point) ? joined(*store.over_group, place, value, store.param) : value;
      }
    }
  }

 private:
  /// True where rows of its group have stored already.
  [[nodiscard]] bool joins_earlier(const Store& store, size_t point) const {
    return store.over_group && points_[point][kernel_.extents.size() - kernel_.reduced - 1] > 0;
  }

  [[nodiscard]] RefValue joined(ir::ReductionId reduction, const RefValue& a, const RefValue& b, uint32_t param) const {
    const ir::DType dtype = kernel_.params[param].dtype;
    const std::array both{a, b};
    return ir::stored(ir::row(ir::combiner(reduction)).native().reference(both, dtype), dtype);
  }

  RefValue& element(uint32_t param, const ir::Index& index, size_t point) {
    Memory& memory = memory_[param];
    const int64_t place = ir::evaluate(index, points_[point]);
    if (place >= 0 && static_cast<size_t>(place) < memory.size()) return memory[static_cast<size_t>(place)];
    throw InternalError("kernel", fmt::format("@{} reaches element {} of p{}, which has {}", kernel_.name, place, param,
                                              memory.size()));
  }

  template <class Operation>
  std::vector<RefValue> over_row(const Operation& operation, ir::DType dtype) {
    std::vector<RefValue> made;
    for (size_t point = 0; point < points_.size(); ++point) {
      made.push_back(ir::stored(at(operation, point, dtype), dtype));
    }
    return made;
  }

  std::vector<RefValue> over_row(const Reduce& reduce, ir::DType dtype) {
    const ir::OpRow& join = ir::row(ir::combiner(reduce.op));
    const std::vector<RefValue>& elements = values_[reduce.operand];
    RefValue value = elements.front();
    for (size_t point = 1; point < points_.size(); ++point) {
      const std::array both{value, elements[point]};
      value = join.native().reference(both, dtype);
    }
    return std::vector<RefValue>(points_.size(), ir::stored(value, dtype));
  }

  RefValue at(const Load& load, size_t point, ir::DType dtype) {
    const bool reads = !load.guard || std::get<int64_t>(values_[*load.guard][point]) != 0;
    if (!reads) return ir::is_float(dtype) ? RefValue{0.0} : RefValue{int64_t{0}};
    if (kernel_.params[load.param].role == Param::Role::host_scalar) return memory_[load.param].at(0);
    return element(load.param, load.index, point);
  }

  RefValue at(const Gather& gather, size_t point, ir::DType /*dtype*/) {
    ir::Index index = gather.index;
    for (const Gather::Term& term : gather.terms) {
      const int64_t position = std::get<int64_t>(values_[term.position][point]);
      if (position < 0 || position >= term.extent) {
        throw InternalError("kernel", fmt::format("@{} takes place {} of {}", kernel_.name, position, term.extent));
      }
      index.affine.offset += position * term.stride;
    }
    return element(gather.param, index, point);
  }

  RefValue at(const Position& position, size_t point, ir::DType /*dtype*/) const {
    return ir::evaluate(position.index, points_[point]);
  }

  RefValue at(const Inside& inside, size_t point, ir::DType /*dtype*/) const {
    const int64_t place = ir::evaluate(inside.index, points_[point]);
    return int64_t{inside.begin <= place && place < inside.end};
  }

  RefValue at(const Immediate& immediate, size_t /*point*/, ir::DType /*dtype*/) const {
    const auto* real = std::get_if<double>(&immediate.value);
    if (real != nullptr) return *real;
    const auto* integer = std::get_if<int64_t>(&immediate.value);
    return integer != nullptr ? *integer : int64_t{std::get<bool>(immediate.value)};
  }

  RefValue at(const Compute& compute, size_t point, ir::DType dtype) const {
    const ir::OpRow& row = ir::row(compute.op);
    std::vector<RefValue> operands;
    for (const Slot operand : compute.operands) operands.push_back(values_[operand][point]);
    const bool tells = row.rule == ir::TypeRule::compare || row.rule == ir::TypeRule::predicate;
    return row.native().reference(operands, tells ? kernel_.body[compute.operands[0]].dtype : dtype);
  }

  const Kernel& kernel_;
  std::span<Memory> memory_;
  std::vector<std::vector<int64_t>> points_;   ///< of the nest, those of the row
  std::vector<std::vector<RefValue>> values_;  ///< by slot, then by point
};

}  // namespace

void interpret(const Kernel& kernel, std::span<Memory> memory) {
  if (kernel.numel() == 0) return;
  const std::span<const int64_t> extents(kernel.extents);
  const size_t outer = extents.size() - kernel.reduced;
  ir::for_each_point(extents.first(outer), [&](std::span<const int64_t> row) {
    std::vector<std::vector<int64_t>> points;
    ir::for_each_point(extents.subspan(outer), [&](std::span<const int64_t> inner) {
      std::vector<int64_t>& point = points.emplace_back(row.begin(), row.end());
      point.insert(point.end(), inner.begin(), inner.end());
    });
    RowRun(kernel, memory, std::move(points)).run();
  });
}

}  // namespace sinter::kernel
