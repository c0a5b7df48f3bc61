#include "generate.h"

#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "dice.h"
#include "draw_calls.h"
#include "draw_tensors.h"
#include "execute.h"
#include "fits.h"
#include "themes.h"

namespace sinter::test::fuzz {
namespace {

using at::Tensor;

constexpr int kDepth = 2;  ///< of blocks in blocks
const std::vector<int64_t> kModeWeights = {82, 6, 6, 6};
constexpr int64_t kPercentWithEffects = 80;
/// The number of the call that instructions are tried in: loops over what is left of it by 2 to 5 turn as often as in
/// any call.
constexpr int64_t kStepTried = 59;

class Generator {
 public:
  /// Tries instructions out on the CPU, whatever the program is for: there, one that is refused throws.
  Generator(uint64_t seed, const hostile::Place& place)
      : dice_(seed),
        session_({}, /*compiled=*/false),
        on_(place.device.is_cuda() ? On::cuda : On::cpu),
        trusted_(place.replay == Replay::trusted) {
    themes_.effects = !trusted_ && Dice(~seed).percent(kPercentWithEffects);
    program_.seed = seed;
    for (int64_t call = 0; call < kStepTried; ++call) world_.host.begin_call();
  }

  Program generate() {
    program_.mode = modes_[dice_.weighted(themes_.effects ? std::vector<int64_t>{64, 8, 12, 16} : kModeWeights)];
    program_.keeps_inputs = dice_.percent(25);
    themes_ = draw_themes(dice_, themes_.effects);
    program_.threads = themes_.threads;
    const at::AutoGradMode grad(program_.mode == Mode::grad || program_.mode == Mode::step);
    const c10::InferenceMode inference(program_.mode == Mode::inference);
    make_inputs();
    for (int i = 0; i < 2 && themes_.effects; ++i) add_state();
    const int64_t length = (themes_.effects ? 6 : 3) + dice_.below(themes_.is_long ? 5 : 12);
    for (int64_t i = 0; i < length; ++i) add_instruction(program_.body, /*depth=*/0);
    choose_outputs();
    program_.calls = draw_calls(dice_, program_, themes_, trusted_);
    return std::move(program_);
  }

 private:
  Name next_name() { return ++last_name_; }

  bool comparable(const Tensor& tensor) const {
    return tensor.numel() <= (themes_.is_long ? most_elements_of_long : most_elements) && has_moderate_numbers(tensor);
  }

  void make_inputs() {
    const int64_t count = dice_.among({1, 1, 2, 2, 3});
    const auto common = draw_sizes(dice_, themes_);
    static constexpr std::array dtypes{at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,        at::kInt,
                                       at::kBool,  at::kByte,   at::kChar, at::kShort,    at::kComplexFloat};
    const int64_t small = themes_.integers ? 16 : 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto dtype =
          dtypes[dice_.weighted({76, 7, 4, 4, 6, 1 + small, 2, small, small, small, themes_.complex ? 60 : 0})];
      auto sizes = dice_.percent(60) ? common : draw_sizes(dice_, themes_);
      auto made = draw_source(dice_, themes_, next_name(), dtype, std::move(sizes));
      if (i > 0 && dice_.percent(7)) share(made);
      const auto tensor = made.shares < 0 ? draw(made, {}, session_) : shared(made);
      made.sizes = tensor.sizes().vec();
      values_[made.name] = tensor;
      names_.push_back(made.name);
      program_.inputs.push_back(made);
    }
  }

  void share(Source& made) {
    made.shares = 0;
    made.dtype = program_.inputs[0].dtype;
    made.place = dice_.among({Place::dense, Place::transposed, Place::offset});
  }

  Tensor shared(const Source& made) {
    const Tensor& base = values_.at(program_.inputs[0].name);
    if (made.place == Place::transposed && base.dim() > 1) return base.transpose(0, -1);
    if (made.place == Place::offset && base.dim() > 0 && base.size(0) > 1) return base.narrow(0, 1, base.size(0) - 1);
    return base;
  }

