#include "frontend/paths.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/ir/print.h"
#include "frontend/convert.h"
#include "frontend/generator_states.h"
#include "frontend/host_call.h"
#include "frontend/meeting.h"

namespace sinter::frontend {

/// A segment in its place among the courses.
struct Paths::Step {
  struct Taken {
    uint32_t step = 0;   ///< counted from the beginning of the course
    uint32_t place = 0;  ///< among what that step made: the values given, then the results of its read
  };

  struct Edge {
    Outcome outcome;
    std::optional<NumberRange> range;  ///< an operand: any number in it
    std::vector<ir::DType> operands;   ///< that the number becomes
    uint32_t step = 0;

    [[nodiscard]] bool fits(const Outcome& found) const {
      if (!range) return found == outcome;
      const auto number = found.number();
      return number && range->holds(*number);
    }
  };

  std::shared_ptr<CompiledSegment> segment;
  std::vector<passes::Made> given;  ///< to later steps, in the order in which the segment makes it
  Course* course = nullptr;         ///< the first that goes here: its state, contents and guards
  bool decided = false;             ///< no other one goes here
  uint32_t depth = 0;
  std::vector<Taken> taken;
  std::optional<ReadStep> read;  ///< none: the course ends here
  std::vector<Edge> next;        ///< those for one value first
  std::optional<OutputRules> outputs;
};

struct Paths::Tree {
  std::vector<std::shared_ptr<Course>> courses;
  std::vector<Step> steps;  ///< the first is the root
  std::vector<at::Generator> generators;

  [[nodiscard]] std::shared_ptr<CompiledSegment> find(const std::string& key) const {
    const auto found = std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.segment->key() == key; });
    return found == steps.end() ? nullptr : found->segment;
  }
};

/// One call on its way through the tree.
class Paths::Walk {
 public:
  enum class Way : uint8_t {
    known,    ///< goes on
    unknown,  ///< what it read was not read before
    lost,     ///< state is gone or was replaced
    threw,    ///< an operator or a host function did
  };

  Walk(const Tree& tree, const detail::Flat& arguments, HostLog& log) : tree_(tree), arguments_(arguments), log_(log) {}

  [[nodiscard]] const Tree& tree() const { return tree_; }
  [[nodiscard]] const detail::Flat& arguments() const { return arguments_; }
  [[nodiscard]] const Step& here() const { return tree_.steps[at_]; }

  /// Runs the segment, and the read that ends it. Throws InternalError when the plan no longer fits.
  Way advance(const Modes& modes) {
    if (!turn_to(*here().course) || here().course->state_guards[here().depth].fit({}, modes) != Fit::full) {
      return Way::lost;
    }
    try {
      if (const Way way = run_segment(); way != Way::known) return way;
    } catch (const InternalError&) {
      throw;
    } catch (const std::exception&) {
      return Way::threw;
    }
    auto outcome = Outcome::of(stack_);
    if (!outcome)
      throw InternalError("paths", here().read->source().op + " gave something else than when it was recorded");
    const auto& next = here().next;
    const auto found = std::find_if(next.begin(), next.end(), [&](const auto& edge) { return edge.fits(*outcome); });
    outcomes_.push_back(std::move(*outcome));
    if (found == next.end()) return Way::unknown;
    add_operands(found->operands, outcomes_.back());
    at_ = found->step;
    return Way::known;
  }

  /// Runs the last segment, once all guards of its course hold.
  bool finish(detail::Replay& replay) {
    const Course& course = *here().course;
    if (!turn_to(course) || !here().segment->finish(bindings(), *here().outputs, *inputs_, replay)) return false;
    assign_gradients(course.trace.gradients, arguments_, replay);
    course.optimizers->advance();
    replay.structure = course.structure;
    if (course.operands.empty()) return true;
    replay.own_structure = course.structure;
    for (const Operand& operand : course.operands) {
      for (const size_t offset : operand.results)
        outcomes_[operand.read].copy_number(replay.own_structure.data() + offset);
    }
    replay.structure = replay.own_structure;
    return true;
  }

 private:
  /// Looks for the gradients that are inputs of a course. False when they are others than it was recorded with.
  bool turn_to(const Course& course) {
    if (course_ == &course) return true;
    if (!course.gradients.hold(arguments_)) return false;
    if (course.inputs > arguments_.tensors.size()) extended_ = with_gradients(arguments_, course.trace.gradients);
    inputs_ = course.inputs > arguments_.tensors.size() ? &*extended_ : &arguments_;
    course_ = &course;
    return true;
  }

  Way run_segment() {
    std::vector<at::Tensor> read;
    std::vector<at::Tensor> made;
    if (!here().segment->run(bindings(), read, made)) return Way::lost;
    if (!here().read->run(read, stack_, log_)) return Way::threw;
    for (const c10::IValue& result : stack_) {
      if (result.isTensor()) made.push_back(result.toTensor());
    }
    made_.push_back(std::move(made));
    return Way::known;
  }

