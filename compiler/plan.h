#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/arg.h"
#include "compiler/ir/type.h"
#include "compiler/support/device_info.h"
#include "compiler/support/strong_id.h"

/// The contract between compiler and runtime: data only.
namespace sinter {

struct BufferTag;
using BufferId = StrongId<BufferTag>;

/// Where a buffer's memory comes from.
enum class BufferKind : uint8_t {
  input,     ///< tensor argument `index`
  state,     ///< state slot `index`
  arena,     ///< `offset` bytes into the call's arena
  result,    ///< bound by the extern call that returns it
  output,    ///< allocated fresh on every call and handed to the caller
  view,      ///< the storage of `base`, `offset` elements after its first
  in_place,  ///< takes over the memory of `base`, which is dead from here on; same bytes
  frozen,    ///< computed once per entry by Plan::once and kept
};

struct Buffer {
  BufferKind kind = BufferKind::arena;
  ir::Type type;  ///< static
  uint32_t index = 0;
  int64_t offset = 0;
  BufferId base;
  int64_t alignment = ir::full_alignment;  ///< results, what they are kept as, and inputs made of them: as captured
};

/// How one parameter of a kernel is passed.
struct KernelArg {
  enum class Pass : uint8_t {
    pointer,
    scalar_f64,
    scalar_i64,
    size,  ///< a number of KernelSource::sizes; never in Launch::args, which end before them
  };
  Pass pass = Pass::pointer;
  BufferId buffer;  ///< for scalars: a 0-dim CPU buffer read at every launch
};

/// What the text of a kernel relies on in one parameter. Whoever launches it checks the address: less aligned than this
/// is never launched.
struct KernelParam {
  int64_t alignment = 1;  ///< bytes that the address is a multiple of, a power of two; 1 for numbers
  bool written = false;
};

/// Text of one generated kernel, and how to launch it.
struct KernelSource {
  std::string name;                       ///< symbol and readable name, "fused_add_relu"
  std::string comment;                    ///< opens the source file; no part of the key
  std::string text;                       ///< CUDA C++ or LLVM IR, without the comment
  int64_t numel = 0;                      ///< points of the loop nest; rows, where a CPU kernel reduces
  int64_t row_points = 1;                 ///< CPU: points of one of `numel`: of a row where the kernel reduces
  std::array<uint32_t, 3> grid{1, 1, 1};  ///< CUDA
  std::array<uint32_t, 3> block{1, 1, 1};
  int64_t granule = 1;              ///< CPU: ranges handed to the kernel start at multiples of this many of `numel`
  int64_t range = 16384;            ///< CPU: points that are worth a thread
  int64_t bytes = 0;                ///< bytes one launch must move
  std::vector<KernelParam> params;  ///< by argument of a launch; nothing is relied on in those that are missing
  std::vector<int64_t> sizes;       ///< 8 bytes each, passed after a launch's args: by value, to CPU kernels by address
  std::vector<std::string> ops;     ///< IR ops, in order
  std::vector<std::string> modules;  ///< module paths
  std::vector<std::string> sources;  ///< source places
};

/// An ATen call. Args are those of the schema; a ValueId in them holds the index of a buffer.
struct ExternCall {
  std::string op;  ///< "aten::addmm" or "aten::add.Tensor"
  std::vector<ir::Arg> args;
  std::vector<BufferId> results;  ///< an invalid id for a result nobody uses
  std::string module;
  std::string source;
  bool random = false;
  bool impure = false;  ///< may do more on the host than launch kernels
};

/// Steps of a plan, in order.
struct Launch {
  uint32_t kernel = 0;  ///< index into Plan::kernels
  std::vector<KernelArg> args;
};
struct RunCall {
  uint32_t call = 0;  ///< index into Plan::calls
};
struct Allocate {
  BufferId buffer;  ///< an `output` buffer
};
struct Bind {
  BufferId buffer;  ///< a `view` or `in_place` buffer, or an `arena` buffer an extern call reads
};
struct Release {
  BufferId buffer;  ///< no later step and no output reads it
};
/// From here on steps write memory that was there before the call: what fails before left no trace.
struct BeginWrites {};
using Step = std::variant<Launch, RunCall, Allocate, Bind, Release, BeginWrites>;

struct Plan {
  std::string name;
  ir::Device device;
  Backend backend = Backend::llvm;
  std::vector<Buffer> buffers;
  std::vector<KernelSource> kernels;  ///< equal texts once
  std::vector<ExternCall> calls;
  std::vector<Step> once;         ///< run when the entry is built (freeze)
  std::vector<Step> steps;        ///< run on every call
  std::vector<BufferId> outputs;  ///< in the order of the callable's flattened results
  std::vector<BufferId> written;  ///< `input` and `state` buffers that the steps write
  int64_t arena_bytes = 0;
};

}  // namespace sinter
