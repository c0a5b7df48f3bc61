#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rows.h"

/// A LibTorch program as data: it can be run, printed as C++ and made smaller.
namespace sinter::test::fuzz {

/// Names a tensor of a program: an argument, a closed-over tensor, or what an instruction gives.
using Name = int;

/// How a drawn tensor lies in memory.
enum class Place { dense, transposed, strided, offset, expanded, channels_last };

/// Where a tensor comes from that the program does not compute.
struct Source {
  Name name = 0;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
  Place place = Place::dense;
  int64_t high = 0;            ///< of integers: drawn from [0, high)
  int shares = -1;             ///< index of an earlier argument that this one is a view of
  bool first_changes = false;  ///< the first dimension is larger in calls of another shape
  bool last_changes = false;   ///< and so is the last one, where there are two
};

struct Instruction;

/// Instructions, and the value they give together.
struct Block {
  std::vector<Instruction> body;
  Name result = 0;
};

/// `result = row(operands, numbers)`, or what the row's control makes of the blocks, or an effect of the host.
struct Instruction {
  Name result = 0;  ///< 0: none
  const Row* row = nullptr;
  std::vector<Name> operands;
  std::vector<double> numbers;
  int module = -1;            ///< of a call of a module, or of an effect on one
  std::vector<Block> blocks;  ///< of a branch: two; of other rows with blocks: one
};

enum class ModuleKind { linear, conv1d, conv2d, depthwise, batch_norm, layer_norm, dropout, embedding };

struct ModuleSpec {
  ModuleKind kind = ModuleKind::linear;
  std::array<int64_t, 2> sizes{};
};

/// What happens between two calls.
enum class Event {
  none,
  train,  ///< modules to training mode
  eval,
  update_state,       ///< closed-over tensors are written in place
  replace_state,      ///< and replaced by others
  update_parameters,  ///< parameters are written in place
  write_data,         ///< and through .data(), which raises no version
  replace_parameter,  ///< a module gets another weight
  swap_state,         ///< the variables of two closed-over tensors that look alike change what they hold
  toggle_flag,        ///< of the host
};

/// How much larger than drawn the dimensions are that change.
struct Shape {
  int64_t first = 0;
  int64_t last = 0;

  bool operator==(const Shape&) const = default;
};

struct Call {
  Event before = Event::none;
  Shape shape;
  double scale = 1;            ///< the scalar argument
  Place place = Place::dense;  ///< of dense arguments
  bool gradient = false;       ///< arguments require gradients
  bool other_stream = false;   ///< the caller's current stream is another one; on the CPU that is nothing

  bool operator==(const Call&) const = default;
};

/// Under which modes the calls run.
enum class Mode { no_grad, inference, grad, step };

struct Program {
  uint64_t seed = 0;
  Mode mode = Mode::no_grad;
  bool keeps_inputs = false;  ///< every call gets the tensors of the first
  int threads = 1;            ///< of LibTorch's pool
  std::vector<Source> inputs;
  std::vector<Source> state;
  std::vector<ModuleSpec> modules;
  Block body;
  std::vector<Name> outputs;
  std::vector<Call> calls;
};

/// Names of numbers in numbers of instructions: they stand for what they are in a call.
constexpr double kScale = 12345;   ///< the scalar argument
constexpr double kStep = 12346;    ///< the number of the call, from 1 on
constexpr double kRate = 12347;    ///< of a schedule: less after every third call
constexpr double kDrawn = 12348;   ///< a random number of the host, from [-1, 1)
constexpr double kCycle = 12349;   ///< 2, 3, 1, 2, ...
constexpr double kParity = 12350;  ///< 1, 0, 1, ...

/// Whether a number in an instruction stands for one that the host code computes.
[[nodiscard]] constexpr bool is_host_number(double number) { return number >= kStep && number <= kParity; }

/// Whether what the host code does depends on what it keeps from call to call, or changes that.
[[nodiscard]] bool has_effects(const Program& program);

/// Two closed-over tensors that look alike, by index; nothing where there are none.
[[nodiscard]] std::optional<std::pair<size_t, size_t>> alike(const std::vector<Source>& state);

}  // namespace sinter::test::fuzz
