#include "compiler/codegen/llvm_row_text.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "compiler/codegen/llvm_ops.h"

namespace sinter::codegen {

using ir::DType;
using kernel::Kernel;
using kernel::Slot;

LlvmRowText::LlvmRowText(const Kernel& kernel, int vector_bits, const LlvmRowSchedule& schedule, Nest nest)
    : LlvmText(kernel, vector_bits, schedule.lanes, VectorMath::inlined),
      kept_points_(schedule.kept_points),
      nest_(std::move(nest)),
      passes_(row_passes(kernel, operands_of(kernel), schedule.keep)),
      once_(kernel.body.size()),
      blocks_(out_, "start"),
      operands_(operands_of(kernel)),
      kept_in_(passes_.shared_memory(kernel)) {}

void LlvmRowText::open() {
  for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
    if (!passes_.kept[slot] || kept_in_[slot] != slot) continue;
    out_.line("%kept{} = alloca {}, i64 {}, align 64", slot, memory_type(kernel_.body[slot].dtype),
              out_.count(kept_points_));
  }
  out_.line("%any = icmp slt i64 %begin, %end");
  out_.line("br i1 %any, label %start, label %exit");
  out_.label("start");
  load_params();
  for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
    const bool number = std::holds_alternative<kernel::Immediate>(kernel_.body[slot].operation);
    if (number) once_[slot] = immediate(slot);
    if (is_host_scalar(slot)) once_[slot] = host_scalar(slot);
  }
}

std::string LlvmRowText::close() {
  out_.line("br label %exit");
  out_.label("exit");
  out_.line("ret void");
  return finish();
}

std::string LlvmRowText::pointer(const Access& access, const std::vector<std::string>& dims) {
  return emit_row_pointer(out_, access, pointers_[access.param], kernel_.params[access.param].dtype, dims);
}

LlvmRowText::Place LlvmRowText::place_of(const RowPass& pass, std::vector<std::string> dims,
                                         const std::string& kept_offset) {
  Place place{.dims = std::move(dims),
              .loads = Values(kernel_.body.size()),
              .stores = Values(kernel_.stores.size()),
              .kept = Values(kernel_.body.size())};
  for (const Slot slot : pass.elements) {
    const bool is_load = std::holds_alternative<kernel::Load>(kernel_.body[slot].operation);
    if (is_load) place.loads[slot] = pointer(nest_.loads[slot], place.dims);
  }
  for (const size_t store : pass.stores) place.stores[store] = pointer(nest_.stores[store], place.dims);
  for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
    if (!passes_.kept[slot]) continue;
    const Slot memory = kept_in_[slot];
    place.kept[slot] = kept_offset == "0" ? fmt::format("%kept{}", memory)
                                          : out_.value("getelementptr {}, ptr %kept{}, i64 {}",
                                                       memory_type(kernel_.body[slot].dtype), memory, kept_offset);
  }
  return place;
}

LlvmRowText::Place LlvmRowText::place_of_row(std::vector<std::string> dims) {
  Place place{.dims = std::move(dims),
              .loads = Values(kernel_.body.size()),
              .stores = Values(kernel_.stores.size()),
              .kept = {}};
  const std::vector<kernel::Level> levels = kernel::levels(kernel_);
  const std::vector<bool> live = live_slots(kernel_, operands_);
  for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
    const bool is_load = std::holds_alternative<kernel::Load>(kernel_.body[slot].operation);
    if (!live[slot] || !is_load || is_host_scalar(slot) || levels[slot] != kernel::Level::row) continue;
    place.loads[slot] = pointer(nest_.loads[slot], place.dims);
  }
  for (const size_t store : passes_.row_stores) place.stores[store] = pointer(nest_.stores[store], place.dims);
  return place;
}

AccessSite LlvmRowText::site(const Access& access, const std::string& pointer, const Place& place) const {
  return {nest_, access, pointer, place.dims, kernel_.params[access.param].dtype, lanes_};
}

AccessSite LlvmRowText::kept_site(Slot slot, const Place& place) const {
  return {nest_, kept_access_, place.kept[slot], place.dims, kernel_.body[slot].dtype, lanes_};
}

std::string LlvmRowText::load(Slot slot, const Place& place, const Step& step) {
  const AccessSite from = site(nest_.loads[slot], place.loads[slot], place);
  return emit_cast(out_, emit_load(out_, from, step), from.dtype, kernel_.body[slot].dtype, lanes_);
}

void LlvmRowText::load_kept(const RowPass& pass, const Place& place, const Turn& turn, Values& values) {
  std::vector<bool> here(kernel_.body.size(), false);
  for (const Slot slot : pass.elements) here[slot] = true;
  const auto need = [&](Slot slot) {
    if (!passes_.kept[slot] || here[slot] || !values[slot].empty()) return;
    values[slot] = emit_load(out_, kept_site(slot, place), {.index = turn.kept_index, .mask = ""});
  };
  for (const Slot slot : pass.elements) std::ranges::for_each(operands_[slot], need);
  for (const Slot reduction : pass.reductions) need(operands_[reduction].front());
  for (const size_t store : pass.stores) need(kernel_.stores[store].value);
}

