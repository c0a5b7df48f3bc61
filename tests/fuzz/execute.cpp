#include "execute.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <string>

#include "effects.h"
#include "scopes.h"
#include "widened.h"

namespace sinter::test::fuzz {
namespace {

using at::Tensor;
using hostile::Session;

Tensor fresh(const Source& source, std::vector<int64_t> sizes, Session& session) {
  if (source.dtype == at::kBool) return session.integers(2, sizes, at::kBool);
  if (source.high > 0) return session.integers(source.high, sizes, source.dtype);
  if (source.dtype != at::kComplexFloat) return session.randn(sizes, source.dtype);
  sizes.push_back(2);
  return at::view_as_complex(session.randn(sizes));
}

/// Another random number in every element, a little apart from what it was. Autograd does not learn of it.
void push(const Tensor& tensor, double apart, const at::Generator& generator) {
  if (apart == 0 || !(tensor.is_floating_point() || tensor.is_complex())) return;
  const c10::NoGradGuard no_grad;
  const auto noise = at::randn(tensor.sizes(), generator, at::TensorOptions(at::kDouble)) * apart + 1;
  const Tensor numbers = tensor.requires_grad() ? tensor.data() : tensor;
  numbers.copy_(numbers * noise.to(tensor.device()));
}

void push(const Tensor& tensor, const Drawing& drawing) {
  if (drawing.apart != 0) push(tensor, drawing.apart, at::detail::createCPUGenerator(drawing.seed));
}

/// True where nobody else has the memory.
bool is_new(const Tensor& tensor) { return tensor.use_count() == 1 && tensor.storage().use_count() == 1; }

Tensor argument(Source source, const std::vector<Tensor>& earlier, const Call& call, Session& session) {
  if (source.shares < 0 && source.place == Place::dense) source.place = call.place;
  if (source.shares < 0) return draw(source, call.shape, session);
  const Tensor& base = earlier[source.shares];
  if (source.place == Place::transposed && base.dim() > 1) return base.transpose(0, -1);
  if (source.place == Place::offset && base.dim() > 0 && base.size(0) > 1) return base.narrow(0, 1, base.size(0) - 1);
  return base;
}

/// The floating dtype that a row converts to, where it names one and does nothing else.
std::optional<at::ScalarType> dtype_of_cast(const Row& row) {
  const std::string_view text = row.text;
  for (const auto dtype : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    if (text == "t[0].to(at::k" + std::string(c10::toString(dtype)) + ")") return dtype;
  }
  return std::nullopt;
}

/// Whether a row that is no cast gives f32 whatever its operands are.
bool gives_floats(const Row& row) {
  static constexpr std::string_view ways[] = {".to(at::kFloat)", "dtype(at::kFloat)", "mean(t[0], at::kFloat)"};
  return std::ranges::any_of(ways,
                             [&](std::string_view way) { return std::string_view(row.text).find(way) != way.npos; });
}

/// Modules compute in their own dtype.
Tensor forward(World& world, int module, const Tensor& input) {
  auto& callee = world.modules[module];
  if (!world.wide || !input.is_floating_point()) return callee.forward(input);
  return callee.forward(input.to(at::kFloat)).to(at::kDouble);
}

void run(const Block& block, World& world, double scale, Values& values) {
  for (const auto& instruction : block.body) run(instruction, world, scale, values);
}

/// Runs a block and gives what it gives. Its other values end with it.
Tensor value_of(const Block& block, World& world, double scale, Values& values) {
  run(block, world, scale, values);
  Tensor value = values.at(block.result);
  for (const auto& made : block.body) values.erase(made.result);
  return value;
}

/// How far a sum may lie from another one whose data is a rounding away: by one of its addends, and near zero by the
/// smallest numbers of its dtype, of which roundings are no share.
double roundings_of_sum(const Tensor& tensor, double apart) {
  const double addends = at::sum(tensor.to(at::kDouble).abs()).item<double>();
  return apart * addends + 2 * step_near_zero(tensor.scalar_type());
}

/// Whether the condition of a row holds.
bool holds(Control control, const Tensor& tensor, double limit, World& world) {
  auto sum = at::sum(tensor).item<double>();
  if (world.apart != 0) {
    const auto away = at::randn({}, world.noise, at::TensorOptions(at::kDouble)).item<double>();
    sum += away * roundings_of_sum(tensor, world.apart);
  }
  return control == Control::until ? sum < limit : sum > limit;
}

void run_control(const Instruction& made, World& world, double scale, Values& values) {
  const Control control = made.row->control;
  Tensor& value = values[made.result] = values.at(made.operands[0]);
  const auto block = [&](size_t i) { value = value_of(made.blocks[i], world, scale, values); };
  switch (control) {
    case Control::branch:
      return block(holds(control, value, made.numbers[0], world) ? 0 : 1);
    case Control::every:
    case Control::coin:
    case Control::flagged:
      return block(decides(made, world.host) ? 0 : 1);
    case Control::loop:
    case Control::turns:
      for (int turn = turns(made, world.host); turn > 0; --turn) block(0);
      return;
    case Control::until:
      for (int turn = 0; turn < kMostTurns && holds(control, value, made.numbers[0], world); ++turn) block(0);
      return;
    case Control::autocast: {
      const Autocast autocast(world.device.type(), at::kBFloat16);
      return block(0);
    }
    case Control::side_stream: {
      const OtherStream stream(world.device);
      return block(0);
    }
    case Control::grad_mode: {
      const at::AutoGradMode grad(world.host.flag());
      return block(0);
    }
    case Control::none:
      return;
  }
}

/// The values of a call in the next wider dtype. When it ends, what was written is put back, and the variables of
/// closed-over tensors hold what they were given.
class WideCall {
 public:
  WideCall(const Program& program, World& world, Values& values) : program_(program), world_(world), values_(values) {
    for (auto& [name, value] : values) value = widened_.of(value);
    before_ = values;
  }
  ~WideCall() {
    for (const auto& source : program_.state) {
      const Tensor& held = values_.at(source.name);
      if (!held.is_same(before_.at(source.name))) world_.state.at(source.name) = widened_.back(held, source.dtype);
    }
    widened_.put_back();
  }
  WideCall(const WideCall&) = delete;
  WideCall& operator=(const WideCall&) = delete;

