#include "runtime/product_library.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "runtime/cuda/driver.h"

namespace sinter::runtime::product_library {
namespace {

/// What LibTorch gives the library on the devices where it gives most.
constexpr size_t most_workspace_bytes = size_t{32} << 20;

/// The library's entry points, in the ABI of the header this file was compiled with.
struct Library {
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtGetVersion) get_version = nullptr;
  decltype(&::cublasLtMatmul) multiply = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&::cublasLtMatmulDescInit_internal) init_description = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) set_description = nullptr;
  decltype(&::cublasLtMatrixLayoutInit_internal) init_layout = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&::cublasLtMatmulPreferenceInit_internal) init_preference = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  bool complete = false;

  Library() {
    const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return;
    complete = true;
    const auto resolve = [&]<class Function>(Function& slot, const char* symbol) {
      slot = reinterpret_cast<Function>(dlsym(library, symbol));
      complete = complete && slot != nullptr;
    };
    resolve(create, "cublasLtCreate");
    resolve(get_version, "cublasLtGetVersion");
    resolve(multiply, "cublasLtMatmul");
    resolve(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    resolve(init_description, "cublasLtMatmulDescInit_internal");
    resolve(set_description, "cublasLtMatmulDescSetAttribute");
    resolve(init_layout, "cublasLtMatrixLayoutInit_internal");
    resolve(set_layout, "cublasLtMatrixLayoutSetAttribute");
    resolve(init_preference, "cublasLtMatmulPreferenceInit_internal");
    resolve(set_preference, "cublasLtMatmulPreferenceSetAttribute");
  }
};

const Library& library() {
  static const Library instance;
  return instance;
}

/// The library's state for the current device: made once, kept until the process ends.
cublasLtHandle_t handle() {
  static std::mutex mutex;
  static std::map<CUcontext, cublasLtHandle_t> handles;
  const Driver& driver = Driver::get();
  CUcontext context = nullptr;
  driver.check(driver.current_context(&context), "cuCtxGetCurrent");
  const std::lock_guard lock(mutex);
  const auto [found, added] = handles.try_emplace(context, nullptr);
  if (added && library().create(&found->second) != CUBLAS_STATUS_SUCCESS) found->second = nullptr;
  return found->second;
}

/// Initialises and sets; remembers whether anything was refused.
class Setter {
 public:
  template <class Set, class Object, class Attribute, class Value>
  void operator()(Set set, Object* object, Attribute attribute, const Value& value) {
    check(set(object, attribute, static_cast<const void*>(&value), sizeof(value)));
  }
  void check(cublasStatus_t status) { well_ = well_ && status == CUBLAS_STATUS_SUCCESS; }
  [[nodiscard]] bool well() const { return well_; }

 private:
  bool well_ = true;
};

