#include "shrink.h"

#include <algorithm>
#include <optional>
#include <set>

namespace sinter::test::fuzz {
namespace {

void substitute(Block& block, Name from, Name to) {
  for (auto& instruction : block.body) {
    std::replace(instruction.operands.begin(), instruction.operands.end(), from, to);
    for (auto& arm : instruction.blocks) substitute(arm, from, to);
  }
  if (block.result == from) block.result = to;
}

void substitute(Program& program, Name from, Name to) {
  substitute(program.body, from, to);
  std::replace(program.outputs.begin(), program.outputs.end(), from, to);
}

/// Every place an instruction stands at, the last first.
void collect(Block& block, std::vector<std::pair<Block*, size_t>>& places) {
  for (size_t i = block.body.size(); i-- > 0;) {
    places.emplace_back(&block, i);
    for (auto& arm : block.body[i].blocks) collect(arm, places);
  }
}

void collect_names(const Block& block, std::set<Name>& names, std::set<int>& modules) {
  names.insert(block.result);
  for (const auto& instruction : block.body) {
    names.insert(instruction.operands.begin(), instruction.operands.end());
    modules.insert(instruction.module);
    for (const auto& arm : instruction.blocks) collect_names(arm, names, modules);
  }
}

/// Leaves out an instruction; what used its result uses its first operand.
std::optional<Program> without_instruction(Program program, size_t index) {
  std::vector<std::pair<Block*, size_t>> places;
  collect(program.body, places);
  if (index >= places.size()) return std::nullopt;
  const auto [block, at] = places[index];
  const Instruction left_out = block->body[at];
  block->body.erase(block->body.begin() + static_cast<std::ptrdiff_t>(at));
  if (left_out.result != 0) substitute(program, left_out.result, left_out.operands.front());
  return program;
}

/// Puts a number in the place of one that the host code computes.
std::optional<Program> with_a_number(Program program, size_t index, double number) {
  std::vector<std::pair<Block*, size_t>> places;
  collect(program.body, places);
  if (index >= places.size()) return std::nullopt;
  auto& numbers = places[index].first->body[places[index].second].numbers;
  if (std::ranges::none_of(numbers, is_host_number)) return std::nullopt;
  std::ranges::replace_if(numbers, is_host_number, number);
  return program;
}

/// Puts a block in the place of the instruction that holds it.
std::optional<Program> without_control(Program program, size_t index, size_t arm) {
  std::vector<std::pair<Block*, size_t>> places;
  collect(program.body, places);
  if (index >= places.size()) return std::nullopt;
  const auto [block, at] = places[index];
  if (arm >= block->body[at].blocks.size()) return std::nullopt;
  const Name result = block->body[at].result;
  Block taken = block->body[at].blocks[arm];
  substitute(taken, result, block->body[at].operands.front());
  const auto place = block->body.erase(block->body.begin() + static_cast<std::ptrdiff_t>(at));
  block->body.insert(place, taken.body.begin(), taken.body.end());
  substitute(program, result, taken.result);
  return program;
}

template <class T>
void erase_unused(std::vector<T>& sources, const std::set<Name>& used) {
  std::erase_if(sources, [&](const Source& source) { return used.count(source.name) == 0; });
}

std::optional<Program> without_unused(Program program) {
  std::set<Name> used(program.outputs.begin(), program.outputs.end());
  std::set<int> modules;
  collect_names(program.body, used, modules);
  const auto before = program.inputs.size() + program.state.size();
  erase_unused(program.state, used);
  const bool shared =
      std::any_of(program.inputs.begin(), program.inputs.end(), [](const auto& s) { return s.shares >= 0; });
  if (!shared) erase_unused(program.inputs, used);
  while (!program.modules.empty() && modules.count(static_cast<int>(program.modules.size()) - 1) == 0) {
    program.modules.pop_back();
  }
  if (before == program.inputs.size() + program.state.size()) return std::nullopt;
  return program;
}

/// Programs that are a step simpler, lazily: `consider` is called for each until it takes one.
class Steps {
 public:
  Steps(const Program& program, const std::function<bool(const Program&)>& consider)
      : program_(program), consider_(consider) {}