 private:
  const Program& program_;
  World& world_;
  Values& values_;
  Values before_;
  Widened widened_;
};

std::vector<Tensor> call(const Program& program, World& world, const std::vector<Tensor>& inputs, double scale) {
  world.host.begin_call();
  Values values = world.state;
  for (size_t i = 0; i < inputs.size(); ++i) values[program.inputs[i].name] = inputs[i];
  {
    std::optional<WideCall> wide;
    if (world.wide) wide.emplace(program, world, values);
    run(program.body, world, scale, values);
  }
  std::vector<Tensor> outputs;
  for (const Name name : program.outputs) outputs.push_back(values.at(name));
  if (world.optimizer == nullptr) return outputs;
  world.optimizer->zero_grad();
  const Tensor loss = at::mean(outputs[0].to(at::kFloat));
  loss.backward();
  world.optimizer->step();
  return {loss.detach()};
}

void replace_weight(torch::nn::AnyModule& module, Session& session) {
  if (auto* linear = dynamic_cast<torch::nn::LinearImpl*>(module.ptr().get())) {
    linear->weight = session.randn(linear->weight.sizes()).set_requires_grad(linear->weight.requires_grad());
  }
}

void happen_to_host(Event event, const Program& program, World& world) {
  if (event == Event::toggle_flag) world.host.set_flag(!world.host.flag());
  const auto pair = alike(program.state);
  if (event != Event::swap_state || !pair) return;
  std::swap(world.state.at(program.state[pair->first].name), world.state.at(program.state[pair->second].name));
}

void happen(Event event, const Program& program, World& world, Session& session, const Drawing& drawing) {
  const c10::NoGradGuard no_grad;
  happen_to_host(event, program, world);
  for (const auto& source : program.state) {
    Tensor& state = world.state.at(source.name);
    const bool continuous = state.is_floating_point() || state.is_complex();
    if (event == Event::update_state && continuous) state.mul_(0.5).add_(0.25);
    if (event == Event::replace_state) push(state = draw(source, {}, session), drawing);
  }
  for (auto& module : world.modules) {
    if (event == Event::train) module.ptr()->train();
    if (event == Event::eval) module.ptr()->eval();
    if (event == Event::replace_parameter) replace_weight(module, session);
    for (const Tensor& parameter : module.ptr()->parameters()) {
      if (event == Event::update_parameters) parameter.mul_(0.75);
      if (event == Event::write_data) parameter.data().mul_(0.75);
    }
  }
}

/// The same for eager and compiled code, where LibTorch refuses it: a variable may hold what must not be written.
void happen_or_show(Event event, const Program& program, World& world, Session& session, const Drawing& drawing) {
  try {
    happen(event, program, world, session, drawing);
  } catch (const c10::Error&) {
    session.show("between calls", "refused");
  }
}

void make_world(const Program& program, World& world, Session& session, const Drawing& drawing) {
  for (const auto& source : program.state) {
    Tensor& state = world.state[source.name] = draw(source, {}, session);
    push(state, drawing);
    session.watch("s" + std::to_string(source.name), &state);
  }
  std::vector<Tensor> parameters;
  for (const auto& spec : program.modules) {
    world.modules.push_back(make_module(spec));
    session.fill(world.modules.back().ptr());
    session.watch(world.modules.back().ptr());
    const at::NoGradGuard no_grad;
    for (auto& parameter : world.modules.back().ptr()->parameters()) {
      push(parameter, drawing);
      parameters.push_back(parameter);
    }
  }
  if (program.mode != Mode::step || parameters.empty()) return;
  world.optimizer = std::make_shared<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.1).momentum(0.9));
}

