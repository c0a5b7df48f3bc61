#include "compiler/support/errors.h"
#include "runtime/activity.h"
#include "runtime/cuda_executable.h"
#include "runtime/known_functions.h"
#include "runtime/nvrtc.h"
#include "runtime/product_library.h"

/// What runtime/cuda/ does, for a LibTorch without CUDA: no device asks for it.
namespace sinter::runtime {
namespace {

[[noreturn]] void absent() { throw InternalError("cuda", "this LibTorch was built without CUDA"); }

}  // namespace

std::unique_ptr<Executable> build_cuda_executable(std::shared_ptr<const Plan> /*plan*/, Host& /*host*/,
                                                  const ExecutableOptions& /*options*/, EntryReport& /*report*/) {
  absent();
}

bool is_known_function(const std::string& /*function*/, int /*sm*/) { return false; }
void remember_function(const std::string& /*function*/, int /*sm*/) {}

RecordedActivities record_activities(ActivityDetail /*detail*/, const std::function<void()>& /*call*/) {
  return {std::nullopt, "this LibTorch was built without CUDA"};
}
void push_activity_caller(uint64_t /*caller*/) {}
void pop_activity_caller() {}

namespace nvrtc {

std::string version() { absent(); }
std::string identity() { absent(); }
std::string options(int /*sm*/) { absent(); }
std::vector<char> compile(const KernelSource& /*source*/, int /*sm*/) { absent(); }
std::optional<std::vector<char>> try_compile(const std::string& /*text*/, int /*sm*/) { absent(); }
void prewarm(int /*sm*/) {}

}  // namespace nvrtc

namespace product_library {

bool is_there() { return false; }
std::string version() { absent(); }
std::string target() { absent(); }
std::vector<ProductAlgorithm> algorithms(const ProductProblem& /*problem*/, int /*most*/) { return {}; }
bool run(const ProductProblem& /*problem*/, const ProductAlgorithm& /*algorithm*/,
         const ProductAddresses& /*addresses*/, void* /*workspace*/, void* /*stream*/) {
  return false;
}
std::unique_ptr<Stopwatch> stopwatch(void* /*stream*/) { return nullptr; }

}  // namespace product_library

}  // namespace sinter::runtime