cublasLtEpilogue_t epilogue_of(const ProductProblem& problem) {
  switch (problem.activation) {
    case ProductActivation::relu:
      return problem.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case ProductActivation::gelu_tanh:
      return problem.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case ProductActivation::none:
      break;
  }
  return problem.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// The library's schemes to add the parts of sums.
uint32_t reductions_of(PartialSums sums) {
  switch (sums) {
    case PartialSums::rounded:
      return CUBLASLT_REDUCTION_SCHEME_MASK;
    case PartialSums::f32:
      return CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    case PartialSums::none:
      break;
  }
  return CUBLASLT_REDUCTION_SCHEME_NONE;
}

/// A problem in the library's terms, which are column-major: the transposed result is the product of the transposed
/// operands in the other order. What is row-major here is its own transpose there.
class Description {
 public:
  Description(const ProductProblem& problem, const void* bias) {
    const cudaDataType type = problem.dtype == ir::DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
    set_.check(library().init_description(&product_, sizeof(product_), CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set_(library().set_description, &product_, CUBLASLT_MATMUL_DESC_TRANSA, turn(problem.right));
    set_(library().set_description, &product_, CUBLASLT_MATMUL_DESC_TRANSB, turn(problem.left));
    set_(library().set_description, &product_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(problem));
    if (problem.bias) set_(library().set_description, &product_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    init_layout(first_, problem, problem.right, type, problem.columns, problem.terms);
    init_layout(second_, problem, problem.left, type, problem.terms, problem.rows);
    const ProductOperand result{.line = problem.columns, .matrix = problem.rows * problem.columns};
    init_layout(result_, problem, result, type, problem.columns, problem.rows);
  }

  [[nodiscard]] bool well() const { return set_.well(); }
  [[nodiscard]] cublasLtMatmulDescOpaque_t* product() { return &product_; }
  [[nodiscard]] cublasLtMatrixLayoutOpaque_t* first() { return &first_; }
  [[nodiscard]] cublasLtMatrixLayoutOpaque_t* second() { return &second_; }
  [[nodiscard]] cublasLtMatrixLayoutOpaque_t* result() { return &result_; }

 private:
  static cublasOperation_t turn(const ProductOperand& operand) { return operand.turned ? CUBLAS_OP_T : CUBLAS_OP_N; }

  /// `rows` and `columns` are those of what the library multiplies, after it has turned the operand.
  void init_layout(cublasLtMatrixLayoutOpaque_t& layout, const ProductProblem& problem, const ProductOperand& operand,
                   cudaDataType type, int64_t rows, int64_t columns) {
    if (operand.turned) std::swap(rows, columns);
    set_.check(library().init_layout(&layout, sizeof(layout), type, static_cast<uint64_t>(rows),
                                     static_cast<uint64_t>(columns), operand.line));
    if (problem.batch == 1) return;
    set_(library().set_layout, &layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(problem.batch));
    set_(library().set_layout, &layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, operand.matrix);
  }

  Setter set_;
  cublasLtMatmulDescOpaque_t product_{};
  cublasLtMatrixLayoutOpaque_t first_{}, second_{}, result_{};
};

class StreamStopwatch final : public Stopwatch {
 public:
  /// More than the second-level cache of any GPU holds. Writing it also takes longer than the host takes to enqueue a
  /// call, so that the device does not wait between the events.
  static constexpr size_t other_bytes = size_t{192} << 20;

  /// Takes `other_data` over.
  StreamStopwatch(const Driver& driver, CUstream stream, CUdeviceptr other_data)
      : driver_(driver), stream_(stream), other_data_(other_data) {
    for (CUevent& event : events_) driver_.check(driver_.event_create(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  }
  ~StreamStopwatch() override {
    driver_.stream_synchronize(stream_);
    for (CUevent event : events_) driver_.event_destroy(event);
    driver_.mem_free(other_data_);
  }
  StreamStopwatch(const StreamStopwatch&) = delete;
  StreamStopwatch& operator=(const StreamStopwatch&) = delete;

  double microseconds(const std::function<bool()>& call) override {
    if (!call()) return std::numeric_limits<double>::infinity();
    std::array<double, rounds> times{};
    for (double& time : times) time = once(call);
    std::ranges::nth_element(times, times.begin() + rounds / 2);
    return times[rounds / 2];
  }

 private:
  static constexpr size_t rounds = 7;

  double once(const std::function<bool()>& call) {
    driver_.check(driver_.fill(other_data_, 0, other_bytes, stream_), "cuMemsetD8Async");
    driver_.check(driver_.event_record(events_[0], stream_), "cuEventRecord");
    if (!call()) return std::numeric_limits<double>::infinity();
    driver_.check(driver_.event_record(events_[1], stream_), "cuEventRecord");
    driver_.check(driver_.event_synchronize(events_[1]), "cuEventSynchronize");
    float milliseconds = 0;
    driver_.check(driver_.event_elapsed(&milliseconds, events_[0], events_[1]), "cuEventElapsedTime");
    return 1e3 * static_cast<double>(milliseconds);
  }

  const Driver& driver_;
  CUstream stream_;
  CUdeviceptr other_data_;
  std::array<CUevent, 2> events_{};
};

}  // namespace

bool is_there() { return library().complete; }

std::string version() { return fmt::format("cuBLASLt {}", library().get_version()); }

std::string target() {
  const Driver& driver = Driver::get();
  CUcontext context = nullptr;
  driver.check(driver.current_context(&context), "cuCtxGetCurrent");
  CUdevice device = 0;
  driver.check(driver.device_of_context(&device, context), "cuCtxGetDevice");
  std::array<char, 128> name{};
  driver.check(driver.device_name(name.data(), static_cast<int>(name.size()) - 1, device), "cuDeviceGetName");
  int version = 0;
  driver.check(driver.version(&version), "cuDriverGetVersion");
  return fmt::format("{}, driver {}", name.data(), version);
}

std::vector<ProductAlgorithm> algorithms(const ProductProblem& problem, int most) {
  Description description(problem, nullptr);
  cublasLtMatmulPreferenceOpaque_t preference{};
  Setter set;
  set.check(library().init_preference(&preference, sizeof(preference)));
  set(library().set_preference, &preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace_bytes);
  set(library().set_preference, &preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions_of(problem.sums));
  for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(library().set_preference, &preference, operand, static_cast<uint32_t>(problem.alignment));
  }
  const cublasLtHandle_t state = handle();
  if (state == nullptr || !description.well() || !set.well()) return {};
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(most));
  int count = 0;
  const auto status =
      library().heuristic(state, description.product(), description.first(), description.second(), description.result(),
                          description.result(), &preference, most, found.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) return {};
  std::vector<ProductAlgorithm> algorithms;
  for (const auto& each : std::span(found).first(static_cast<size_t>(count))) {
    if (each.state != CUBLAS_STATUS_SUCCESS) continue;
    const auto* code = reinterpret_cast<const std::byte*>(&each.algo);
    algorithms.push_back({{code, code + sizeof(each.algo)}, static_cast<int64_t>(each.workspaceSize)});
  }
  return algorithms;
}

bool run(const ProductProblem& problem, const ProductAlgorithm& algorithm, const ProductAddresses& addresses,
         void* workspace, void* stream) {
  Description description(problem, addresses.bias);
  const cublasLtHandle_t state = handle();
  cublasLtMatmulAlgo_t code{};
  if (state == nullptr || !description.well() || algorithm.code.size() != sizeof(code)) return false;
  std::memcpy(&code, algorithm.code.data(), sizeof(code));
  const float one = 1;
  const float of_summand = problem.summand ? 1 : 0;
  const void* summand = problem.summand ? addresses.summand : addresses.result;
  const auto status = library().multiply(
      state, description.product(), &one, addresses.right, description.first(), addresses.left, description.second(),
      &of_summand, summand, description.result(), addresses.result, description.result(), &code, workspace,
      static_cast<size_t>(algorithm.workspace_bytes), static_cast<cudaStream_t>(stream));
  return status == CUBLAS_STATUS_SUCCESS;
}

std::unique_ptr<Stopwatch> stopwatch(void* stream) {
  const Driver* driver = Driver::find();
  if (driver == nullptr) return nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  driver->check(driver->stream_is_capturing(static_cast<CUstream>(stream), &status), "cuStreamIsCapturing");
  if (status != CU_STREAM_CAPTURE_STATUS_NONE) return nullptr;
  CUdeviceptr other_data = 0;
  if (driver->mem_alloc(&other_data, StreamStopwatch::other_bytes) != CUDA_SUCCESS) return nullptr;
  return std::make_unique<StreamStopwatch>(*driver, static_cast<CUstream>(stream), other_data);
}

}  // namespace sinter::runtime::product_library