/// What operators have written, as autograd sees it.
class Versions {
 public:
  Versions(const std::vector<Tensor>& inputs, const World& world) {
    for (const auto& tensor : inputs) add(tensor);
    for (const auto& [name, tensor] : world.state) add(tensor);
  }

  /// Which of them were written since, by number.
  [[nodiscard]] std::string raised() const {
    std::string text;
    for (size_t i = 0; i < before_.size(); ++i) {
      const auto& [tensor, version] = before_[i];
      if (!tensor->is_inference() && tensor->_version() != version) text += std::to_string(i) + " ";
    }
    return text;
  }

 private:
  void add(const Tensor& tensor) { before_.emplace_back(&tensor, tensor.is_inference() ? 0 : tensor._version()); }

  std::vector<std::pair<const Tensor*, int64_t>> before_;  ///< pointers: references would be seen by guards
};

}  // namespace

std::vector<int64_t> sizes_in(const Source& source, const Shape& shape) {
  auto sizes = source.sizes;
  if (source.first_changes && !sizes.empty()) sizes.front() += shape.first;
  if (source.last_changes && sizes.size() > 1) sizes.back() += shape.last;
  return sizes;
}

Tensor draw(const Source& source, const Shape& shape, Session& session) {
  auto sizes = sizes_in(source, shape);
  if (sizes.empty()) return fresh(source, sizes, session);
  switch (source.place) {
    case Place::dense:
      break;
    case Place::transposed:
      std::swap(sizes.front(), sizes.back());
      return fresh(source, sizes, session).transpose(0, -1);
    case Place::strided:
      sizes.back() *= 2;
      return fresh(source, sizes, session).slice(-1, 0, sizes.back(), 2);
    case Place::offset: {
      const int64_t numel = c10::multiply_integers(sizes);
      return fresh(source, {numel + 3}, session).narrow(0, 3, numel).view(sizes);
    }
    case Place::expanded: {
      auto one = sizes;
      one[0] = 1;
      return fresh(source, one, session).expand(sizes);
    }
    case Place::channels_last:
      if (sizes.size() == 4) return fresh(source, sizes, session).contiguous(at::MemoryFormat::ChannelsLast);
      if (sizes.size() == 5) return fresh(source, sizes, session).contiguous(at::MemoryFormat::ChannelsLast3d);
      break;
  }
  return fresh(source, sizes, session);
}