  Kind draw_kind(int depth) {
    static constexpr std::array kinds{Kind::pointwise, Kind::cast,    Kind::reduction, Kind::view,  Kind::library,
                                      Kind::spatial,   Kind::integer, Kind::complex,   Kind::write, Kind::random,
                                      Kind::read,      Kind::module,  Kind::control,   Kind::host};
    // Of a long tensor, a library's product can be too large for any memory.
    return kinds[dice_.weighted({36, 5, 9, 16, themes_.is_long ? 0 : 11, themes_.spatial ? 12 : 0,
                                 themes_.integers ? 26 : 1, themes_.complex ? 26 : 0, 14, themes_.draws ? 4 : 0,
                                 themes_.reads && !themes_.is_long ? 3 : 0, themes_.is_long ? 0 : 6,
                                 depth < kDepth && themes_.controls() > 0 ? (themes_.effects ? 16 : 6) : 0,
                                 themes_.effects ? 26 : 0})];
  }

  void add_instruction(Block& block, int depth) {
    if (dice_.percent(themes_.effects ? 20 : 6)) add_state();
    for (int attempt = 0; attempt < 12; ++attempt) {
      const auto kind = draw_kind(depth);
      const bool added = kind == Kind::control  ? add_control(block, depth)
                         : kind == Kind::host   ? add_host(block, depth)
                         : kind == Kind::module ? add_module(block)
                                                : add_row(block, kind);
      if (added) return;
    }
  }

  /// A closed-over tensor that looks like a value, or like one row of it.
  void add_state() {
    if (program_.state.size() >= 3) return;
    const Tensor like = values_.at(recent());
    if (like.scalar_type() == at::kBool || like.scalar_type() == at::kComplexDouble) return;
    auto sizes = like.sizes().vec();
    if (!sizes.empty() && dice_.percent(50)) sizes.erase(sizes.begin());
    auto made = draw_source(dice_, themes_, next_name(), like.scalar_type(), sizes);
    made.first_changes = made.last_changes = false;
    if (made.place == Place::expanded) made.place = Place::dense;
    values_[made.name] = world_.state[made.name] = draw(made, {}, session_);
    names_.push_back(made.name);
    program_.state.push_back(made);
  }

  /// A value, more often a late one.
  Name recent() {
    const auto count = static_cast<int64_t>(names_.size());
    return names_[std::max(dice_.below(count), dice_.below(count))];
  }

  std::optional<Name> operand(char letter, const std::vector<Tensor>& before) {
    std::vector<Name> fitting;
    for (const Name name : names_) {
      if (is_variable(letter) && !is_state(name)) continue;
      if (letter == 'H' && values_.at(name).is_same(before.front())) continue;
      if (letter == 'v' && !is_made(name)) continue;
      if (fits(letter, values_.at(name), before)) fitting.push_back(name);
    }
    if (fitting.empty()) return std::nullopt;
    const auto count = static_cast<int64_t>(fitting.size());
    return fitting[std::max(dice_.below(count), dice_.below(count))];
  }

  static bool is_variable(char letter) { return letter == 'h' || letter == 'H'; }
  bool is_state(Name name) const { return world_.state.count(name) != 0; }
  /// Whether an instruction gave a value.
  bool is_made(Name name) const {
    return !is_state(name) && std::ranges::none_of(program_.inputs, [&](const auto& s) { return s.name == name; });
  }

  double number(char letter, const std::vector<Tensor>& operands, const std::vector<double>& before) {
    const auto size_along = [&](double dim) {
      const auto& sizes = operands.front().sizes();
      return sizes.empty() ? 1 : std::max<int64_t>(1, sizes[static_cast<size_t>(dim)]);
    };
    switch (letter) {
      case 'd':
        return static_cast<double>(dice_.below(std::max<int64_t>(1, operands.front().dim())));
      case 'i':
        if (themes_.effects && size_along(before.back()) > 1 && dice_.percent(15)) return kParity;
        return static_cast<double>(dice_.below(size_along(before.back())));
      case 'l':
        return static_cast<double>(
            1 + dice_.below(size_along(before[before.size() - 2]) - static_cast<int64_t>(before.back())));
      case 'n':
        if (themes_.effects && dice_.percent(15)) return kCycle;
        return static_cast<double>(1 + dice_.below(3));
      case 'm':
        return static_cast<double>(2 + dice_.below(4));
      case 'e':
        return static_cast<double>(dice_.below(static_cast<int64_t>(before.back())));
      case 's':
        return kScale;
      case 'p':
        return dice_.among({0.5, 1.5, 2.0, 3.0});
      default:
        if (themes_.scales && dice_.percent(50)) return kScale;
        if (themes_.effects && dice_.percent(25)) return dice_.among({kStep, kRate, kDrawn});
        return dice_.among({-1.25, -0.5, 0.1, 0.5, 1.0, 2.0});
    }
  }

