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
#include "execute.h"
#include "fits.h"

namespace sinter::test::fuzz {
namespace {

using at::Tensor;

constexpr int64_t kElements = 4096;
/// Of programs with long tensors: above the 32768 elements from which ATen, and Sinter's kernels, use more threads.
constexpr int64_t kManyElements = 1 << 18;
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
        trusted_(place.replay == Replay::trusted),
        effects_(!trusted_ && Dice(~seed).percent(kPercentWithEffects)) {
    program_.seed = seed;
    for (int64_t call = 0; call < kStepTried; ++call) world_.host.begin_call();
  }

  Program generate() {
    program_.mode = modes_[dice_.weighted(effects_ ? std::vector<int64_t>{64, 8, 12, 16} : kModeWeights)];
    program_.keeps_inputs = dice_.percent(25);
    draw_themes();
    const at::AutoGradMode grad(program_.mode == Mode::grad || program_.mode == Mode::step);
    const c10::InferenceMode inference(program_.mode == Mode::inference);
    make_inputs();
    for (int i = 0; i < 2 && effects_; ++i) add_state();
    const int64_t length = (effects_ ? 6 : 3) + dice_.below(long_ ? 5 : 12);
    for (int64_t i = 0; i < length; ++i) add_instruction(program_.body, /*depth=*/0);
    choose_outputs();
    make_calls();
    return std::move(program_);
  }

 private:
  Name next_name() { return ++last_name_; }

  /// What this program is about besides the operators that all are made of.
  void draw_themes() {
    reads_ = dice_.percent(12);
    draws_ = dice_.percent(12);
    changes_ = dice_.percent(20);
    scales_ = dice_.percent(12);
    integers_ = dice_.percent(12);
    complex_ = dice_.percent(7);
    spatial_ = dice_.percent(14);
    long_ = !spatial_ && dice_.percent(2);
    wanted_[Control::branch] = reads_ ? 3 : 0;
    wanted_[Control::until] = reads_ ? 1 : 0;
    wanted_[Control::loop] = dice_.percent(8) ? 3 : 0;
    wanted_[Control::autocast] = dice_.percent(8) ? 4 : 0;
    wanted_[Control::side_stream] = dice_.percent(4) ? 3 : 0;
    if (effects_) {
      wanted_[Control::every] = wanted_[Control::flagged] = wanted_[Control::turns] = 2;
      wanted_[Control::coin] = wanted_[Control::grad_mode] = 1;
      wanted_[Control::branch] = std::max<int64_t>(wanted_[Control::branch], 1);
    }
    if (!long_) return;
    program_.threads = dice_.among({2, 3});
    // Sizes that follow from the branch that was taken would broadcast to gigabytes.
    for (const Control control : {Control::branch, Control::every, Control::flagged, Control::turns, Control::coin}) {
      wanted_[control] = 0;
    }
  }

  bool comparable(const Tensor& tensor) const {
    return tensor.numel() <= (long_ ? kManyElements : kElements) && has_moderate_numbers(tensor);
  }

  std::vector<int64_t> sizes() {
    static constexpr std::initializer_list<int64_t> extents = {1, 2, 2, 3, 3, 4, 4, 5, 8, 17};
    if (long_) return long_sizes();
    std::vector<int64_t> result(spatial_ ? dice_.among({3, 4, 4, 4, 5}) : dice_.among({0, 1, 2, 2, 2, 3, 3, 4}));
    for (auto& size : result) size = dice_.percent(1) ? 0 : dice_.among(extents);
    if (!result.empty() && dice_.percent(6)) result.back() = 65;
    while (c10::multiply_integers(result) > kElements) *std::ranges::max_element(result) /= 2;
    return result;
  }

  /// More elements than one thread takes, and no multiple of a vector or of a thread's share; or one row of them.
  std::vector<int64_t> long_sizes() {
    const auto rows = dice_.among<int64_t>({3, 7, 129, 257});
    const auto columns = dice_.among<int64_t>({70001, 98317}) / rows;
    return std::vector<std::vector<int64_t>>{
        {rows * columns + 1}, {rows, columns}, {1, columns}, {rows, columns, 1}}[dice_.weighted({3, 5, 1, 1})];
  }