LlvmRowText::Values LlvmRowText::elements(const RowPass& pass, const Place& place, const Turn& turn, Values values) {
  load_kept(pass, place, turn, values);
  for (const Slot slot : pass.elements) {
    const bool is_load = std::holds_alternative<kernel::Load>(kernel_.body[slot].operation);
    values[slot] = is_load ? load(slot, place, turn.step) : compute(slot, values);
    if (!passes_.kept[slot]) continue;
    emit_store(out_, kept_site(slot, place), {.index = turn.kept_index, .mask = ""}, values[slot]);
  }
  return values;
}

std::string LlvmRowText::stored(size_t store, const Values& values) {
  const Slot slot = kernel_.stores[store].value;
  const DType dtype = kernel_.params[kernel_.stores[store].param].dtype;
  return emit_cast(out_, values[slot], kernel_.body[slot].dtype, dtype, lanes_);
}

void LlvmRowText::store_elements(const RowPass& pass, const Place& place, const Turn& turn, const Values& values) {
  for (const size_t store : pass.stores) {
    std::string value = stored(store, values);
    emit_store(out_, site(nest_.stores[store], place.stores[store], place), turn.step, std::move(value));
  }
}

void LlvmRowText::row_values(const std::vector<Slot>& slots, const Place& place, const Step& step, Values& values) {
  for (const Slot slot : slots) {
    if (!once_[slot].empty()) continue;
    const bool is_load = std::holds_alternative<kernel::Load>(kernel_.body[slot].operation);
    values[slot] = is_load ? load(slot, place, step) : compute(slot, values);
  }
}

std::string LlvmRowText::identity(Slot reduction) const {
  const DType dtype = kernel_.body[reduction].dtype;
  const auto& reduce = std::get<kernel::Reduce>(kernel_.body[reduction].operation);
  return fmt::format("splat ({} {})", register_type(dtype), constant(ir::identity(reduce.op, dtype), dtype));
}

LlvmRowText::Accumulator LlvmRowText::accumulator(Slot reduction) const {
  return {{.type = vector_of(lanes_, register_type(kernel_.body[reduction].dtype)), .value = identity(reduction)},
          reduction};
}

std::string LlvmRowText::joined(Slot reduction, const std::string& a, const std::string& b, int64_t lanes) {
  const auto& reduce = std::get<kernel::Reduce>(kernel_.body[reduction].operation);
  const ir::OpRow& combine = ir::row(ir::combiner(reduce.op));
  return emit_op(out_, combine, {a, b}, kernel_.body[reduction].dtype, lanes, vector_bits_);
}

void LlvmRowText::accumulate(const Values& values, const std::string& mask, Accumulator& accumulator) {
  const Slot reduction = accumulator.reduction;
  std::string value = values[operands_[reduction].front()];
  if (!mask.empty()) {
    value = out_.value("select {} {}, {} {}, {} {}", vector_of(lanes_, "i1"), mask, accumulator.type, value,
                       accumulator.type, identity(reduction));
  }
  accumulator.value = joined(reduction, accumulator.value, value, lanes_);
}

bool LlvmRowText::rounds(Slot reduction) const {
  const auto& reduce = std::get<kernel::Reduce>(kernel_.body[reduction].operation);
  const ir::Identity identity = ir::row(reduce.op).identity;
  const bool joins_numbers = identity == ir::Identity::zero || identity == ir::Identity::one;
  return joins_numbers && ir::is_float(kernel_.body[reduction].dtype);
}

void LlvmRowText::accumulating_loop(const LlvmBlocks::Loop& loop, int64_t step, int64_t turns,
                                    const std::vector<Accumulator*>& accumulators,
                                    const std::function<void(const std::string& index)>& body) {
  constexpr int64_t most_turns = 64;  ///< without beginning anew
  const std::vector<Carried*> carried(accumulators.begin(), accumulators.end());
  const bool any_rounds = std::ranges::any_of(accumulators, [&](const auto* one) { return rounds(one->reduction); });
  if (turns <= most_turns || !any_rounds) {
    blocks_.counted(loop, step, carried, body);
    return;
  }
  const int64_t chunk = most_turns * step;
  LlvmBlocks::Loop chunks = loop;
  chunks.name += ".chunk";
  blocks_.counted(chunks, chunk, carried, [&](const std::string& first) {
    const std::string next = out_.value("add i64 {}, {}", first, chunk);
    const std::string is_last = out_.value("icmp sgt i64 {}, {}", next, loop.end);
    const std::string end = out_.value("select i1 {}, i64 {}, i64 {}", is_last, loop.end, next);
    std::vector<std::string> before;
    for (Accumulator* one : accumulators) before.push_back(std::exchange(one->value, identity(one->reduction)));
    blocks_.counted({.name = loop.name, .first = first, .end = end}, step, carried, body);
    for (size_t i = 0; i < before.size(); ++i) {
      accumulators[i]->value = joined(accumulators[i]->reduction, before[i], accumulators[i]->value, lanes_);
    }
  });
}

bool LlvmRowText::reads_row(const RowPass& pass) {
  return !pass.elements.empty() || !pass.reductions.empty() || !pass.stores.empty();
}

}  // namespace sinter::codegen
