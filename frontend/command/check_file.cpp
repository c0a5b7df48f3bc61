#include "frontend/command/check_file.h"

#include <ATen/Context.h>
#include <ATen/core/TensorBody.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <utility>

#include "bench/measure/accuracy.h"
#include "compiler/support/errors.h"
#include "compiler/support/first_line.h"

namespace sinter::command {
namespace {

using Outcome = FileVerdict::Outcome;

constexpr uint64_t kSeed = 20261122;
constexpr int kMoreCalls = 8;  ///< of eager, where a result differs from its first

constexpr std::array<std::pair<Outcome, const char*>, 7> kNames{{{Outcome::agrees, "agrees"},
                                                                 {Outcome::ran_eager, "ran eager"},
                                                                 {Outcome::eager_throws, "eager throws"},
                                                                 {Outcome::refused, "refused"},
                                                                 {Outcome::unstable, "unstable"},
                                                                 {Outcome::differs, "differs"},
                                                                 {Outcome::ended, "ended"}}};

/// A tensor of the same sizes and strides over memory of its own; with `other` numbers where asked for: halved, or for
/// integers and bools those of the same memory in reverse.
at::Tensor twin_of(const at::Tensor& tensor, bool other) {
  if (tensor.is_conj() || tensor.is_neg() || !tensor.has_storage()) return tensor.clone();
  const auto elements = static_cast<int64_t>(tensor.storage().nbytes() / tensor.itemsize());
  at::Tensor memory = tensor.as_strided({elements}, {1}, 0).clone();
  if (other && (tensor.is_floating_point() || tensor.is_complex())) memory.mul_(0.5);
  if (other && at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true)) memory = memory.flip(0);
  return memory.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

/// One call's inputs, and afterwards what it gave and left in them.
struct Call {
  Tensors inputs;
  std::optional<c10::IValue> result;
  std::string error;  ///< where it threw
};

Call perform(const Forward& forward, const Tensors& inputs, bool other, uint64_t seed) {
  Call call;
  for (const at::Tensor& input : inputs) call.inputs.push_back(twin_of(input, other));
  at::manual_seed(seed);
  try {
    call.result = forward(call.inputs);
  } catch (const std::exception& error) {
    call.error = first_line(error.what());
  }
  return call;
}

/// Numbers of a result, in order, as text.
std::string numbers_in(const c10::IValue& value) {
  if (value.isTensor()) return "";
  if (value.isTuple() || value.isList()) {
    std::string text;
    const auto items = value.isTuple() ? c10::ArrayRef<c10::IValue>(value.toTupleRef().elements()) : value.toListRef();
    for (const c10::IValue& item : items) text += numbers_in(item);
    return text;
  }
  if (value.isInt()) return fmt::format("{} ", value.toInt());
  if (value.isBool()) return value.toBool() ? "true " : "false ";
  if (value.isDouble()) return fmt::format("{} ", value.toDouble());
  return "";
}

std::optional<std::string> kind_difference(const at::Tensor& compiled, const at::Tensor& eager) {
  if (compiled.scalar_type() != eager.scalar_type()) {
    return fmt::format("{} where eager gives {}", c10::toString(compiled.scalar_type()),
                       c10::toString(eager.scalar_type()));
  }
  if (compiled.sizes() != eager.sizes()) {
    return fmt::format("sizes [{}] where eager gives [{}]", fmt::join(compiled.sizes(), ","),
                       fmt::join(eager.sizes(), ","));
  }
  if (compiled.device() != eager.device()) return "another device";
  if (compiled.strides() != eager.strides()) {
    return fmt::format("strides [{}] where eager gives [{}]", fmt::join(compiled.strides(), ","),
                       fmt::join(eager.strides(), ","));
  }
  return std::nullopt;
}

/// Equal, or by the benchmark's rule as near to what a wider dtype gives as eager is.
class Comparison {
 public:
  Comparison(const Target& target, const Tensors& inputs, bool values)
      : target_(target), inputs_(inputs), values_(values) {}

  std::optional<std::string> of(const Tensors& compiled, const Tensors& eager) {
    if (compiled.size() != eager.size()) return "another number of tensors";
    for (size_t i = 0; i < compiled.size(); ++i) {
      if (auto text = of(compiled[i], eager[i], i)) return fmt::format("result {}: {}", i, *text);
    }
    return std::nullopt;
  }

  std::optional<std::string> of(const at::Tensor& compiled, const at::Tensor& eager, std::optional<size_t> result) {
    if (auto text = kind_difference(compiled, eager)) return text;
    if (!values_ || compiled.numel() == 0) return std::nullopt;
    const double error = bench::distances(compiled, eager).max().item<double>();
    if (error == 0) return std::nullopt;
    if (result && is_as_near(compiled, eager, *result)) return std::nullopt;
    return fmt::format("an error of {:.3g} where the largest is {:.3g}", error, bench::largest_finite(eager));
  }

 private:
  /// By the benchmark's rule. Where eager is far from the wider dtype, that may be another computation: then eager is
  /// the measure, unless the compiled result is the nearer one.
  bool is_as_near(const at::Tensor& compiled, const at::Tensor& eager, size_t result) {
    const std::optional<at::Tensor> exact = wide(eager, result);
    if (!exact) return bench::compare(compiled, eager, eager).ok;
    const bench::Accuracy found = bench::compare(compiled, eager, *exact);
    const bool half = eager.scalar_type() == at::kHalf || eager.scalar_type() == at::kBFloat16;
    const double size = std::max(bench::largest_finite(eager), 1e-30);
    if (found.eager_max_error <= (half ? 5e-2 : 1e-4) * size) return found.ok;
    const bool nearer =
        found.ok && found.max_error <= found.eager_max_error && found.rms_error <= found.eager_rms_error;
    return nearer || bench::compare(compiled, eager, eager).ok;
  }

