#include "frontend/replay/draw_log.h"

#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>

#include "compiler/passes/aten.h"
#include "compiler/support/planted.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/cuda.h"

namespace sinter::frontend {

GeneratorPlace GeneratorPlace::of(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return {generator.current_seed(), cuda::drawn_by(generator).value_or(0)};
}

void GeneratorPlace::set(c10::Device device) const {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  if (generator.current_seed() != seed) generator.set_current_seed(seed);
  cuda::rewind(generator, drawn);
}

bool DrawLog::continues_with(const Step& step) const {
  if (!step.draw || !first_) return true;
  return step.draw->device == device_ && GeneratorPlace::of(device_) == next_;
}

void DrawLog::note(const Step& step) {
  if (!step.draw) return;
  device_ = step.draw->device;
  if (!first_) next_ = first_.emplace(GeneratorPlace::of(device_));
  next_.drawn += step.draw->amount;
  next_.set(device_);
}

void DrawLog::take_back() {
  if (first_ && GeneratorPlace::of(device_) == next_) first_->set(device_);
  clear();
}

DrawLog::WhileItRuns::WhileItRuns(const DrawLog& log) : log_(log) {
  if (log_.empty()) return;
  after_ = GeneratorPlace::of(log_.device_);
  begin_again();
}

DrawLog::WhileItRuns::~WhileItRuns() {
  if (!log_.empty()) after_.set(log_.device_);
}

void DrawLog::WhileItRuns::begin_again() const {
  if (!log_.empty() && !planted(Bug::generators_not_rewound)) log_.first_->set(log_.device_);
}

std::optional<c10::Device> draws_in_step(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments) {
  static constexpr std::array<std::string_view, 7> names{"aten::native_dropout", "aten::bernoulli", "aten::bernoulli_",
                                                         "aten::uniform_",       "aten::normal_",   "aten::rand_like",
                                                         "aten::randn_like"};
  if (!draws(facts, arguments)) return std::nullopt;
  if (std::ranges::find(names, passes::base_name(facts.name)) == names.end()) return std::nullopt;
  std::optional<c10::Device> device;
  bool one = true;
  for (const c10::IValue& argument : arguments) {
    if (argument.isGenerator() || argument.isDevice()) return std::nullopt;
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (!device) device = tensor.device();
      one = one && *device == tensor.device();
    });
  }
  return one && device && device->is_cuda() ? device : std::nullopt;
}

}  // namespace sinter::frontend