  /// What later steps take of a number: 0-dim tensors after the other things that this step made.
  void add_operands(std::span<const ir::DType> dtypes, const Outcome& outcome) {
    for (const ir::DType dtype : dtypes) {
      made_.back().push_back(tensor_of(outcome.number().value(), dtype));
    }
  }

  Bindings bindings() {
    const Trace& trace = course_->trace;
    if (course_->uses_numbers[here().depth]) course_->optimizers->fill(trace.contents);
    tensors_.assign(inputs_->tensors.begin(), inputs_->tensors.end());
    for (const Step::Taken& taken : here().taken) tensors_.push_back(&made_[taken.step][taken.place]);
    return {tensors_, trace.states, trace.contents};
  }

  const Tree& tree_;
  const detail::Flat& arguments_;
  HostLog& log_;
  const Course* course_ = nullptr;        ///< of the step that runs
  const detail::Flat* inputs_ = nullptr;  ///< of its trace
  std::optional<detail::Flat> extended_;  ///< by gradients
  uint32_t at_ = 0;
  std::vector<std::vector<at::Tensor>> made_;  ///< by step
  std::vector<Outcome> outcomes_;
  std::vector<const at::Tensor*> tensors_;
  torch::jit::Stack stack_;
};

/// Builds the tree of some courses, taking over the segments that an earlier one has.
class Paths::Grower {
 public:
  Grower(const Paths& paths, const Tree* earlier, const detail::Flat& arguments)
      : paths_(paths), earlier_(earlier), arguments_(arguments) {}

  std::shared_ptr<const Tree> grow(std::vector<std::shared_ptr<Course>> courses) {
    tree_->courses = std::move(courses);
    std::vector<Course*> all;
    for (const auto& course : tree_->courses) {
      all.push_back(course.get());
      for (const at::Generator& generator : course->generators) {
        auto& known = tree_->generators;
        if (std::find(known.begin(), known.end(), generator) == known.end()) known.push_back(generator);
      }
    }
    add_step(all, {});
    return tree_;
  }

 private:
  /// Adds what these courses, which have read the same so far, do next; `before` are the steps that led there.
  uint32_t add_step(const std::vector<Course*>& courses, std::vector<uint32_t> before) {
    Course& first = *courses.front();
    const auto depth = static_cast<uint32_t>(before.size());
    const passes::Segment& segment = first.segments[depth];
    Step step;
    step.course = &first;
    step.decided = courses.size() == 1;
    step.depth = depth;
    step.given = given_by(courses, depth);
    step.segment = compiled(first, depth, step.given);
    for (const passes::Made& made : segment.taken) step.taken.push_back(place_of(made, before));
    if (segment.read) {
      step.read.emplace(*segment.read, first.trace.opaques);
    } else {
      step.outputs.emplace(first.trace, step.segment->plan(), first.inputs);
    }
    const auto index = static_cast<uint32_t>(tree_->steps.size());
    tree_->steps.push_back(std::move(step));
    if (!segment.read) return index;
    before.push_back(index);
    for (const auto& group : by_outcome(courses, depth)) {
      const uint32_t next = add_step(group, before);
      tree_->steps[index].next.push_back(edge_of(*group.front(), depth, next));
    }
    std::stable_partition(tree_->steps[index].next.begin(), tree_->steps[index].next.end(),
                          [](const Step::Edge& edge) { return !edge.range; });
    return index;
  }

  static Step::Edge edge_of(const Course& course, uint32_t depth, uint32_t step) {
    Step::Edge edge{course.trace.reads[depth].outcome, std::nullopt, {}, step};
    if (const Operand* operand = course.operand(depth)) edge.range = operand->range;
    if (edge.outcome.number()) {
      for (const ir::Type& type : course.segments[depth].read->results) edge.operands.push_back(type.dtype);
    }
    return edge;
  }

  static std::vector<passes::Made> given_by(const std::vector<Course*>& courses, uint32_t depth) {
    std::vector<passes::Made> given;
    for (Course* course : courses) {
      for (const passes::Made& made : course->segments[depth].given) {
        if (std::find(given.begin(), given.end(), made) == given.end()) given.push_back(made);
      }
    }
    return given;
  }

  static std::vector<std::vector<Course*>> by_outcome(const std::vector<Course*>& courses, uint32_t depth) {
    std::vector<std::vector<Course*>> groups;
    for (Course* course : courses) {
      const auto reads_the_same = [&](const auto& group) {
        const Course& other = *group.front();
        return !course->operand(depth) && !other.operand(depth) &&
               other.trace.reads[depth].outcome == course->trace.reads[depth].outcome;
      };
      const auto found = std::find_if(groups.begin(), groups.end(), reads_the_same);
      if (found == groups.end()) {
        groups.push_back({course});
      } else {
        found->push_back(course);
      }
    }
    return groups;
  }