  bool add_row(Block& block, Kind kind) {
    std::vector<const Row*> rows_of_kind;
    for (const Row& row : rows()) {
      if (row.kind == kind && (row.on == On::any || row.on == on_)) rows_of_kind.push_back(&row);
    }
    Instruction made;
    made.row = dice_.among(rows_of_kind);
    if (!choose_operands(made)) return false;
    if (is_bounded_index(*made.row) && !surely_has_elements(made.operands.front())) return false;
    return try_out(block, std::move(made));
  }

  /// Operands and numbers as the row's pattern has them; false where there are none.
  bool choose_operands(Instruction& made) {
    std::vector<Tensor> operands;
    for (const char* letter = made.row->pattern; *letter != 0; ++letter) {
      if (!is_tensor(*letter)) {
        made.numbers.push_back(number(*letter, operands, made.numbers));
        continue;
      }
      const auto name = operand(*letter, operands);
      if (!name) return false;
      made.operands.push_back(*name);
      operands.push_back(values_.at(*name));
    }
    return true;
  }

  /// A change of what the host keeps.
  bool add_host(Block& block, int depth) {
    if (dice_.percent(30)) add_state();
    Instruction made;
    made.row = &host_rows()[dice_.below(static_cast<int64_t>(host_rows().size()))];
    if (!choose_operands(made) || !is_possible(made, depth)) return false;
    if (made.row->effect == Effect::none) return try_out(block, std::move(made));
    if (made.row->effect == Effect::train) {
      made.module = static_cast<int>(dice_.below(static_cast<int64_t>(program_.modules.size())));
    }
    if (made.row->effect == Effect::drop) std::erase(names_, made.operands.front());
    if (made.row->effect != Effect::fail) run(made, world_, 1.5, values_);
    if (made.row->effect == Effect::drop) values_.erase(made.operands.front());
    block.body.push_back(std::move(made));
    return true;
  }

  bool is_possible(const Instruction& made, int depth) const {
    switch (made.row->effect) {
      case Effect::hold:
      case Effect::exchange:  // sizes that depend on those of the last call could grow without end
        return !themes_.changes && sized_by_data_.count(made.operands.back()) == 0;
      case Effect::drop:  // what only some calls let go could not be used in the others
        return depth == 0;
      case Effect::train:
        return !program_.modules.empty();
      case Effect::rate:
        return program_.mode == Mode::step;
      default:
        return true;
    }
  }

  /// Whether a value has elements in every call: only then can an index be kept in its range.
  bool surely_has_elements(Name name) const { return values_.at(name).numel() > 0 && sized_by_data_.count(name) == 0; }

  /// Whether the sizes of what an instruction gives may depend on the data of the call.
  bool is_sized_by_data(const Instruction& instruction) const {
    return instruction.row->kind == Kind::read || instruction.row->kind == Kind::control ||
           std::ranges::find(instruction.numbers, kCycle) != instruction.numbers.end() ||
           std::any_of(instruction.operands.begin(), instruction.operands.end(),
                       [&](Name name) { return sized_by_data_.count(name) != 0; });
  }

  void append(Block& block, Instruction made) {
    if (is_sized_by_data(made)) sized_by_data_.insert(made.result);
    names_.push_back(made.result);
    block.body.push_back(std::move(made));
  }

  /// Runs an instruction and adds it where it works. What an instruction that is refused has written stays written:
  /// these values only guide what is drawn next.
  bool try_out(Block& block, Instruction made) {
    const auto before = values_.at(made.operands.front()).sizes().vec();
    if (made.result == 0) made.result = next_name();
    try {
      run(made, world_, 1.5, values_);
      const Tensor& target = values_.at(made.operands.front());
      if (target.sizes() != c10::IntArrayRef(before) || !comparable(target) || !comparable(values_.at(made.result))) {
        values_.erase(made.result);
        repair();
        return false;
      }
    } catch (const std::exception&) {
      values_.erase(made.result);
      return false;
    }
    append(block, std::move(made));
    return true;
  }