  Source source(at::ScalarType dtype, std::vector<int64_t> sizes) {
    Source made;
    made.name = next_name();
    made.dtype = dtype;
    made.sizes = std::move(sizes);
    if (at::isIntegralType(dtype, /*includeBool=*/false)) made.high = dtype == at::kLong ? 2 : 100;
    made.place = std::array{Place::dense,  Place::transposed, Place::strided,
                            Place::offset, Place::expanded,   Place::channels_last}[dice_.weighted(
        {80, 6, 6, 5, 3, spatial_ ? 30 : 0})];
    made.first_changes = changes_ && !made.sizes.empty();
    made.last_changes = changes_ && dice_.percent(30);
    return made;
  }

  void make_inputs() {
    const int64_t count = dice_.among({1, 1, 2, 2, 3});
    const auto common = sizes();
    static constexpr std::array dtypes{at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,        at::kInt,
                                       at::kBool,  at::kByte,   at::kChar, at::kShort,    at::kComplexFloat};
    const int64_t small = integers_ ? 16 : 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto dtype = dtypes[dice_.weighted({76, 7, 4, 4, 6, 1 + small, 2, small, small, small, complex_ ? 60 : 0})];
      auto made = source(dtype, dice_.percent(60) ? common : sizes());
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
    return kinds[dice_.weighted({36, 5, 9, 16, long_ ? 0 : 11, spatial_ ? 12 : 0, integers_ ? 26 : 1, complex_ ? 26 : 0,
                                 14, draws_ ? 4 : 0, reads_ && !long_ ? 3 : 0, long_ ? 0 : 6,
                                 depth < kDepth && controls() > 0 ? (effects_ ? 16 : 6) : 0, effects_ ? 26 : 0})];
  }

  /// The weight of all rows with blocks.
  int64_t controls() const {
    return std::accumulate(wanted_.begin(), wanted_.end(), int64_t{0},
                           [](int64_t sum, const auto& control) { return sum + control.second; });
  }

