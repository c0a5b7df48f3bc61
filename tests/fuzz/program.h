#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "rows.h"

/// A LibTorch program as data: it can be run, printed as C++ and made smaller.
namespace sinter::test::fuzz {

/// Names a tensor of a program: an argument, a closed-over tensor, or what an instruction gives.
using Name = int;

/// How a drawn tensor lies in memory.
enum class Place { dense, transposed, strided, offset, expanded };

/// Where a tensor comes from that the program does not compute.
struct Source {
  Name name = 0;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
  Place place = Place::dense;
  int64_t high = 0;            ///< of integers: drawn from [0, high)
  int shares = -1;             ///< index of an earlier argument that this one is a view of
  bool first_changes = false;  ///< another size along the first dimension in calls of shape 1
};

struct Instruction;

/// Instructions, and the value they give together.
struct Block {
  std::vector<Instruction> body;
  Name result = 0;
};

/// `result = row(operands, numbers)`, or for a branch: the first or second block, as a read of operand 0 decides.
struct Instruction {
  Name result = 0;
  const Row* row = nullptr;
  std::vector<Name> operands;
  std::vector<double> numbers;
  int module = -1;            ///< of a call of a module
  std::vector<Block> blocks;  ///< of a branch: two
};

enum class ModuleKind { linear, conv1d, batch_norm, layer_norm, dropout, embedding };

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
};

struct Call {
  Event before = Event::none;
  int shape = 0;          ///< 1: arguments whose first dimension changes have another size
  double scale = 1;       ///< the scalar argument
  bool turned = false;    ///< dense arguments get other strides
  bool gradient = false;  ///< arguments require gradients
};

/// Under which modes the calls run.
enum class Mode { no_grad, inference, grad, step };

struct Program {
  uint64_t seed = 0;
  Mode mode = Mode::no_grad;
  bool keeps_inputs = false;  ///< every call gets the tensors of the first
  std::vector<Source> inputs;
  std::vector<Source> state;
  std::vector<ModuleSpec> modules;
  Block body;
  std::vector<Name> outputs;
  std::vector<Call> calls;
};

/// The name of the scalar argument in numbers of instructions: it stands for the value that the call passes.
constexpr double kScale = 12345;

}  // namespace sinter::test::fuzz
