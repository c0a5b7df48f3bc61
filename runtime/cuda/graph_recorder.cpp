#include "runtime/cuda/graph_recorder.h"

#include "compiler/support/errors.h"

namespace sinter::runtime {

StreamCapture::StreamCapture(const Driver& driver, CUstream stream) : driver_(driver), stream_(stream) {
  driver_.check(driver_.begin_capture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
}

StreamCapture::~StreamCapture() {
  if (!active_) return;
  CUgraph graph = nullptr;
  driver_.end_capture(stream_, &graph);
  if (graph != nullptr) driver_.graph_destroy(graph);
}

CUgraph StreamCapture::end() {
  active_ = false;
  CUgraph graph = nullptr;
  driver_.check(driver_.end_capture(stream_, &graph), "cuStreamEndCapture");
  if (graph == nullptr) throw InternalError("cuda", "the recording was invalidated");
  return graph;
}

CUgraphNode StreamCapture::last_node() const {
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  driver_.check(driver_.capture_info(stream_, &status, &id, &graph, &nodes, &edges, &count), "cuStreamGetCaptureInfo");
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1) {
    throw InternalError("cuda", "the recording was invalidated");
  }
  return nodes[0];
}

void StreamCapture::check_alive() const {
  CUstreamCaptureStatus status{};
  driver_.check(driver_.stream_is_capturing(stream_, &status), "cuStreamIsCapturing");
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) throw InternalError("cuda", "the recording was invalidated");
}

void RecordingExecutor::begin() {
  launches_.clear();
  capture_.emplace(driver_, stream_);
}

void RecordingExecutor::launch(const Program::Launch& launch, std::span<const Program::Param> params,
                               std::span<uint64_t> values) {
  executor_.launch(launch, params, values);
  launches_.push_back({capture_->last_node(), launch.kernel, params, {values.begin(), values.end()}});
}

void RecordingExecutor::copy(uint64_t /*to*/, uint64_t /*from*/, int64_t /*bytes*/) {
  throw NotRecorded("a tensor is less aligned than it was when the call was captured");
}

void RecordingExecutor::call(Frame& frame, uint32_t call) {
  executor_.call(frame, call);
  capture_->check_alive();
}

}  // namespace sinter::runtime
