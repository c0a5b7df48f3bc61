#include "compiler/kernel/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "compiler/ir/parse_type.h"
#include "compiler/ir/text_cursor.h"

namespace sinter::kernel {
namespace {

constexpr int64_t most = std::numeric_limits<int64_t>::max();
constexpr int64_t most_numbered = 1 << 20;  ///< params and values
constexpr std::string_view load_example = "%0 = load p0[512*i0 + i1] : f16";
constexpr std::string_view index_example = "[512*i0 + i1 + 2*((i0 + i1) / 4 % 3)]";

/// The number that the whole text is.
template <class Number>
std::optional<Number> read_as(std::string_view text) {
  Number number{};
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

class KernelReader {
 public:
  KernelReader(std::string_view text, std::string_view origin) : cursor_(text, origin) {}

  Kernel read() {
    cursor_.expect("kernel", "kernel @fused_add over [8, 512] (in f16 align 16, out f16 align 16) {");
    cursor_.expect("@", "@fused_add");
    kernel_.name = cursor_.word("the kernel's name", "@fused_add");
    cursor_.expect("over", "over [8, 512]");
    extents();
    const size_t outer = kernel_.extents.size();
    if (cursor_.accept("rows")) extents();
    kernel_.reduced = kernel_.extents.size() - outer;
    params();
    kernel_.half_accuracy = !cursor_.accept("exact");
    kernel_.generic_sizes = cursor_.accept("generic");
    cursor_.expect("{", "{");
    while (cursor_.at("%")) instruction();
    while (cursor_.accept("store")) store();
    cursor_.expect("}", "}");
    if (!cursor_.at_end()) cursor_.fail("the end of the text", "");
    return std::move(kernel_);
  }

 private:
  void extents() {
    cursor_.expect("[", "[8, 512]");
    while (!cursor_.accept("]")) {
      kernel_.extents.push_back(cursor_.natural(most, "an extent", "[8, 512]"));
      if (!cursor_.at("]")) cursor_.expect(",", "[8, 512]");
    }
  }

  void params() {
    cursor_.expect("(", "(in f16 align 16, out f16 align 16)");
    while (!cursor_.accept(")")) {
      kernel_.params.push_back(param());
      if (!cursor_.at(")")) cursor_.expect(",", "(in f16 align 16, out f16 align 16)");
    }
  }

  Param param() {
    Param param;
    if (cursor_.accept("out")) {
      param.role = Param::Role::output;
    } else if (cursor_.accept("scalar")) {
      param.role = Param::Role::host_scalar;
    } else {
      cursor_.expect("in", "in f16 align 16");
    }
    param.dtype = ir::read_dtype(cursor_);
    if (cursor_.accept("align")) param.alignment = cursor_.natural(most, "an alignment in bytes", "align 16");
    param.in_place = cursor_.accept("in_place");
    return param;
  }

  void instruction() {
    const size_t place = cursor_.mark();
    const std::string name = cursor_.value_name(load_example);
    if (name != fmt::format("{}", kernel_.body.size())) {
      cursor_.fail_at(place, fmt::format("values are numbered in order: this one is %{}", kernel_.body.size()));
    }
    cursor_.expect("=", load_example);
    Instruction made;
    made.operation = operation();
    cursor_.expect(":", load_example);
    made.dtype = ir::read_dtype(cursor_);
    kernel_.body.push_back(std::move(made));
  }

  decltype(Instruction::operation) operation() {
    if (cursor_.accept("load")) return load();
    if (cursor_.accept("gather")) return gather();
    if (cursor_.accept("position")) return Position{index()};
    if (cursor_.accept("inside")) return inside();
    if (cursor_.accept("reduce")) return reduce();
    if (cursor_.accept("true")) return Immediate{true};
    if (cursor_.accept("false")) return Immediate{false};
    const size_t place = cursor_.mark();
    const std::string_view number = cursor_.number_text();
    return number.empty() ? compute() : immediate(number, place);
  }

  decltype(Instruction::operation) immediate(std::string_view text, size_t place) const {
    if (const auto integer = read_as<int64_t>(text)) return Immediate{*integer};
    if (const auto real = read_as<double>(text)) return Immediate{*real};
    cursor_.fail_at(place, fmt::format("'{}' is no number", text));
  }

  decltype(Instruction::operation) compute() {
    const size_t place = cursor_.mark();
    const std::string name = cursor_.word("an operation", "%2 = add %0, %1 : f32");
    const auto op = ir::find_op(name);
    if (!op || !ir::row(*op).is_native()) cursor_.fail_at(place, fmt::format("there is no native op '{}'", name));
    Compute made{*op, {slot()}};
    while (cursor_.accept(",")) made.operands.push_back(slot());
    return made;
  }

  Load load() {
    Load made;
    made.param = numbered("p");
    made.index = bracketed_index();
    if (cursor_.accept("if")) {
      made.guard = slot();
      cursor_.expect("reach", "if %1 reach 64");
      made.reach = cursor_.natural(most, "a number of elements", "reach 64");
    }
    return made;
  }

  Gather gather() {
    Gather made;
    made.param = numbered("p");
    made.index = bracketed_index();
    while (cursor_.accept("+")) {
      Gather::Term term{};
      term.stride = cursor_.integer("a stride", "+ 64*%1 of 1000");
      cursor_.expect("*", "+ 64*%1 of 1000");
      term.position = slot();
      cursor_.expect("of", "+ 64*%1 of 1000");
      term.extent = cursor_.natural(most, "a number of places", "of 1000");
      made.terms.push_back(term);
    }
    return made;
  }

  Inside inside() {
    Inside made{.index = index()};
    cursor_.expect("in", "inside i0 in [0, 3)");
    cursor_.expect("[", "inside i0 in [0, 3)");
    made.begin = cursor_.integer("where it begins", "[0, 3)");
    cursor_.expect(",", "[0, 3)");
    made.end = cursor_.integer("where it ends", "[0, 3)");
    cursor_.expect(")", "[0, 3)");
    return made;
  }

  Reduce reduce() {
    const ir::ReductionId op = reduction("reduce sum %0");
    return {op, slot()};
  }

  ir::ReductionId reduction(std::string_view example) {
    const size_t place = cursor_.mark();
    const std::string name = cursor_.word("a reduction", example);
    const auto op = ir::find_reduction(name);
    if (!op) cursor_.fail_at(place, fmt::format("there is no reduction '{}'", name));
    return *op;
  }

  void store() {
    Store made;
    made.value = slot();
    cursor_.expect("to", "store %3 to p1[i0]");
    made.param = numbered("p");
    made.index = bracketed_index();
    if (!cursor_.at("store") && !cursor_.at("}")) {
      made.over_group = reduction("sum over group");
      cursor_.expect("over", "sum over group");
      cursor_.expect("group", "sum over group");
    }
    kernel_.stores.push_back(std::move(made));
  }

  /// A value that came before.
  Slot slot() {
    const size_t place = cursor_.mark();
    const std::string name = cursor_.value_name("%0");
    const auto slot = number_of(name, place);
    if (slot >= kernel_.body.size()) cursor_.fail_at(place, fmt::format("%{} does not come before it is used", name));
    return slot;
  }

  /// The number of `p12`, `i0`.
  uint32_t numbered(std::string_view letter) {
    const size_t place = cursor_.mark();
    const std::string word = cursor_.word(fmt::format("'{}' and a number", letter), fmt::format("{}0", letter));
    if (!word.starts_with(letter)) cursor_.fail_at(place, fmt::format("'{}' is no {}0 or the like", word, letter));
    return number_of(std::string_view(word).substr(letter.size()), place);
  }

  uint32_t number_of(std::string_view digits, size_t place) const {
    const auto number = read_as<int64_t>(digits);
    const bool is_one = number && *number >= 0 && *number < most_numbered;
    if (!is_one) cursor_.fail_at(place, fmt::format("'{}' is no number", digits));
    return static_cast<uint32_t>(*number);
  }

  ir::Index bracketed_index() {
    cursor_.expect("[", index_example);
    ir::Index made = index();
    cursor_.expect("]", index_example);
    return made;
  }

  [[nodiscard]] ir::Affine nowhere() const {
    return {.offset = 0, .strides = std::vector<int64_t>(kernel_.extents.size(), 0)};
  }

  ir::Index index() {
    ir::Index made{nowhere(), {}};
    do {
      if (const auto term = add_term(made.affine)) made.terms.push_back(quasi(*term));
    } while (cursor_.accept("+"));
    return made;
  }

  /// Adds a number or a multiple of a loop index. Gives the factor where a term in parentheses follows.
  std::optional<int64_t> add_term(ir::Affine& into) {
    int64_t factor = 1;
    if (at_number()) {
      factor = cursor_.integer("a number or a loop", index_example);
      if (!cursor_.accept("*")) {
        into.offset += factor;
        return std::nullopt;
      }
      if (cursor_.accept("(")) return factor;
    }
    const size_t place = cursor_.mark();
    const uint32_t loop = numbered("i");
    if (loop >= into.strides.size()) cursor_.fail_at(place, fmt::format("there is no loop i{}", loop));
    into.strides[loop] += factor;
    return std::nullopt;
  }

  bool at_number() {
    static constexpr std::string_view openings[] = {"-", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    return std::ranges::any_of(openings, [this](std::string_view opening) { return cursor_.at(opening); });
  }

  /// Behind "2*(".
  ir::QuasiTerm quasi(int64_t scale) {
    ir::QuasiTerm made{.scale = scale, .inner = nowhere()};
    cursor_.expect("(", index_example);
    do {
      if (add_term(made.inner)) cursor_.fail("a multiple of a loop", index_example);
    } while (cursor_.accept("+"));
    cursor_.expect(")", index_example);
    if (cursor_.accept("/")) made.divisor = positive();
    if (cursor_.accept("%")) made.modulus = positive();
    cursor_.expect(")", index_example);
    return made;
  }

  int64_t positive() {
    const size_t place = cursor_.mark();
    const int64_t number = cursor_.natural(most, "a divisor", "/ 4");
    if (number == 0) cursor_.fail_at(place, "a division by zero");
    return number;
  }

  ir::TextCursor cursor_;
  Kernel kernel_;
};

}  // namespace

Kernel parse(std::string_view text, std::string_view origin) { return KernelReader(text, origin).read(); }

}  // namespace sinter::kernel
