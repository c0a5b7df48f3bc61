#include <algorithm>
#include <limits>
#include <unordered_map>

#include "compiler/ir/expression.h"
#include "compiler/ir/reference.h"

namespace sinter::ir {

namespace {

/// An operand on its way: an arg of the call as it came, or what an operator made of others.
struct Item {
  Arg arg;
  bool boolean = false;  ///< a truth value: a b8 value or bool that a comparison made
};
using Items = std::vector<Item>;

std::optional<RefValue> constant_of(const Arg& arg) {
  if (const auto* flag = std::get_if<bool>(&arg.data)) return static_cast<int64_t>(*flag);
  if (const auto* whole = std::get_if<int64_t>(&arg.data)) return *whole;
  if (const auto* real = std::get_if<double>(&arg.data)) return *real;
  return std::nullopt;
}

/// A number as an arg of an op that computes in `dtype`.
Arg as_arg(const RefValue& number, DType dtype) {
  const RefValue converted = ref::convert(number, dtype);
  if (dtype == DType::b8) return Arg{std::get<int64_t>(converted) != 0};
  if (const auto* whole = std::get_if<int64_t>(&converted)) return Arg{*whole};
  return Arg{std::get<double>(converted)};
}

/// Arithmetic on numbers rounds as ATen's on its computation dtype does.
RefValue rounded(const RefValue& number, DType dtype) {
  const auto* real = std::get_if<double>(&number);
  return real != nullptr && is_float(dtype) ? RefValue(ref::round_to(*real, dtype)) : number;
}

int64_t highest_integer(DType dtype) {
  if (dtype == DType::b8) return 1;
  const int64_t bits = 8 * bytes_of(dtype) - (dtype == DType::u8 ? 0 : 1);
  return bits == 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1;
}

int64_t lowest_integer(DType dtype) {
  return dtype == DType::b8 || dtype == DType::u8 ? 0 : -highest_integer(dtype) - 1;
}

bool is_one(const Item& item) {
  const auto number = constant_of(item.arg);
  return number && ref::real(*number) == 1.0;
}

class Expander {
 public:
  Expander(OpDTypes dtypes, OpBuilder& builder)
      : dtypes_(dtypes), computation_(dtypes.computation()), builder_(builder) {}

  /// Applies a row to args or intermediate results.
  std::optional<Item> call(OpId op, const Items& args) {
    if (row(op).is_native()) return native(op, args, false);
    for (const Alternative& alternative : alternatives(op)) {
      if (!std::ranges::all_of(alternative.guards, [&](const Guard& guard) { return holds(guard, args); })) continue;
      return evaluate(alternative.expression, args);
    }
    return std::nullopt;
  }

  /// A result as the caller wants it; nothing for None and text.
  std::optional<Arg> finish(const Item& item, DType dtype) {
    if (const ValueId* value = item.arg.value()) return Arg{cast(*value, dtype)};
    const auto number = constant_of(item.arg);
    return number ? std::optional(as_arg(*number, dtype)) : std::nullopt;
  }

 private:
  [[nodiscard]] bool holds(const Guard& guard, const Items& args) const {
    const Arg none;
    const Arg& arg = guard.index < args.size() ? args[guard.index].arg : none;
    switch (guard.kind) {
      case Guard::Kind::none:
        return arg.is_none();
      case Guard::Kind::text:
        return arg == Arg{guard.text};
      case Guard::Kind::number: {
        const auto number = constant_of(arg);
        return number && ref::real(*number) == guard.number;
      }
      case Guard::Kind::floating:
        return is_float(dtypes_.operands);
      case Guard::Kind::half:
        return is_half(dtypes_.operands);
      case Guard::Kind::integer:
        return is_int(dtypes_.operands);
      case Guard::Kind::boolean:
        return dtypes_.operands == DType::b8;
      case Guard::Kind::is_unsigned:
        return dtypes_.operands == DType::u8;
      case Guard::Kind::f16:
        return dtypes_.operands == DType::f16;
      case Guard::Kind::bf16:
        return dtypes_.operands == DType::bf16;
      case Guard::Kind::cuda:
        return builder_.on_cuda();
      case Guard::Kind::cpu:
        return !builder_.on_cuda();
    }
    return false;
  }