torch::nn::AnyModule make_module(const ModuleSpec& spec) {
  const auto [a, b] = spec.sizes;
  switch (spec.kind) {
    case ModuleKind::linear:
      return torch::nn::AnyModule(torch::nn::Linear(a, b));
    case ModuleKind::conv1d:
      return torch::nn::AnyModule(torch::nn::Conv1d(torch::nn::Conv1dOptions(a, b, 3).padding(1)));
    case ModuleKind::conv2d:
      return torch::nn::AnyModule(torch::nn::Conv2d(torch::nn::Conv2dOptions(a, b, 3).padding(1)));
    case ModuleKind::depthwise:
      return torch::nn::AnyModule(torch::nn::Conv2d(torch::nn::Conv2dOptions(a, b, 3).padding(1).groups(a)));
    case ModuleKind::batch_norm:
      return torch::nn::AnyModule(torch::nn::BatchNorm1d(a));
    case ModuleKind::layer_norm:
      return torch::nn::AnyModule(torch::nn::LayerNorm(torch::nn::LayerNormOptions({a})));
    case ModuleKind::dropout:
      return torch::nn::AnyModule(torch::nn::Dropout(0.25));
    case ModuleKind::embedding:
      return torch::nn::AnyModule(torch::nn::Embedding(a, b));
  }
  return {};
}

Tensor value_of(const Instruction& instruction, World& world, double scale, const Values& values) {
  std::vector<Tensor> operands;
  for (const Name name : instruction.operands) operands.push_back(values.at(name));
  auto numbers = instruction.numbers;
  for (double& number : numbers) number = number == kScale ? scale : world.host.value_of(number);
  const auto cast = world.wide ? dtype_of_cast(*instruction.row) : std::nullopt;
  if (cast) return operands[0].to(wider(*cast));
  const Tensor result = instruction.row->run(operands, numbers);
  return world.wide && gives_floats(*instruction.row) ? result.to(wider(at::kFloat)) : result;
}

void run(const Instruction& instruction, World& world, double scale, Values& values) {
  if (instruction.row->kind == Kind::control) return run_control(instruction, world, scale, values);
  if (instruction.row->effect != Effect::none) return take_effect(instruction, scale, world, values);
  Tensor result = value_of(instruction, world, scale, values);
  if (instruction.row->kind == Kind::module) result = forward(world, instruction.module, result);
  if (world.apart != 0 && is_new(result)) push(result, world.apart, world.noise);
  values[instruction.result] = result;
}

void run(const Program& program, Session& session, const Drawing& drawing) {
  const at::AutoGradMode grad(program.mode == Mode::grad || program.mode == Mode::step);
  const Threads threads(program.threads);
  World world(program.seed);
  world.device = session.device();
  world.wide = drawing.wide;
  world.apart = drawing.apart;
  world.noise = at::detail::createCPUGenerator(drawing.seed);
  make_world(program, world, session, drawing);
  Options options{.numerics = drawing.numerics, .name = "fuzz"};
  for (size_t i = 0; i < world.modules.size(); ++i) {
    options.modules.emplace_back("m" + std::to_string(i), world.modules[i].ptr());
  }
  auto f = session.compile(
      [&](const std::vector<Tensor>& inputs, double scale) { return call(program, world, inputs, scale); }, options);
  std::vector<Tensor> inputs;
  for (const Call& next : program.calls) {
    happen_or_show(next.before, program, world, session, drawing);
    if (inputs.empty() || !program.keeps_inputs) {
      inputs.clear();
      for (const auto& source : program.inputs) {
        inputs.push_back(argument(source, inputs, next, session));
        if (source.shares < 0 && source.place != Place::expanded) push(inputs.back(), drawing);
      }
    }
    for (Tensor& input : inputs) {
      if (input.is_floating_point() && input.is_leaf()) input.set_requires_grad(next.gradient);
    }
    const Versions versions(inputs, world);
    const c10::InferenceMode inference(program.mode == Mode::inference);
    const OtherStream stream(next.other_stream ? session.device() : at::Device(at::kCPU));
    f(inputs, next.scale);
    session.show("tensors written", versions.raised());
    if (has_effects(program)) session.show("host", world.host.text());
  }
}

}  // namespace sinter::test::fuzz