  [[nodiscard]] Step::Taken place_of(const passes::Made& made, const std::vector<uint32_t>& before) const {
    const auto& given = tree_->steps[before.at(made.segment)].given;
    if (made.position == passes::Made::by_read) {
      return {made.segment, static_cast<uint32_t>(given.size() + made.result)};
    }
    const auto found = std::find(given.begin(), given.end(), made);
    if (found == given.end()) throw InternalError("paths", "a segment needs what no earlier one gives");
    return {made.segment, static_cast<uint32_t>(found - given.begin())};
  }

  /// What entries and the course promise of the inputs of its trace.
  [[nodiscard]] std::vector<int64_t> input_alignment(const Course& course) const {
    std::vector<int64_t> alignments = paths_.argument_alignment_;
    course.gradients.alignments(alignments);
    return alignments;
  }

  /// Segments of one text, over state of one alignment, are one segment. Those whose text does not say all stay those
  /// of their course.
  [[nodiscard]] std::string key_of(const Course& course, uint32_t depth, const ir::Graph& graph,
                                   const std::vector<int64_t>& alignments) const {
    const passes::Segment& segment = course.segments[depth];
    std::string key = ir::print(graph) + fmt::format("reads {}", segment.read ? segment.graph.outputs.size() : 0);
    key += fmt::format(" inputs {}", fmt::join(input_alignment(course), " "));
    bool own = false;
    for (const ir::NodeId id : graph.order()) {
      const ir::Node& node = graph.node(id);
      if (const auto* state = node.as<ir::State>()) {
        key += " " + std::to_string(alignments.at(state->index));
        own = own || paths_.options_.freeze || paths_.options_.mode != Mode::Default;  // graphs keep addresses
      }
      own = own || node.as<ir::Constant>() != nullptr;
      for (const ir::Arg& arg : node.args) own = own || std::holds_alternative<ir::Opaque>(arg.data);
    }
    if (own) key += fmt::format(" of {}", fmt::ptr(&course));
    return key;
  }

  std::shared_ptr<CompiledSegment> compiled(const Course& course, uint32_t depth,
                                            const std::vector<passes::Made>& given) {
    const passes::Segment& segment = course.segments[depth];
    const auto alignments = course.guards.state_alignments();
    std::string key = key_of(course, depth, passes::graph_giving(segment, given), alignments);
    if (auto found = tree_->find(key)) return found;
    if (earlier_ != nullptr) {
      if (auto found = earlier_->find(key)) return found;
    }
    const Options& options = paths_.options_;
    const CompileOptions compile_options{.numerics = options.numerics,
                                         .freeze = options.freeze,
                                         .device = device_info(segment.graph.device),
                                         .input_alignment = input_alignment(course),
                                         .state_alignment = alignments};
    return std::make_shared<CompiledSegment>(
        CompiledSegment::Source{&segment, given, &course.trace.opaques, std::move(key)}, compile_options,
        runtime::ExecutableOptions{.graphs = options.mode != Mode::Default,
                                   .changing_contents = course.optimizers->contents()},
        static_cast<uint32_t>(arguments_.tensors.size()),
        Bindings{arguments_.tensors, course.trace.states, course.trace.contents});
  }

  const Paths& paths_;
  const Tree* earlier_;
  const detail::Flat& arguments_;
  std::shared_ptr<Tree> tree_ = std::make_shared<Tree>();
};

Paths::Paths(const Options& options, std::vector<int64_t> argument_alignment)
    : options_(options), argument_alignment_(std::move(argument_alignment)), tree_(std::make_shared<const Tree>()) {}

Paths::~Paths() = default;

Paths::Answer Paths::follow(const detail::Flat& arguments, const Modes& modes,
                            const std::function<bool(int64_t)>& is_due, HostLog& log, detail::Replay& replay) {
  const auto tree = tree_.load(std::memory_order_acquire);
  const c10::NoGradGuard no_grad;  // views of state among the results have no history
  const c10::OptionalDeviceGuard device(device_to_set(tree->steps.front().segment->plan()));
  GeneratorStates generators(tree->generators);
  Walk walk(*tree, arguments, log);
  try {
    const Answer answer = answer_of(walk, modes, is_due, replay);
    if (answer == Answer::replayed) {
      replay.owner = tree;
    } else {
      generators.rewind();
    }
    return answer;
  } catch (const HalfWritten&) {
    throw;
  } catch (const InternalError&) {
    generators.rewind();
    throw;
  }
}

