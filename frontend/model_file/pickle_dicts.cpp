#include "frontend/model_file/pickle_dicts.h"

#include <torch/csrc/jit/serialization/pickler_helper.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace sinter::frontend {
namespace {

using Op = torch::jit::PickleOpCode;

/// What a value on the unpickler's stack is, as far as it matters here.
enum class Kind : uint8_t { other, ordered_dict_type, ordered_dict };

/// An opcode with an argument of a fixed length and a fixed effect on the stack.
struct Effect {
  size_t argument;  ///< bytes
  size_t pops, pushes;
};

std::optional<Effect> fixed_effect(Op op) {
  static const std::map<Op, Effect> effects{
      {Op::PROTO, {1, 0, 0}},   {Op::EMPTY_LIST, {0, 0, 1}}, {Op::EMPTY_TUPLE, {0, 0, 1}}, {Op::EMPTY_DICT, {0, 0, 1}},
      {Op::NONE, {0, 0, 1}},    {Op::NEWTRUE, {0, 0, 1}},    {Op::NEWFALSE, {0, 0, 1}},    {Op::BININT1, {1, 0, 1}},
      {Op::BININT2, {2, 0, 1}}, {Op::BININT, {4, 0, 1}},     {Op::BINFLOAT, {8, 0, 1}},    {Op::TUPLE1, {0, 1, 1}},
      {Op::TUPLE2, {0, 2, 1}},  {Op::TUPLE3, {0, 3, 1}},     {Op::APPEND, {0, 1, 0}},      {Op::SETITEM, {0, 2, 0}},
      {Op::NEWOBJ, {0, 1, 0}},  {Op::REDUCE, {0, 2, 1}},     {Op::BINPERSID, {0, 1, 1}},
  };
  const auto found = effects.find(op);
  return found == effects.end() ? std::nullopt : std::optional(found->second);
}

/// Walks a pickle as LibTorch's unpickler would, with kinds for values. Every step is false where the stream is not one
/// that the unpickler could read on from.
class Rewriter {
 public:
  explicit Rewriter(std::string pickle) : bytes_(std::move(pickle)) {}

  [[nodiscard]] bool run() {
    for (std::optional<Op> previous; next_ < bytes_.size();) {
      const Op op = at(next_++);
      if (op == Op::STOP) return true;
      if (op == Op::REDUCE && previous == Op::EMPTY_TUPLE) replace_call();
      if (!step(op)) return false;
      previous = op;
    }
    return false;
  }

  [[nodiscard]] std::string take() && { return std::move(bytes_); }

 private:
  [[nodiscard]] Op at(size_t place) const { return static_cast<Op>(bytes_[place]); }
  void put(size_t place, Op op) { bytes_[place] = static_cast<char>(op); }

  bool step(Op op) {
    switch (op) {
      case Op::GLOBAL:
        return global();
      case Op::BINUNICODE:
        return counted(4);
      case Op::LONG1:
        return counted(1);
      case Op::MARK:
        marks_.push_back(stack_.size());
        return true;
      case Op::TUPLE:
      case Op::LIST:
      case Op::DICT:
        return pop_to_mark() && push(Kind::other);
      case Op::APPENDS:
      case Op::SETITEMS:
        return pop_to_mark();
      case Op::BINPUT:
        return memorize(1);
      case Op::LONG_BINPUT:
        return memorize(4);
      case Op::BINGET:
        return recall(1);
      case Op::LONG_BINGET:
        return recall(4);
      case Op::BUILD:
        return build();
      case Op::REDUCE:
        return reduce();
      default:
        return apply(fixed_effect(op));
    }
  }

  bool push(Kind kind) {
    stack_.push_back(kind);
    return true;
  }

  bool pop(size_t count) {
    if (stack_.size() < count) return false;
    stack_.resize(stack_.size() - count);
    return true;
  }

  bool pop_to_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) return false;
    stack_.resize(marks_.back());
    marks_.pop_back();
    return true;
  }

  bool skip(size_t count) {
    if (bytes_.size() - next_ < count) return false;
    next_ += count;
    return true;
  }

  /// A little-endian number of that many bytes.
  std::optional<uint32_t> number(size_t size) {
    const size_t start = next_;
    if (!skip(size)) return std::nullopt;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= uint32_t{static_cast<uint8_t>(bytes_[start + i])} << (8 * i);
    return value;
  }

  std::optional<std::string_view> line() {
    const size_t end = bytes_.find('\n', next_);
    if (end == std::string::npos) return std::nullopt;
    const std::string_view text = std::string_view(bytes_).substr(next_, end - next_);
    next_ = end + 1;
    return text;
  }

  bool apply(const std::optional<Effect>& effect) {
    if (!effect || !skip(effect->argument) || !pop(effect->pops)) return false;
    stack_.resize(stack_.size() + effect->pushes, Kind::other);
    return true;
  }

  /// A value after its length, which takes `size` bytes.
  bool counted(size_t size) {
    const auto length = number(size);
    return length && skip(*length) && push(Kind::other);
  }

  bool global() {
    const auto module = line();
    const auto name = line();
    if (!module || !name) return false;
    return push(module == "collections" && name == "OrderedDict" ? Kind::ordered_dict_type : Kind::other);
  }

  bool memorize(size_t size) {
    const auto index = number(size);
    if (!index || stack_.empty()) return false;
    memo_[*index] = stack_.back();
    return true;
  }

  bool recall(size_t size) {
    const auto index = number(size);
    if (!index) return false;
    const auto known = memo_.find(*index);
    return known != memo_.end() && push(known->second);
  }

  /// The stack holds a type and an empty tuple, the opcodes of the tuple and of the call were just read. LibTorch's
  /// NEWOBJ takes the top of the stack off and does no more; where the tuple would have been pushed, that is the type.
  void replace_call() {
    if (stack_.size() < 2 || stack_[stack_.size() - 2] != Kind::ordered_dict_type) return;
    put(next_ - 2, Op::NEWOBJ);
    put(next_ - 1, Op::EMPTY_DICT);
  }

  bool reduce() {
    const bool replaced = at(next_ - 1) == Op::EMPTY_DICT;
    return pop(2) && push(replaced ? Kind::ordered_dict : Kind::other);
  }

  /// Sets attributes: the stack holds an object and its state. An OrderedDict keeps its place, the state is taken off.
  bool build() {
    if (stack_.size() < 2) return false;
    const Kind kind = stack_[stack_.size() - 2];
    if (kind == Kind::ordered_dict) put(next_ - 1, Op::NEWOBJ);
    return pop(2) && push(kind == Kind::ordered_dict ? kind : Kind::other);
  }

  std::string bytes_;
  size_t next_ = 0;
  std::vector<Kind> stack_;
  std::vector<size_t> marks_;
  std::map<uint32_t, Kind> memo_;
};

}  // namespace

std::string with_plain_dicts(std::string pickle) {
  Rewriter rewriter(pickle);
  return rewriter.run() ? std::move(rewriter).take() : pickle;
}

}  // namespace sinter::frontend
