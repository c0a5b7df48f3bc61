#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/any.h>
#include <torch/optim/optimizer.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "../hostile/harness.h"
#include "host.h"
#include "program.h"

/// Runs programs: the interpreter is the callable that is compiled.
namespace sinter::test::fuzz {

/// What the callable closes over.
struct World {
  explicit World(uint64_t seed = 0) : host(seed) {}

  Host host;
  std::map<Name, at::Tensor> state;
  std::vector<torch::nn::AnyModule> modules;
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  at::Device device = at::kCPU;
  bool wide = false;  ///< as in Drawing
  double apart = 0;   ///< as in Drawing
  at::Generator noise;
};

/// How a program is run: the data it is given, and what a compiled one may leave out.
struct Drawing {
  /// Arguments, state and the results of instructions that are new memory are multiplied by numbers that lie this far
  /// from one.
  double apart = 0;
  uint64_t seed = 0;  ///< of those
  Numerics numerics = Numerics::fast;
  /// The operators of a call compute in the next wider floating dtype, which results come in too; arguments and state
  /// are rounded when it ends. So does a kernel that keeps in registers what eager stores.
  bool wide = false;
};

using Values = std::map<Name, at::Tensor>;

/// Data for a source: what the session draws, placed in memory as the source says.
[[nodiscard]] at::Tensor draw(const Source& source, const Shape& shape, hostile::Session& session);

/// The sizes that a source has in calls of a shape.
[[nodiscard]] std::vector<int64_t> sizes_in(const Source& source, const Shape& shape);

[[nodiscard]] torch::nn::AnyModule make_module(const ModuleSpec& spec);

/// What an instruction's row gives for the values so far.
[[nodiscard]] at::Tensor value_of(const Instruction& instruction, World& world, double scale, const Values& values);

/// Runs one instruction on the values so far and adds its result, if it has one. Exceptions pass.
void run(const Instruction& instruction, World& world, double scale, Values& values);

/// Runs the whole program in a session: draws data, makes the callable, calls it.
void run(const Program& program, hostile::Session& session, const Drawing& drawing = {});

}  // namespace sinter::test::fuzz
