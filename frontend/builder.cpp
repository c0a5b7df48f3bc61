#include "frontend/builder.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Type.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "compiler/compile.h"
#include "compiler/support/planted.h"
#include "frontend/closure.h"
#include "frontend/compare.h"
#include "frontend/compile_times.h"
#include "frontend/convert.h"
#include "frontend/events.h"
#include "frontend/generator_states.h"
#include "frontend/left_behind.h"
#include "frontend/meeting.h"
#include "frontend/read_as.h"
#include "frontend/tensor_memory.h"
#include "frontend/trace/captured_graph.h"
#include "runtime/known_functions.h"
#include "runtime/nvrtc.h"
#include "runtime/ranges.h"

namespace sinter::frontend {
namespace {

/// Why a captured program cannot be replayed, if it cannot.
std::optional<GraphBreak> break_of(const Captured& captured) {
  if (!captured.unknown_type.empty()) {
    return GraphBreak{.code = BreakCode::unsupported_input,
                      .op = {},
                      .where = {},
                      .reason = "the callable returns " + captured.unknown_type + ", which cannot be described",
                      .hint = "return tensors, scalars, strings, or tuples, vectors, maps and optionals of them"};
  }
  if (captured.trace.graph_break) return captured.trace.graph_break;
  for (const auto& result : captured.results) {
    if (!is_plain(plain_view(result))) {
      return GraphBreak{.code = BreakCode::unsupported_op,
                        .op = {},
                        .where = {},
                        .reason = "a result is not a dense strided tensor on the CPU or a CUDA device",
                        .hint = {}};
    }
  }
  for (const auto& slot : captured.trace.states) {
    if (!slot.tensor.expired()) continue;
    return GraphBreak{.code = BreakCode::unstable,
                      .op = {},
                      .where = {},
                      .reason = "state " + slot.name + " did not outlive the call",
                      .hint = "make the tensor once, outside of the callable"};
  }
  return std::nullopt;
}

/// ATen calls that do work: all but those that only look at memory of another tensor.
int64_t working_calls(const ir::Graph& graph) {
  const auto works = [&graph](ir::NodeId id) {
    const ir::Node& node = graph.node(id);
    const auto* call = node.as<ir::Call>();
    if (call == nullptr) return false;
    const auto fresh = [&graph](ir::ValueId value) { return !graph.value(value).alias; };
    return !call->mutates.empty() || node.results.empty() ||
           std::any_of(node.results.begin(), node.results.end(), fresh);
  };
  return std::count_if(graph.order().begin(), graph.order().end(), works);
}

std::string describe(const InternalError& error) { return error.what() + saved_text(error); }

GraphBreak unstable(int64_t call, const std::string& difference) {
  return {.code = BreakCode::unstable,
          .op = {},
          .where = {},
          .reason = "call " + std::to_string(call) + " did something else than the first one: " + difference,
          .hint = "pass what changes as an argument, or ask for it with sinter::host"};
}

GraphBreak compile_failed(const InternalError& error) {
  return {.code = BreakCode::compile_failed,
          .op = {},
          .where = error.where(),
          .reason = error.what(),
          .hint = "this is a bug in Sinter; the report's internal error says more"};
}

}  // namespace

Captured Builder::capture_program(const detail::Flat& arguments, const detail::Program& program) {
  failed_at_.clear();
  const auto names = named_tensors(modules_);
  Captured captured;
  std::vector<at::Tensor> inputs;
  for (const auto* tensor : arguments.tensors) inputs.push_back(*tensor);
  const auto run = [&]() {
    detail::Flat result;
    program.run(program.context, &result);
    captured.structure.assign(result.structure.begin(), result.structure.end());
    if (result.unknown != nullptr) captured.unknown_type = c10::demangle(result.unknown->name());
    std::vector<at::Tensor> tensors;
    for (const auto* tensor : result.tensors) tensors.push_back(*tensor);
    return tensors;
  };
  auto before = facts_of(options_.optimizers);
  std::vector<WeakTensor> leaves = parameters_of(options_.optimizers);
  leaves.insert(leaves.end(), leaves_.begin(), leaves_.end());
  const WatchedGenerators generators(generators_);
  captured.trace = capture(run, inputs, names, &captured.results, &failed_at_, leaves);
  if (!captured.trace.graph_break) captured.trace.graph_break = generators.seeded_by(captured.trace);
  remember(captured.trace);
  const auto after = facts_of(options_.optimizers);
  auto use = optimizer_use(captured.trace, before, after);
  captured.optimizers = std::make_shared<OptimizerLink>();
  // Another course of a program that reads the host may step where this one does not.
  const auto keep = captured.trace.reads.empty() ? OptimizerLink::Keep::used : OptimizerLink::Keep::all;
  captured.optimizers->set(std::move(before), after, std::move(use.numbers), keep);
  auto& reason = captured.trace.graph_break;
  if (use.graph_break && (!reason || reason->code == BreakCode::state_mutation)) reason = std::move(use.graph_break);
  if (reason && captured.optimizers->made_state()) {
    reason->reason += "; an optimizer made its state in this step";
    reason->hint = "later steps find it and are recorded anew";
  }
  for (size_t i = 0; i < inputs.size() && !captured.trace.graph_break; ++i) {
    if (inputs[i].is_same(*arguments.tensors[i])) continue;
    captured.trace.graph_break = {.code = BreakCode::input_mutation,
                                  .op = {},
                                  .where = {},
                                  .reason = "puts another tensor in argument " + std::to_string(i),
                                  .hint = "return the new tensor instead"};
  }
  return captured;
}

/// Those that were named, and those that the closure refers to besides.
std::vector<NamedModule> Builder::modules_of(const detail::Program& program) const {
  std::vector<NamedModule> modules = modules_;
  if (!PrivateLayout::here().closures) return modules;
  for (auto& module : modules_in(program.closure)) {
    const bool known = std::ranges::any_of(modules, [&module](const NamedModule& named) {
      const auto parts = named.second->modules();
      return std::find(parts.begin(), parts.end(), module) != parts.end();
    });
    if (known) continue;
    std::string name = class_name(*module);
    modules.emplace_back(std::move(name), std::move(module));
  }
  return modules;
}

/// What a first recording learns, a later one knows from the beginning of the call.
void Builder::remember(const Trace& trace) {
  std::erase_if(leaves_, [](const WeakTensor& leaf) { return leaf.expired(); });
  for (const GradientSlot& slot : trace.gradients) {
    const auto is_it = [&slot](const WeakTensor& leaf) {
      return leaf._unsafe_get_target() == slot.leaf._unsafe_get_target();
    };
    if (!slot.input && std::none_of(leaves_.begin(), leaves_.end(), is_it)) leaves_.push_back(slot.leaf);
  }
  for (at::Generator& generator : generators_of(trace)) {
    const bool known = std::find(generators_.begin(), generators_.end(), generator) != generators_.end();
    if (!known && !is_default(generator)) generators_.push_back(std::move(generator));
  }
}

namespace {

/// What to tell of parameters whose module is neither named nor in the closure: nobody watches its train flag.
std::optional<std::string> note_of_unknown_modules(std::span<const StateSlot> states,
                                                   const std::vector<NamedModule>& modules) {
  std::set<const c10::TensorImpl*> without_name;
  for (const StateSlot& state : states) {
    const auto tensor = state.named ? nullptr : state.tensor.lock();
    if (tensor && tensor->requires_grad()) without_name.insert(tensor.get());
  }
  if (without_name.empty()) return std::nullopt;
  for (const auto& [name, module] : modules) {
    for (const at::Tensor& parameter : module->parameters()) without_name.erase(parameter.unsafeGetTensorImpl());
  }
  const size_t unknown = without_name.size();
  if (unknown == 0) return std::nullopt;
  return fmt::format(
      "{} state tensor{} that may be parameters of modules not in sight: name these in Options::modules, or their "
      "train() and eval() are seen by verifications only",
      unknown, unknown == 1 ? "" : "s");
}

/// The GPU architecture that the arguments of a call ask for; 0 when all lie on the CPU.
int architecture_of(const detail::Flat& arguments) {
  for (const auto* tensor : arguments.tensors) {
    if (tensor->is_cuda()) return device_info(device_of(tensor->device())).sm;
  }
  return 0;
}

}  // namespace

std::shared_ptr<Entry> Builder::build(const detail::Flat& arguments, const Modes& modes, const detail::Program& program,
                                      std::vector<GuardMiss> because, const Join& join) {
  const auto modules = modules_of(program);
  auto entry = std::make_shared<Entry>(Guards(arguments, modes, TrainFlags(modules)));
  auto& record = entry->record();
  record.because = std::move(because);
  record.signature = entry->guards().signature();
  // NVRTC starts while the program runs for the capture, unless an earlier process left the kernels in the cache.
  const int sm = architecture_of(arguments);
  const std::string title = function_ + " " + record.signature;
  const bool compiler_needed = sm != 0 && !runtime::is_known_function(title, sm);
  if (compiler_needed) runtime::nvrtc::prewarm(sm);
  auto captured = capture_program(arguments, program);
  if (auto note = note_of_unknown_modules(captured.trace.states, modules)) record.notes.push_back(std::move(*note));
  finish(*entry, std::move(captured), arguments, join, nullptr);
  if (compiler_needed && !record.kernels.empty()) runtime::remember_function(title, sm);
  add_compile_times(function_, record.phases);
  return entry;
}

std::shared_ptr<Entry> Builder::instantiate(const Entry& head, Trace trace, const detail::Flat& arguments,
                                            const Modes& modes) const {
  auto entry = std::make_shared<Entry>(Guards(arguments, modes, head.guards().train_flags()));
  entry->record().signature = entry->guards().signature();
  Captured captured{.trace = std::move(trace),
                    .results = {},
                    .structure = head.replayable().structure,
                    .optimizers = std::make_shared<OptimizerLink>(),
                    .unknown_type = {}};
  finish(*entry, std::move(captured), arguments, [](const Captured&) { return true; }, &head);
  entry->guards().free_as(head.guards());
  return entry;
}

void Builder::finish(Entry& entry, Captured captured, const detail::Flat& arguments, const Join& join,
                     const Entry* like) const {
  const CompileTimer timer(counters_);
  auto& record = entry.record();
  record.add_phase("capture", captured.trace.seconds);
  record.device = ir::to_string(captured.trace.graph.device);
  record.captured_calls = working_calls(captured.trace.graph);
  auto reason = break_of(captured);
  entry.guards().add_optimizers(captured.optimizers);
  if (!reason || reason->code == BreakCode::needs_gradient) {
    entry.guards().add_states(captured.trace.states, captured.results);
    entry.guards().add_gradients(captured.trace.gradients);
  }
  if (captured.trace.graph.device.kind == ir::Device::Kind::cuda) entry.guards().add_device(captured.trace.cuda_device);
  if (like == nullptr) record.guards = entry.guards().describe();
  if (reason || options_.verify == Verify::off) entry.guards().free_all();
  if (reason) return entry.turn_eager(std::move(*reason));
  try {
    if (captured.trace.reads.empty()) {
      const bool generic_sizes = join && join(captured);
      compile(entry, std::move(captured), arguments, generic_sizes, like);
    } else {
      compile_paths(entry, std::move(captured), arguments);
    }
  } catch (const std::exception& error) {
    keep_failure(entry, error);
  }
}

/// A failure of Sinter's own: thrown under Options::strict, else told in the report of an entry that runs as eager
/// runs.
void Builder::keep_failure(Entry& entry, const std::exception& error) const {
  const auto* internal = dynamic_cast<const InternalError*>(&error);
  const InternalError kept = internal != nullptr ? *internal : InternalError("compile", error.what());
  if (options_.strict) throw kept;
  entry.turn_eager(compile_failed(kept), describe(kept));
}

/// The course of a capture that reads; takes all but the results.
std::shared_ptr<Course> Builder::make_course(Captured& captured, const detail::Flat& arguments,
                                             const Modes& modes) const {
  captured.trace.graph.name = identifier(function_);
  auto course = std::make_shared<Course>(std::move(captured.trace), std::move(captured.structure),
                                         std::move(captured.optimizers), captured.results, arguments, modes);
  if (options_.verify == Verify::off) course->guards.free_all();
  return course;
}

void Builder::compile_paths(Entry& entry, Captured captured, const detail::Flat& arguments) const {
  auto course = make_course(captured, arguments, Modes::current());
  if (course->shares_state) return entry.turn_eager(*course->shares_state);
  entry.guards().free_all();  // every course minds its own
  auto alignments = entry.guards().alignments();
  alignments.resize(arguments.tensors.size());  // gradients are those of each course
  auto paths = std::make_unique<Paths>(options_, std::move(alignments));
  auto added = paths->add(std::move(course), captured.results, arguments, Modes::current());
  if (added.difference) throw InternalError("paths", "a first course has a forerunner");
  if (added.graph_break) return entry.turn_eager(std::move(*added.graph_break));
  entry.install(std::move(paths));
}

std::vector<GuardMiss> Builder::extend(Entry& entry, int64_t call, const detail::Flat& arguments, const Modes& modes,
                                       const detail::Program& program) {
  auto again = capture_program(arguments, program);
  const CompileTimer timer(counters_);
  entry.count_eager();
  const PhaseTime phase{"verify", again.trace.seconds};
  add_compile_times(function_, {&phase, 1});
  const auto turn_eager = [&entry](GraphBreak reason) {
    entry.turn_eager(std::move(reason));
    return std::vector<GuardMiss>{};
  };
  if (auto reason = break_of(again)) return turn_eager(std::move(*reason));
  Paths::Added added;
  if (again.trace.reads.empty()) {
    added.known = true;
    added.difference = "it reads nothing to the host";
  } else {
    try {
      auto course = make_course(again, arguments, modes);
      if (course->shares_state) return turn_eager(*course->shares_state);
      added = entry.paths()->add(std::move(course), again.results, arguments, modes);
    } catch (const std::exception& error) {
      keep_failure(entry, error);
      return {};
    }
  }
  if (added.graph_break) return turn_eager(std::move(*added.graph_break));
  if (!added.known) return std::move(added.because);
  entry.add_verification({.call = call,
                          .seconds = phase.seconds,
                          .equal = !added.difference,
                          .difference = added.difference.value_or("")});
  if (added.difference) return turn_eager(unstable(call, *added.difference));
  return {};
}

void Builder::compile(Entry& entry, Captured captured, const detail::Flat& arguments, bool generic_sizes,
                      const Entry* like) const {
  auto& record = entry.record();
  captured.optimizers->add_contents(captured.trace);
  ir::Graph graph = captured.optimizers->bind(captured.trace.graph, captured.trace);
  graph.name = identifier(function_);
  const CompileOptions options{.numerics = options_.numerics,
                               .freeze = options_.freeze,
                               .generic_sizes = generic_sizes,
                               .device = device_info(graph.device),
                               .input_alignment = entry.guards().alignments(),
                               .state_alignment = entry.guards().state_alignments()};
  const auto plan = std::make_shared<const Plan>(sinter::compile(graph, options, record));
  if (!plan->written.empty()) {
    if (const auto shared = entry.guards().keep_apart()) return entry.turn_eager(shared_state_break(*shared));
    record.guards = entry.guards().describe();
  }
  OutputRules outputs(captured.trace, *plan);
  auto host = std::make_unique<TorchHost>(plan, captured.trace.opaques);
  const runtime::ExecutableOptions runtime_options{.graphs = options_.mode != Mode::Default,
                                                   .changing_contents = captured.optimizers->contents(),
                                                   .runs_before_recording = like == nullptr ? 0 : 1,
                                                   .report_mutex = &entry.record_mutex(),
                                                   .ranges = runtime::nvtx_ranges()};
  auto executable = runtime::Executable::build(plan, *host, runtime_options, record);

  const c10::OptionalDeviceGuard device(device_to_set(*plan));
  const auto frame = host->make_torch_frame();
  const at::Tensor nothing = at::empty({0});  // what is prepared depends on state alone
  const auto inputs = with_gradients(arguments, captured.trace.gradients, &nothing);
  if (!frame->bind_arguments(inputs.tensors, captured.trace.states, captured.trace.contents)) {
    throw InternalError("prepare", "a state tensor died while the function was compiled");
  }
  if (like == nullptr || !executable->adopt(*like->replayable().executable)) executable->prepare(*frame);
  const bool random = std::any_of(plan->calls.begin(), plan->calls.end(), [](const auto& call) { return call.random; });
  auto generators = generators_of(captured.trace);
  entry.install(std::make_unique<Replayable>(Replayable{.trace = std::move(captured.trace),
                                                        .plan = plan,
                                                        .host = std::move(host),
                                                        .executable = std::move(executable),
                                                        .outputs = std::move(outputs),
                                                        .structure = std::move(captured.structure),
                                                        .random = random,
                                                        .optimizers = std::move(captured.optimizers),
                                                        .generators = std::move(generators)}));
}

std::optional<std::string> Builder::difference_of(Entry& entry, const Captured& again,
                                                  const detail::Flat& arguments) const {
  const auto& first = entry.replayable();
  if (planted(Bug::verification_sees_nothing)) return std::nullopt;
  if (const auto& graph_break = again.trace.graph_break) {
    return std::string(name(graph_break->code)) + " " + graph_break->op + ": " + graph_break->reason;
  }
  if (!again.trace.reads.empty()) return "it reads tensors to the host";
  if (auto text = frontend::difference_of({first.trace, first.structure, {}, *first.optimizers},
                                          {again.trace, again.structure, {}, *again.optimizers}))
    return text;
  const bool has_effects = first.random || !first.plan->written.empty() || !first.trace.gradients.empty();
  if (options_.verify.every() < 1 || has_effects) return std::nullopt;
  detail::Replay replay;
  if (!entry.replay(arguments, replay)) return std::nullopt;
  return result_difference(again.results, {replay.tensors.begin(), replay.tensors.end()});
}

std::shared_ptr<Entry> Builder::verify(Entry& entry, int64_t call, Fit fit, const detail::Flat& arguments,
                                       const Modes& modes, const detail::Program& program) {
  auto again = capture_program(arguments, program);
  entry.count_eager();
  const PhaseTime phase{"verify", again.trace.seconds};
  add_compile_times(function_, {&phase, 1});
  const auto text = difference_of(entry, again, arguments);
  if (text && closes_over_argument(entry.guards(), entry.replayable().trace, again.trace, arguments)) {
    if (fit != Fit::moved) return nullptr;
    auto other = std::make_shared<Entry>(Guards(arguments, modes, TrainFlags(modules_of(program))));
    other->record().because = entry.guards().misses(arguments, modes);
    other->record().signature = other->guards().signature();
    finish(*other, std::move(again), arguments, nullptr, nullptr);
    return other;
  }
  entry.add_verification(
      {.call = call, .seconds = again.trace.seconds, .equal = !text, .difference = text.value_or("")});
  if (!text) {
    entry.guards().free_moved(arguments);
    return nullptr;
  }
  entry.guards().free_all();
  entry.turn_eager(unstable(call, *text));
  return nullptr;
}

}  // namespace sinter::frontend
