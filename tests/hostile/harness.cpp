#include "harness.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <c10/util/Type.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace sinter::test::hostile {
namespace {

using at::Tensor;

constexpr uint64_t kSeed = 20;

/// An error's text may hold that of another one, with its stack: frames are no part of what a program is told.
std::string without_frames(const std::string& text) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("frame #") && !line.starts_with("Exception raised from ")) kept += line + "\n";
  }
  return kept;
}

void check_no_internal_error(const Outcome& outcome) {
  for (const auto& entry : outcome.entries) EXPECT_EQ(entry.internal_error, "") << outcome.report;
}

}  // namespace

Answers Answers::of(const Stats& stats, const Report& report) {
  Answers answers{.replayed = stats.replayed, .threw = stats.threw};
  for (const EntryReport& entry : report.entries) answers.segments += entry.replays;
  return answers;
}

bool Answers::show_a_replay_since(const Answers& before) const {
  return replayed > before.replayed || (threw > before.threw && segments > before.segments);
}

Session::Session(const Place& place, bool compiled)
    : place_(place), compiled_(compiled), generator_(at::detail::createCPUGenerator(kSeed)) {
  at::manual_seed(kSeed);
}

at::TensorOptions Session::options(at::ScalarType dtype) const { return at::TensorOptions(device()).dtype(dtype); }

Tensor Session::randn(c10::IntArrayRef sizes, at::ScalarType dtype) {
  return at::randn(sizes, generator_, at::TensorOptions(at::kDouble)).to(options(dtype));
}

Tensor Session::integers(int64_t high, c10::IntArrayRef sizes, at::ScalarType dtype) {
  return at::randint(high, sizes, generator_, at::TensorOptions(at::kLong)).to(options(dtype));
}

Tensor Session::counting(c10::IntArrayRef sizes, at::ScalarType dtype) const {
  return at::arange(c10::multiply_integers(sizes), options(dtype)).reshape(sizes);
}

void Session::watch(std::string name, const Tensor* variable) { variables_.emplace_back(std::move(name), variable); }

void Session::watch(const std::shared_ptr<torch::nn::Module>& module) { modules_.push_back(module); }

void Session::fill(const std::shared_ptr<torch::nn::Module>& module) {
  const c10::NoGradGuard no_grad;
  module->to(device());
  for (auto& parameter : module->parameters()) parameter.copy_(randn(parameter.sizes(), parameter.scalar_type()) * 0.3);
}

void Session::show(const std::string& label, const Tensor& tensor) {
  Observation seen{.label = label, .facts = {}, .values = {}};
  observe(seen, {{label, tensor}});
  observations_.push_back(std::move(seen));
}

void Session::show(const std::string& label, const std::string& text) {
  observations_.push_back({.label = label, .facts = text + "\n", .values = {}});
}

std::vector<Observation> Session::finish() {
  show("default generator of the CPU", at::detail::getDefaultCPUGenerator().get_state());
  for (c10::DeviceIndex i = 0; on_cuda() && i < static_cast<c10::DeviceIndex>(at::getNumGPUs()); ++i) {
    const auto generator = at::globalContext().defaultGenerator({at::kCUDA, i});
    show("default generator of GPU " + std::to_string(i), generator.get_state());
  }
  return std::move(observations_);
}

std::vector<Held> Session::state() const {
  std::vector<Held> tensors;
  for (const auto& [name, variable] : variables_) tensors.push_back({"state " + name, *variable});
  for (const auto& module : modules_) {
    for (const auto& item : module->named_parameters()) tensors.push_back({"parameter " + item.key(), item.value()});
    for (const auto& item : module->named_buffers()) tensors.push_back({"buffer " + item.key(), item.value()});
  }
  return tensors;
}

void Session::run(Observation& seen, const std::function<void()>& body) {
  try {
    body();
  } catch (const c10::Error& error) {
    seen.facts +=
        "threw " + c10::demangle(typeid(error).name()) + ": " + without_frames(error.what_without_backtrace());
  } catch (const std::exception& error) {
    seen.facts += "threw " + c10::demangle(typeid(error).name()) + ": " + without_frames(error.what());
  } catch (const int number) {
    seen.facts += "threw the number " + std::to_string(number) + "\n";
  }
}

void Session::note_call(Observation seen, std::vector<Held> tensors) {
  seen.label = "call " + std::to_string(++calls_);
  const auto results =
      std::find_if(tensors.begin(), tensors.end(), [](const Held& held) { return held.label.starts_with("result "); });
  const auto held = state();
  tensors.insert(results, held.begin(), held.end());
  observe(seen, tensors);
  observations_.push_back(std::move(seen));
}

void Session::note_answer(bool replayed) { outcome_.replayed.push_back(replayed); }

void Session::note_report(const Report& report) {
  outcome_.entries.insert(outcome_.entries.end(), report.entries.begin(), report.entries.end());
  std::ostringstream text;
  text << report;
  outcome_.report += text.str();
}

namespace {

Outcome compare(const Program& program, const Place& place) {
  const c10::NoGradGuard no_grad;
  Session eager(place, /*compiled=*/false);
  program.run(eager);
  const auto expected = eager.finish();
  Session compiled(place, /*compiled=*/true);
  program.run(compiled);
  const auto found = compiled.finish();
  const auto text = difference(expected, found, program.numbers);
  EXPECT_FALSE(text) << *text << "\n" << compiled.outcome().report;
  return std::move(compiled.outcome());
}

}  // namespace

int check(const Program& program, const Place& place) {
  const Outcome outcome = compare(program, place);
  check_no_internal_error(outcome);
  const auto found = std::find(outcome.replayed.begin(), outcome.replayed.end(), true);
  return found == outcome.replayed.end() ? 0 : static_cast<int>(found - outcome.replayed.begin()) + 1;
}

}  // namespace sinter::test::hostile