/// True before a host function of a call that cannot but follow a course that is due: the callable may run at once, so
/// that it calls the function itself.
bool Paths::is_due_here(const Walk& walk, const std::function<bool(int64_t)>& is_due) const {
  const Step& step = walk.here();
  if (!step.read->runs_host_function() || !step.decided || is_full(walk.tree())) return false;
  return is_due(step.course->calls.load(std::memory_order_relaxed) + 1);
}

bool Paths::is_full(const Tree& tree) const { return tree.courses.size() >= static_cast<size_t>(options_.max_paths); }

Paths::Answer Paths::answer_of(Walk& walk, const Modes& modes, const std::function<bool(int64_t)>& is_due,
                               detail::Replay& replay) {
  while (walk.here().read) {
    if (is_due_here(walk, is_due)) return Answer::record;
    switch (walk.advance(modes)) {
      case Walk::Way::known:
        continue;
      case Walk::Way::lost:
        return Answer::record;
      case Walk::Way::threw:
        return Answer::eager;
      case Walk::Way::unknown:
        if (!is_full(walk.tree())) return Answer::record;
        return note_limit(walk.here()) ? Answer::filled : Answer::full;
    }
  }
  Course& course = *walk.here().course;
  const int64_t number = course.calls.load(std::memory_order_relaxed) + 1;
  if (course.guards.fit(walk.arguments(), modes) != Fit::full || is_due(number)) return Answer::record;
  if (!walk.finish(replay)) return Answer::eager;
  course.calls.fetch_add(1, std::memory_order_relaxed);
  return Answer::replayed;
}

Paths::Added Paths::add(std::shared_ptr<Course> course, std::span<const at::Tensor> results,
                        const detail::Flat& arguments, const Modes& modes) {
  const auto tree = tree_.load(std::memory_order_acquire);
  Added added;
  added.because = first_other_read(tree->courses, *course);
  std::vector<std::shared_ptr<Course>> courses;
  std::copy_if(tree->courses.begin(), tree->courses.end(), std::back_inserter(courses),
               [&](const auto& known) { return !is_outdated(*known, *course); });
  for (auto known = courses.begin(); known != courses.end(); ++known) {
    const Meeting met = meet(**known, *course, arguments);
    if (met.difference)
      return {.known = true, .difference = met.difference, .graph_break = std::nullopt, .because = {}};
    if (met.same) {
      (*known)->calls.fetch_add(1, std::memory_order_relaxed);
      (*known)->guards.free_moved(arguments);
      return {.known = true, .difference = std::nullopt, .graph_break = std::nullopt, .because = {}};
    }
    if (!met.operands || !leaves_room(courses, **known, *met.operands)) continue;
    if ((*known)->widen(*met.operands)) {
      (*known)->guards.free_moved(arguments);
      (*known)->calls.fetch_add(1, std::memory_order_relaxed);
      course = std::move(*known);
      courses.erase(known);
      added.because.clear();
      break;
    }
    course->take(std::move(*met.operands), results, modes);
    (*known)->guards.free_moved(arguments);
    course->guards.free_as((*known)->guards);
    course->calls.store((*known)->calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    courses.erase(known);
    break;
  }
  if (courses.size() >= static_cast<size_t>(options_.max_paths)) return {};
  courses.push_back(std::move(course));
  auto grown = Grower(*this, tree.get(), arguments).grow(std::move(courses));
  tree_.store(std::move(grown), std::memory_order_release);
  return added;
}

bool Paths::note_limit(const Step& step) {
  const std::lock_guard lock(mutex_);
  if (limit_) return false;
  const ExternCall& read = step.read->source();
  limit_ = GraphBreak{
      .code = BreakCode::host_read,
      .op = read.op,
      .where = ir::place_text(read.module, read.source),
      .reason = fmt::format("reads a value that none of its {} recorded paths has read", options_.max_paths),
      .hint = step.read->runs_host_function()
                  ? "return an at::Scalar where operators take the number, a bool where it decides"
                  : "compare on the device and read the bool ((x > 0).item<bool>()), or allow more with max_paths"};
  return true;
}

std::optional<GraphBreak> Paths::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

void Paths::add_to(EntryReport& report) const {
  const auto tree = tree_.load(std::memory_order_acquire);
  std::vector<const CompiledSegment*> told;
  for (const Step& step : tree->steps) {
    if (std::find(told.begin(), told.end(), step.segment.get()) != told.end()) continue;
    told.push_back(step.segment.get());
    step.segment->add_to(report);
  }
  for (const auto& course : tree->courses) {
    report.paths.push_back({.reads = describe_reads(*course), .calls = course->calls.load(std::memory_order_relaxed)});
  }
  if (auto reason = limit()) report.breaks.push_back(std::move(*reason));
}

}  // namespace sinter::frontend