  bool any() {
    return calls() || outputs() || instructions() || offer(without_unused(program_)) || whole() ||
           sources(&Program::inputs) || sources(&Program::state);
  }

 private:
  bool offer(const std::optional<Program>& program) { return program && consider_(*program); }

  template <class Change>
  bool changed(Change change) {
    Program next = program_;
    if (!change(next)) return false;
    return consider_(next);
  }

  bool calls() {
    for (size_t i = program_.calls.size(); i-- > 0 && program_.calls.size() > 1;) {
      if (changed([i](Program& next) {
            return next.calls.erase(next.calls.begin() + static_cast<std::ptrdiff_t>(i)), true;
          }))
        return true;
    }
    for (size_t i = 0; i < program_.calls.size(); ++i) {
      const auto plain = [i](Program& next) {
        Call plainest;
        plainest.scale = 1.5;
        return std::exchange(next.calls[i], plainest) != plainest;
      };
      if (changed(plain)) return true;
    }
    return false;
  }

  bool outputs() {
    for (size_t i = 0; i < program_.outputs.size() && program_.outputs.size() > 1; ++i) {
      if (changed([i](Program& next) {
            return next.outputs.erase(next.outputs.begin() + static_cast<std::ptrdiff_t>(i)), true;
          }))
        return true;
    }
    return false;
  }

  bool instructions() {
    Program copy = program_;
    std::vector<std::pair<Block*, size_t>> places;
    collect(copy.body, places);
    for (size_t i = 0; i < places.size(); ++i) {
      if (offer(without_instruction(program_, i)) || offer(without_control(program_, i, 0)) ||
          offer(without_control(program_, i, 1)) || offer(with_a_number(program_, i, 1))) {
        return true;
      }
    }
    return false;
  }

  bool whole() {
    return changed([](Program& next) { return std::exchange(next.keeps_inputs, false); }) ||
           changed([](Program& next) { return std::exchange(next.threads, 1) != 1; }) ||
           changed([](Program& next) { return std::exchange(next.mode, Mode::no_grad) != Mode::no_grad; });
  }

  bool sources(std::vector<Source> Program::* which) {
    for (size_t i = 0; i < (program_.*which).size(); ++i) {
      if (changed([=](Program& next) { return std::exchange((next.*which)[i].shares, -1) != -1; }) ||
          changed([=](Program& next) { return std::exchange((next.*which)[i].place, Place::dense) != Place::dense; }) ||
          changed([=](Program& next) { return std::exchange((next.*which)[i].first_changes, false); }) ||
          changed([=](Program& next) { return std::exchange((next.*which)[i].last_changes, false); }) ||
          sizes(which, i)) {
        return true;
      }
    }
    return false;
  }

  bool sizes(std::vector<Source> Program::* which, size_t index) {
    const auto& sizes = (program_.*which)[index].sizes;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      for (const int64_t smaller : {int64_t{1}, int64_t{2}, sizes[dim] / 2}) {
        if (smaller < 1 || smaller >= sizes[dim]) continue;
        if (changed([=](Program& next) { return (next.*which)[index].sizes[dim] = smaller, true; })) return true;
        // All that has this size, together: operands stay compatible.
        const auto together = [=, size = sizes[dim]](Program& next) {
          for (auto* list : {&next.inputs, &next.state}) {
            for (auto& source : *list) std::replace(source.sizes.begin(), source.sizes.end(), size, smaller);
          }
          return true;
        };
        if (changed(together)) return true;
      }
    }
    return false;
  }

  const Program& program_;
  const std::function<bool(const Program&)>& consider_;
};

}  // namespace

Program shrink(Program program, const std::function<bool(const Program&)>& fails, int tries) {
  bool smaller = true;
  while (smaller && tries > 0) {
    std::optional<Program> found;
    const std::function<bool(const Program&)> consider = [&](const Program& next) {
      if (tries-- <= 0) return true;
      if (!fails(next)) return false;
      found = next;
      return true;
    };
    Steps(program, consider).any();
    smaller = found.has_value();
    if (found) program = *found;
  }
  return program;
}

}  // namespace sinter::test::fuzz
