#include "compiler/kernel/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/ir/op_types.h"
#include "compiler/kernel/print.h"
#include "compiler/support/errors.h"

namespace sinter::kernel {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  std::vector<std::string> run() {
    check_nest();
    for (size_t p = 0; p < kernel_.params.size(); ++p) check_param(p);
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      place_ = fmt::format("%{}", slot);
      before_ = slot;
      const Instruction& instruction = kernel_.body[slot];
      if (!ir::is_kernel_dtype(instruction.dtype)) problem("no kernel computes {}", ir::name(instruction.dtype));
      std::visit([&](const auto& operation) { check(operation, instruction.dtype); }, instruction.operation);
    }
    check_stores();
    return std::move(problems_);
  }

 private:
  template <class... Parts>
  void problem(fmt::format_string<Parts...> text, Parts&&... parts) {
    problems_.push_back(place_ + ": " + fmt::format(text, std::forward<Parts>(parts)...));
  }

  void check_nest() {
    place_ = "the nest";
    if (kernel_.reduced > kernel_.extents.size()) problem("more loops are reduced than there are");
    if (std::ranges::any_of(kernel_.extents, [](int64_t extent) { return extent < 0; }))
      problem("an extent is negative");
  }

  void check_param(size_t index) {
    const Param& param = kernel_.params[index];
    place_ = fmt::format("p{}", index);
    if (!ir::is_kernel_dtype(param.dtype)) problem("no kernel reads or writes {}", ir::name(param.dtype));
    const bool is_power = param.alignment > 0 && (param.alignment & (param.alignment - 1)) == 0;
    if (!is_power) problem("{} bytes are no alignment", param.alignment);
    const bool after_output = index > 0 && kernel_.params[index - 1].role == Param::Role::output;
    if (after_output && param.role != Param::Role::output) problem("inputs come before outputs");
  }

  [[nodiscard]] const Param* param(uint32_t index) {
    if (index < kernel_.params.size()) return &kernel_.params[index];
    problem("there is no p{}", index);
    return nullptr;
  }

  /// The dtype of an operand, or nothing where it does not come before.
  std::optional<ir::DType> dtype_of(Slot slot) {
    if (slot < before_) return kernel_.body[slot].dtype;
    problem("%{} does not come before", slot);
    return std::nullopt;
  }

  void check(const ir::Index& index) {
    const size_t loops = kernel_.extents.size();
    const auto is_whole = [loops](const ir::Affine& affine) { return affine.strides.size() == loops; };
    bool whole = is_whole(index.affine);
    for (const ir::QuasiTerm& term : index.terms) {
      whole = whole && is_whole(term.inner);
      if (term.divisor < 1 || term.modulus < 0) problem("divides by {}, modulo {}", term.divisor, term.modulus);
    }
    if (!whole) problem("an index is not over all {} loops", loops);
  }

  void check(const Load& load, ir::DType dtype) {
    const Param* from = param(load.param);
    if (from != nullptr && from->role == Param::Role::output) problem("reads p{}, an output", load.param);
    if (from != nullptr && from->dtype != dtype) problem("p{} is {}", load.param, ir::name(from->dtype));
    if (from == nullptr || from->role != Param::Role::host_scalar) check(load.index);  // a number has none
    if (!load.guard) return;
    const auto guard = dtype_of(*load.guard);
    if (guard && *guard != ir::DType::b8) problem("the guard %{} is {}", *load.guard, ir::name(*guard));
  }

  void check(const Gather& gather, ir::DType dtype) {
    const Param* from = param(gather.param);
    if (from != nullptr && from->role != Param::Role::input) problem("gathers from p{}, no input", gather.param);
    if (from != nullptr && from->dtype != dtype) problem("p{} is {}", gather.param, ir::name(from->dtype));
    if (from != nullptr && from->in_place) problem("p{} is written in other places", gather.param);
    if (gather.terms.empty()) problem("it has no position");
    check(gather.index);
    for (const Gather::Term& term : gather.terms) {
      const auto position = dtype_of(term.position);
      if (position && !ir::is_position(*position))
        problem("the position %{} is {}", term.position, ir::name(*position));
      if (term.extent < 1) problem("no place along {} elements", term.extent);
    }
  }

  void check(const Position& position, ir::DType dtype) {
    if (!ir::is_position(dtype)) problem("a position is an i64 or i32");
    check(position.index);
  }

  void check(const Inside& inside, ir::DType dtype) {
    if (dtype != ir::DType::b8) problem("a question gives b8");
    check(inside.index);
  }

  void check(const Immediate& immediate, ir::DType dtype) {
    const bool real = std::holds_alternative<double>(immediate.value);
    const bool flag = std::holds_alternative<bool>(immediate.value);
    if (real != ir::is_float(dtype) || flag != (dtype == ir::DType::b8)) problem("a number of another kind");
  }

  void check(const Compute& compute, ir::DType dtype) {
    const ir::OpRow& row = ir::row(compute.op);
    if (!row.is_native()) return problem("{} is no native op", row.name);
    if (compute.operands.size() != row.arity) return problem("{} takes {} operands", row.name, row.arity);
    const bool moves_halves = row.rule == ir::TypeRule::cast || row.rule == ir::TypeRule::select;
    for (const Slot operand : compute.operands) {
      const auto given = dtype_of(operand);
      if (given && ir::is_half(*given) && !moves_halves) problem("{} computes %{}, a half", row.name, operand);
    }
    if (ir::is_half(dtype) && !moves_halves) problem("{} gives no halves", row.name);
  }

  void check(const Reduce& reduce, ir::DType dtype) {
    if (kernel_.reduced == 0) problem("no loop is reduced");
    const auto given = dtype_of(reduce.operand);
    if (given && *given != dtype) problem("%{} is {}", reduce.operand, ir::name(*given));
    if (!ir::reduces(reduce.op, dtype)) problem("{} does not join {}", ir::row(reduce.op).name, ir::name(dtype));
  }

  void check_stores() {
    before_ = static_cast<Slot>(kernel_.body.size());
    std::vector<size_t> stores(kernel_.params.size(), 0);
    for (const Store& store : kernel_.stores) {
      place_ = fmt::format("the store to p{}", store.param);
      const Param* into = param(store.param);
      const auto given = dtype_of(store.value);
      if (into != nullptr) ++stores[store.param];
      if (into != nullptr && into->role != Param::Role::output) problem("it is no output");
      if (into != nullptr && given && *given != into->dtype) problem("%{} is {}", store.value, ir::name(*given));
      check(store.index);
      if (store.over_group) check_group(store);
    }
    const bool empty = kernel_.numel() == 0;
    for (size_t p = 0; p < kernel_.params.size(); ++p) {
      place_ = fmt::format("p{}", p);
      const bool is_output = kernel_.params[p].role == Param::Role::output;
      if (is_output && !empty && stores[p] == 0) problem("it is not stored");
    }
  }

  void check_group(const Store& store) {
    if (kernel_.reduced == 0 || kernel_.extents.size() == kernel_.reduced)
      return problem("there are no groups of rows");
    if (depends_on(store.index, kernel_.extents.size() - kernel_.reduced - 1)) problem("it changes within a group");
    if (store.param >= kernel_.params.size()) return;
    const ir::DType dtype = kernel_.params[store.param].dtype;
    if (!ir::reduces(*store.over_group, dtype))
      problem("{} does not join {}", ir::row(*store.over_group).name, ir::name(dtype));
  }

  const Kernel& kernel_;
  std::string place_;
  Slot before_ = 0;  ///< operands come before this slot
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> verify(const Kernel& kernel) { return Verifier(kernel).run(); }

void require(const Kernel& kernel, std::string_view step) {
  const std::vector<std::string> problems = verify(kernel);
  if (problems.empty()) return;
  throw InternalError(std::string(step),
                      fmt::format("kernel @{}: {}\n{}", kernel.name, fmt::join(problems, "; "), print(kernel)));
}

}  // namespace sinter::kernel