  void add_instruction(Block& block, int depth) {
    if (dice_.percent(effects_ ? 20 : 6)) add_state();
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
    auto made = source(like.scalar_type(), sizes);
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
        if (effects_ && size_along(before.back()) > 1 && dice_.percent(15)) return kParity;
        return static_cast<double>(dice_.below(size_along(before.back())));
      case 'l':
        return static_cast<double>(
            1 + dice_.below(size_along(before[before.size() - 2]) - static_cast<int64_t>(before.back())));
      case 'n':
        if (effects_ && dice_.percent(15)) return kCycle;
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
        if (scales_ && dice_.percent(50)) return kScale;
        if (effects_ && dice_.percent(25)) return dice_.among({kStep, kRate, kDrawn});
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
        return !changes_ && sized_by_data_.count(made.operands.back()) == 0;
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

  std::optional<ModuleSpec> module_for(const Tensor& tensor) {
    const auto channels = tensor.dim() > 1 ? tensor.size(1) : 0;
    const auto kind = std::array{ModuleKind::linear,    ModuleKind::conv1d,     ModuleKind::conv2d,
                                 ModuleKind::depthwise, ModuleKind::batch_norm, ModuleKind::layer_norm,
                                 ModuleKind::dropout,   ModuleKind::embedding}[dice_.weighted(
        {35, 12, spatial_ ? 25 : 0, spatial_ ? 10 : 0, 20, 12, draws_ ? 15 : 0, 8})];
    if ((kind == ModuleKind::embedding) != (tensor.scalar_type() == at::kLong) || tensor.dim() == 0)
      return std::nullopt;
    if (kind != ModuleKind::embedding && tensor.scalar_type() != at::kFloat) return std::nullopt;
    const auto last = tensor.size(-1);
    if (last == 0) return std::nullopt;
    if (kind == ModuleKind::embedding) return ModuleSpec{kind, {5, dice_.among<int64_t>({2, 3, 4})}};
    if (kind == ModuleKind::linear) return ModuleSpec{kind, {last, dice_.among<int64_t>({1, 3, 4, 8})}};
    if (kind == ModuleKind::layer_norm) return ModuleSpec{kind, {last, 0}};
    if (kind == ModuleKind::dropout) return ModuleSpec{kind, {0, 0}};
    if (channels == 0) return std::nullopt;
    if (kind == ModuleKind::depthwise) return ModuleSpec{kind, {channels, channels * dice_.among<int64_t>({1, 2})}};
    return ModuleSpec{kind, {channels, kind == ModuleKind::batch_norm ? 0 : dice_.among<int64_t>({1, 2, 4})}};
  }

  bool add_module(Block& block) {
    const Name input = recent();
    Instruction made;
    made.operands = {input};
    const auto spec = module_for(values_.at(input));
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
    for (const Row& row : control_rows()) weights.push_back(wanted_[row.control]);
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

  /// What may happen between two calls and make a difference to this program.
  std::vector<Event> events() const {
    std::vector<Event> list;
    if (!program_.state.empty()) list = {Event::update_state, Event::replace_state};
    if (effects_) list.push_back(Event::toggle_flag);
    if (effects_ && alike(program_.state)) list.push_back(Event::swap_state);
    if (program_.modules.empty()) return list;
    list.insert(list.end(), {Event::update_parameters, Event::write_data});
    if (trusted_) return list;
    list.insert(list.end(), {Event::train, Event::eval, Event::replace_parameter, Event::replace_parameter});
    return list;
  }

  /// Enough of them that most are answered by compiled code: what is new in a call runs and is recorded.
  void make_calls() {
    const int64_t count = long_ ? 5 + dice_.below(4) : effects_ ? 8 + dice_.below(5) : 18 + dice_.below(9);
    const auto possible = events();
    const bool eventful = !possible.empty() && dice_.percent(65);
    const bool moves = dice_.percent(12);
    const Place place = dice_.among({Place::transposed, Place::offset, Place::strided});
    const bool differentiates = program_.mode == Mode::grad && !program_.keeps_inputs && dice_.percent(50);
    const bool streams = dice_.percent(8);
    for (int64_t i = 0; i < count; ++i) {
      Call next;
      if (eventful && i > 1 && dice_.percent(35)) next.before = dice_.among(possible);
      if (changes_ && i > 0 && dice_.percent(60)) {
        // Sizes that agree by 8: of those, some are computed from others without a recording.
        next.shape = {dice_.among<int64_t>({0, 1, 8, 9, 16, 17, 24}), dice_.among<int64_t>({0, 0, 1, 8})};
      }
      next.scale = scales_ ? dice_.among({1.0, 1.5}) : 1.5;
      if (moves && dice_.percent(50)) next.place = place;
      next.gradient = differentiates && i > 2 && dice_.percent(50);
      next.other_stream = streams && dice_.percent(50);
      program_.calls.push_back(next);
    }
  }

  static constexpr std::array modes_{Mode::no_grad, Mode::inference, Mode::grad, Mode::step};

  Dice dice_;
  hostile::Session session_;
  On on_;
  const bool trusted_;  ///< no host code runs that could ask for a module's flags and parameters
  const bool effects_;  ///< of the host
  Program program_;
  World world_;
  Values values_;
  std::vector<Name> names_;  ///< that instructions may use, in the order in which they were made
  std::set<Name> sized_by_data_;
  Name last_name_ = 0;
  bool reads_ = false;     ///< on the host
  bool draws_ = false;     ///< random numbers
  bool changes_ = false;   ///< shapes
  bool scales_ = false;    ///< the scalar argument changes
  bool integers_ = false;  ///< of few bits, too
  bool complex_ = false;
  bool spatial_ = false;               ///< tensors with a batch, channels and one to three more dimensions
  bool long_ = false;                  ///< tensors with more elements than one thread takes
  std::map<Control, int64_t> wanted_;  ///< how often rows with blocks are drawn
};

}  // namespace

Program generate(uint64_t seed, const hostile::Place& place) { return Generator(seed, place).generate(); }

}  // namespace sinter::test::fuzz