  /// The result in a wider dtype, where there is one of its kind.
  std::optional<at::Tensor> wide(const at::Tensor& eager, size_t result) {
    if (!reference_) reference_ = reference_for(target_, inputs_, {eager}).value_or(Reference{{}, at::kFloat});
    if (result >= reference_->tensors.size()) return std::nullopt;
    const at::Tensor& wide = reference_->tensors[result];
    if (wide.sizes() != eager.sizes() || wide.is_complex() != eager.is_complex()) return std::nullopt;
    return wide;
  }

  const Target& target_;
  const Tensors& inputs_;
  bool values_;
  std::optional<Reference> reference_;
};

std::optional<std::string> difference(const Target& target, const Call& eager, const Call& compiled, bool values) {
  if (eager.result.has_value() != compiled.result.has_value()) {
    return eager.result ? "it throws: " + compiled.error : "eager throws: " + eager.error;
  }
  if (!eager.result) return std::nullopt;
  if (values && numbers_in(*eager.result) != numbers_in(*compiled.result)) return "other numbers";
  Comparison results(target, eager.inputs, values);
  if (auto text = results.of(tensors_in(*compiled.result), tensors_in(*eager.result))) return text;
  for (size_t i = 0; i < eager.inputs.size(); ++i) {
    if (auto text = results.of(compiled.inputs[i], eager.inputs[i], std::nullopt)) {
      return fmt::format("input {} afterwards: {}", i, *text);
    }
  }
  return std::nullopt;
}

/// Notes LibTorch's warnings about operators that are not deterministic.
class NondeterminismWatch final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    seen = seen || warning.msg().find("does not have a deterministic implementation") != std::string::npos;
  }
  bool seen = false;
};

/// True where LibTorch says that what a call gives is not determined.
template <class Again>
bool is_nondeterministic(const Again& again) {
  at::Context& context = at::globalContext();
  const bool asked = context.deterministicAlgorithms();
  const bool warns = context.deterministicAlgorithmsWarnOnly();
  NondeterminismWatch watch;
  const c10::WarningUtils::WarningHandlerGuard guard(&watch);
  context.setDeterministicAlgorithms(true, /*warn_only=*/true);
  again();
  context.setDeterministicAlgorithms(asked, warns);
  return watch.seen;
}

/// True where eager, called again, gives another result, or may: at times only one of many calls does.
template <class Again>
bool is_unstable(const Target& target, const Call& expected, const Again& again, bool values) {
  if (is_nondeterministic(again)) return true;
  for (int i = 0; i < kMoreCalls; ++i) {
    if (difference(target, expected, again(), values)) return true;
  }
  return false;
}

FileVerdict verdict_of(const Report& report) {
  FileVerdict verdict;
  for (const EntryReport& entry : report.entries) {
    verdict.replays += entry.replays;
    if (!verdict.reason.empty()) continue;
    if (!entry.breaks.empty()) {
      const GraphBreak& found = entry.breaks.front();
      verdict.reason = fmt::format("{} {}: {}", name(found.code), found.op, first_line(found.reason));
    } else if (!entry.compiled) {
      verdict.reason = "it runs as eager runs it";
    }
  }
  if (verdict.reason.empty() && verdict.replays == 0) {
    verdict.reason = report.notes.empty() ? "no call was replayed" : "no call was replayed: " + report.notes.front();
  }
  if (!verdict.reason.empty()) verdict.outcome = Outcome::ran_eager;
  return verdict;
}

FileVerdict check(const Target& target, const TargetOptions& options, int64_t calls, bool values) {
  const Forward eager = target.forward;
  auto compiled = sinter::compile(target.forward, compile_options(options, target));
  const Forward fast = [&compiled](const Tensors& inputs) { return compiled(inputs); };
  const Call first = perform(eager, target.first, false, kSeed);
  if (!first.result) {
    const Call again = perform(fast, target.first, false, kSeed);
    if (again.result) return {Outcome::differs, "eager throws: " + first.error};
    return {Outcome::eager_throws, first.error};
  }
  const bool others = perform(eager, target.first, true, kSeed).result.has_value();
  for (int64_t i = 0; i < calls; ++i) {
    const bool other = others && i >= 2 && i % 2 == 0;
    const uint64_t seed = kSeed + static_cast<uint64_t>(i);
    const Call expected = perform(eager, target.first, other, seed);
    const Call given = perform(fast, target.first, other, seed);
    if (auto text = difference(target, expected, given, values)) {
      const auto again = [&] { return perform(eager, target.first, other, seed); };
      const bool unstable = is_unstable(target, expected, again, values);
      return {unstable ? Outcome::unstable : Outcome::differs, fmt::format("call {}: {}", i + 1, *text)};
    }
  }
  return verdict_of(compiled.report());
}

}  // namespace

std::string name_of(Outcome outcome) { return kNames.at(static_cast<size_t>(outcome)).second; }

Outcome outcome_named(const std::string& name) {
  for (const auto& [outcome, known] : kNames) {
    if (name == known) return outcome;
  }
  throw UserError("outcome '" + name + "' is unknown");
}

FileVerdict check_file(const TargetOptions& options, int64_t calls, bool values) {
  const at::NoGradGuard no_grad;
  try {
    return check(make_target(options), options, calls, values);
  } catch (const std::exception& error) {
    return {Outcome::refused, first_line(error.what())};
  }
}

}  // namespace sinter::command