  std::optional<Item> evaluate(const Expression& expression, const Items& args) {
    const bool real = is_float(dtypes_.operands);
    switch (expression.kind) {
      case Expression::Kind::arg:
        return expression.index < args.size() ? args[expression.index] : Item{};
      case Expression::Kind::number:
        return std::visit([](auto number) { return Item{Arg{number}}; }, expression.number);
      case Expression::Kind::text:
        return Item{Arg{expression.text}};
      case Expression::Kind::none:
        return Item{};
      case Expression::Kind::highest:
        return real ? Item{Arg{ref::highest_of(dtypes_.operands)}} : Item{Arg{highest_integer(dtypes_.operands)}};
      case Expression::Kind::lowest:
        return real ? Item{Arg{-ref::highest_of(dtypes_.operands)}} : Item{Arg{lowest_integer(dtypes_.operands)}};
      case Expression::Kind::bits:
        return Item{Arg{8 * bytes_of(dtypes_.operands)}};
      case Expression::Kind::call:
        return evaluate_call(expression, args);
      case Expression::Kind::rounded:
        return evaluate_rounded(expression, args);
      case Expression::Kind::refuse:
        return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<Item> evaluate_rounded(const Expression& expression, const Items& args) {
    const auto item = evaluate(expression.operands[0], args);
    auto rounded = item ? finish(*item, dtypes_.operands) : std::nullopt;
    return rounded ? std::optional(Item{std::move(*rounded), item->boolean}) : std::nullopt;
  }

  std::optional<Item> evaluate_call(const Expression& expression, const Items& args) {
    Items operands;
    for (const Expression& operand : expression.operands) {
      auto item = evaluate(operand, args);
      if (!item) return std::nullopt;
      operands.push_back(std::move(*item));
      if (operands.size() > 1 || expression.op != op_named("where")) continue;
      const auto condition = constant_of(operands[0].arg);  // Known: only the arm it chooses is built.
      if (condition) return evaluate(expression.operands[ref::real(*condition) != 0 ? 1 : 2], args);
    }
    return row(expression.op).is_native() ? native(expression.op, operands, expression.logical)
                                          : call(expression.op, operands);
  }

  std::optional<Item> native(OpId op, const Items& items, bool logical) {
    const OpRow& entry = row(op);
    const bool select = entry.rule == TypeRule::select;
    if (items.size() < entry.arity) return std::nullopt;
    const auto numbers = std::span(items).subspan(select ? 1 : 0);
    const bool boolean = logical || computation_ == DType::b8 || std::ranges::all_of(numbers, &Item::boolean);
    const DType dtype = boolean ? DType::b8 : computation_;
    if (entry.native().llvm_text(dtype).empty()) return std::nullopt;
    std::vector<Arg> operands;
    for (size_t i = 0; i < entry.arity; ++i) {
      auto operand = boolean || (select && i == 0) ? as_bool(items[i]) : finish(items[i], computation_);
      if (!operand) return std::nullopt;
      operands.push_back(std::move(*operand));
    }
    const bool truth = entry.rule == TypeRule::compare || entry.rule == TypeRule::predicate;
    return apply(op, std::move(operands), dtype, truth ? DType::b8 : dtype, truth || boolean);
  }

  /// Adds a node, unless numbers alone decide the result.
  Item apply(OpId op, std::vector<Arg> operands, DType dtype, DType result, bool boolean) {
    if (op == op_named("mul") && is_one({operands[0]})) return {operands[1], boolean};
    if (op == op_named("mul") && is_one({operands[1]})) return {operands[0], boolean};
    if (std::ranges::all_of(operands, &Arg::is_scalar)) {
      std::vector<RefValue> numbers;
      for (const Arg& operand : operands) numbers.push_back(rounded(*constant_of(operand), dtype));
      return {as_arg(rounded(row(op).native().reference(numbers, dtype), result), result), boolean};
    }
    return {Arg{builder_.add(op, std::move(operands), result)}, boolean};
  }

  std::optional<Arg> as_bool(const Item& item) {
    const auto number = constant_of(item.arg);
    if (number) return Arg{ref::real(*number) != 0};
    const ValueId* value = item.arg.value();
    if (value == nullptr) return std::nullopt;
    if (builder_.dtype(*value) == DType::b8) return item.arg;
    const DType dtype = computation_dtype(builder_.dtype(*value));
    return Arg{builder_.add(op_named("ne"), {Arg{cast(*value, dtype)}, as_arg(int64_t{0}, dtype)}, DType::b8)};
  }

  ValueId cast(ValueId value, DType dtype) {
    if (builder_.dtype(value) == dtype) return value;
    const auto [known, fresh] = casts_.try_emplace({value, dtype}, value);
    if (fresh) known->second = builder_.add(op_named("cast"), {Arg{value}}, dtype);
    return known->second;
  }

  struct CastHash {
    size_t operator()(const std::pair<ValueId, DType>& key) const {
      return std::hash<uint64_t>{}((uint64_t{key.first.index} << 8) | static_cast<uint64_t>(key.second));
    }
  };

  OpDTypes dtypes_;
  DType computation_;
  OpBuilder& builder_;
  std::unordered_map<std::pair<ValueId, DType>, ValueId, CastHash> casts_;
};

}  // namespace

namespace {

/// True where the kernel of a row that takes numbers among halves at f32 does so with a tensor that holds one: the
/// second of two operands, on CUDA the first as well where they do not divide. Measured like the numbers themselves.
bool takes_as_number(const OpRow& entry, OpDTypes dtypes, size_t position, bool on_cuda) {
  if (!is_half(dtypes.operands) || dtypes.round_numbers || entry.arity != 2) return false;
  return position == 1 || (on_cuda && entry.domain == Domain::all_reals);
}

/// ATen converts operands to the promoted dtype, though halves compute in f32; but for what it takes as a number.
Arg convert_operand(const Arg& arg, bool as_number, OpDTypes dtypes, OpBuilder& builder) {
  const auto number = constant_of(arg);
  if (number && is_half(dtypes.operands) && dtypes.round_numbers) {
    return Arg{ref::round_to(ref::real(*number), dtypes.operands)};
  }
  const ValueId* value = arg.value();
  if (value == nullptr || !is_float(dtypes.operands)) return arg;
  const DType dtype = builder.dtype(*value);
  if (dtype == dtypes.operands || dtype == DType::b8 || (as_number && builder.is_number(*value))) return arg;
  return Arg{builder.add(op_named("cast"), {arg}, dtypes.operands)};
}

}  // namespace

std::optional<Arg> expand(OpId op, std::span<const Arg> args, OpDTypes dtypes, OpBuilder& builder) {
  const OpRow& entry = row(op);
  if (args.size() < entry.arity) return std::nullopt;
  Items items;
  for (const Arg& arg : args) items.push_back({arg});
  Expander expander(dtypes, builder);
  if (entry.rule == TypeRule::cast) return expander.finish(items[0], dtypes.result);
  const size_t rounded = entry.rounds_attributes && dtypes.round_numbers ? args.size() : entry.arity;
  for (size_t i = 0; i < rounded; ++i) {
    const bool as_number = takes_as_number(entry, dtypes, i, builder.on_cuda());
    items[i].arg = convert_operand(args[i], as_number, dtypes, builder);
  }
  if (entry.is_native() && !std::ranges::all_of(args.subspan(entry.arity), &Arg::is_none)) return std::nullopt;
  const auto result = expander.call(op, items);
  return result ? expander.finish(*result, dtypes.result) : std::nullopt;
}

}  // namespace sinter::ir