  /// Values that were written until they became too large become small again.
  void repair() {
    const c10::NoGradGuard no_grad;
    for (auto& [name, value] : values_) {
      if (!has_moderate_numbers(value)) value = at::zeros_like(value);
    }
  }

  bool add_module(Block& block) {
    const Name input = recent();
    Instruction made;
    made.operands = {input};
    const auto spec = draw_module(dice_, themes_, values_.at(input));
    if (!spec || program_.modules.size() >= 3) return false;
    const bool bounded = spec->kind == ModuleKind::embedding && on_ == On::cuda;
    made.row = bounded ? &bounded_module_row() : &module_row();
    made.module = static_cast<int>(program_.modules.size());
    auto module = make_module(*spec);
    session_.fill(module.ptr());
    world_.modules.push_back(std::move(module));
    if (!try_out(block, std::move(made))) {
      world_.modules.pop_back();
      return false;
    }
    program_.modules.push_back(*spec);
    return true;
  }

  const Row& draw_control() {
    std::vector<int64_t> weights;
    for (const Row& row : control_rows()) weights.push_back(themes_.wanted[row.control]);
    return control_rows()[dice_.weighted(weights)];
  }

  bool add_control(Block& block, int depth) {
    Instruction made;
    made.row = &draw_control();
    const auto operand_name = operand(made.row->pattern[0], {});
    if (!operand_name) return false;
    made.operands = {*operand_name};
    made.result = next_name();
    const Control control = made.row->control;
    const bool is_loop = control == Control::loop || control == Control::until || control == Control::turns;
    if (control == Control::loop) made.numbers = {dice_.among({2.0, 3.0, 4.0})};
    if (control == Control::turns) made.numbers = {number('m', {}, {})};
    if (control == Control::every) {
      made.numbers = {number('m', {}, {})};
      made.numbers.push_back(number('e', {}, made.numbers));
    }
    if (is_host_read(made)) made.numbers = {dice_.among({-0.5, 0.0, 0.5})};
    values_[made.result] = values_.at(*operand_name);
    const auto visible = names_;
    const int blocks = is_branch(control) ? 2 : 1;
    for (int i = 0; i < blocks; ++i) {
      if (is_loop) names_.push_back(made.result);
      sized_by_data_.insert(made.result);
      made.blocks.push_back(draw_block(depth + 1));
      names_ = visible;
      for (const auto& source : program_.state) {
        if (std::find(names_.begin(), names_.end(), source.name) == names_.end()) names_.push_back(source.name);
      }
    }
    if (is_loop) return try_out(block, std::move(made));
    values_[made.result] = values_.at(made.blocks.front().result);
    append(block, std::move(made));
    return true;
  }

  static bool is_branch(Control control) {
    return control == Control::branch || control == Control::every || control == Control::coin ||
           control == Control::flagged;
  }

  static bool is_host_read(const Instruction& made) {
    return made.row->control == Control::branch || made.row->control == Control::until;
  }

  Block draw_block(int depth) {
    Block made;
    const int64_t length = 1 + dice_.below(3);
    for (int64_t n = 0; n < length; ++n) add_instruction(made, depth);
    made.result = names_.back();
    return made;
  }

  void choose_outputs() {
    const int64_t count = program_.mode == Mode::step ? 1 : dice_.among({1, 1, 1, 2, 2, 3});
    program_.outputs.push_back(names_.back());
    while (static_cast<int64_t>(program_.outputs.size()) < count) program_.outputs.push_back(recent());
    if (program_.mode != Mode::step) return;
    const auto differentiable = operand('f', {});
    if (differentiable) program_.outputs[0] = *differentiable;
  }

  static constexpr std::array modes_{Mode::no_grad, Mode::inference, Mode::grad, Mode::step};

  Dice dice_;
  hostile::Session session_;
  On on_;
  const bool trusted_;  ///< no host code runs that could ask for a module's flags and parameters
  Program program_;
  World world_;
  Values values_;
  std::vector<Name> names_;  ///< that instructions may use, in the order in which they were made
  std::set<Name> sized_by_data_;
  Name last_name_ = 0;
  Themes themes_;
};

}  // namespace

Program generate(uint64_t seed, const hostile::Place& place) { return Generator(seed, place).generate(); }

}  // namespace sinter::test::fuzz
