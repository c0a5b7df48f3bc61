#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "frontend/torch/modes.h"
#include "frontend/torch/op_facts.h"
#include "frontend/trace/elements.h"

/// A recorded program as data: steps, values and memories of one segment. Nothing here holds a tensor of the program.
namespace sinter::frontend {

struct DataRule;
struct TraceValueTag;
struct TraceMemoryTag;
using TraceValueId = StrongId<TraceValueTag>;
using TraceMemoryId = StrongId<TraceMemoryTag>;

/// Some elements of one memory: what operators take and give. Two tensors over the same elements are one value.
struct TraceValue {
  enum class From : uint8_t {
    input,   ///< no step of the segment made it, and its elements belong to no other value
    look,    ///< no step made it; it lies inside the first value of its memory
    result,  ///< of the step it is listed in
  };
  From from = From::result;
  TraceMemoryId memory;
  Elements elements;
  int64_t alignment = ir::full_alignment;  ///< bytes that the address was a multiple of, up to this

  bool operator==(const TraceValue&) const = default;
};

/// What one storage is to a segment.
struct TraceMemory {
  c10::Device device{c10::kCPU};
  bool fresh = false;  ///< made by a step; else it was there before the segment
  size_t bytes = 0;    ///< of a fresh one
  TraceValueId root;   ///< the first value in it

  bool operator==(const TraceMemory&) const = default;
};

/// The arguments of a call as words that are equal where the calls are: numbers by their bits, tensors by value.
using CallKey = c10::SmallVector<uint64_t, 24>;

/// A number among the arguments that a kernel can take on every call.
struct StepNumber {
  uint32_t word = 0;                 ///< of the key: its bits
  uint32_t argument = 0;             ///< position
  ir::DType dtype = ir::DType::f64;  ///< that a kernel takes it in
  bool integer = false;              ///< the bits are those of an int64_t, else of a double
  /// The largest finite number that it may be: of the dtype that it is rounded to where ATen may refuse larger ones.
  double most = std::numeric_limits<double>::max();

  [[nodiscard]] ir::Scalar value(uint64_t bits) const;
  [[nodiscard]] bool takes(uint64_t bits) const;
};

/// How one item of what an operator returns is made when the operator is answered instead of run.
struct Returned {
  enum class How : uint8_t { argument, value, list, constant };
  How how = How::constant;
  uint32_t argument = 0;  ///< whose very tensor it is
  TraceValueId value{};
  /// The argument that a value is a view of: under inference mode a view is what its base is.
  std::optional<uint32_t> base{};
  uint32_t writes = 0;  ///< by its operator's own kernel, of a value in new memory, as its version counts them
  std::vector<Returned> items{};
  c10::IValue constant{};  ///< None, an undefined tensor, or a number that follows from sizes
};

/// How far a call moves the generator on that a CUDA device draws from by default.
struct Draw {
  c10::Device device{c10::kCUDA};
  uint64_t amount = 0;
};

/// What autograd's kernels do beside calling those under them while gradients are off.
enum class AboveKernel : uint8_t {
  unknown,
  nothing,
  counts_write,  ///< to the first argument, in its version
  makes_views,   ///< of the first argument
};

/// One operator call of a segment.
struct Step {
  std::optional<c10::OperatorHandle> op;  ///< always, but for the place before the first step
  const OpFacts* facts = nullptr;
  CallKey key{};
  // What it adds to the segment, numbered on from the steps before: values met in the arguments first, then results.
  std::vector<TraceValue> taken{}, made{};
  std::vector<TraceMemory> memories{};
  std::vector<Returned> returns{};
  std::vector<TraceValueId> results{};   ///< every tensor among the results, lists opened
  std::vector<TraceMemoryId> written{};  ///< memories that the call writes
  // The call as the compiler sees it; an ir::ValueId holds the index of a TraceValueId.
  std::vector<ir::Arg> args{};
  std::vector<c10::IValue> opaques{};
  std::vector<uint32_t> mutates{};
  /// How often its kernel itself counts a write of each tensor that it writes, in the order of `mutates`, lists opened;
  /// empty where it counts none. Those of `_foreach_mul_` do, for autograd counts no writes into lists.
  std::vector<uint32_t> raised{};
  std::vector<StepNumber> numbers{};  ///< at most 64, in the order of their words
  std::optional<Draw> draw{};
  AboveKernel above = AboveKernel::unknown;
  SettingSet settings = SettingSet::all();  ///< of LibTorch that may decide what the call computes
  /// Of data that it may refuse: a call is the step only where none is refused. Null where it refuses nothing.
  const DataRule* data_rule = nullptr;
  std::string module{};  ///< path of the module it belongs to; or empty
  std::string source{};  ///< "resnet.py:58", where the program states it; or empty
};

/// True for a step that gives views of memory that is there: it runs no kernel, whatever stream and settings are
/// current.
[[nodiscard]] inline bool only_looks(const Step& step) {
  return only_looks(*step.facts) &&
         std::ranges::none_of(step.memories, [](const TraceMemory& memory) { return memory.fresh; });
}

}  // namespace sinter::frontend
