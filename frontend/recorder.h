#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "frontend/capture.h"
#include "frontend/capture_facts.h"
#include "frontend/ledger.h"
#include "frontend/scopes.h"
#include "frontend/stated_place.h"
#include "sinter/host.h"

namespace sinter::frontend {

struct HostScope;

/// Builds one trace from the operators it is told of. Lives in thread-local state that LibTorch carries to the threads
/// it starts itself (autograd's, at::launch's), so all of them find it; thread-safe.
class Recorder : public c10::DebugInfoBase {
 public:
  Recorder(std::span<const at::Tensor> inputs, std::span<const NamedTensor> names, std::span<const WeakTensor> leaves);

  /// A tensor an operator is about to write.
  struct Written {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    Layout layout;
    Memory* memory;
  };
  /// An operator whose arguments are recorded and whose results are awaited.
  struct Pending {
    const OpFacts* facts = nullptr;
    std::vector<ir::Arg> args;
    std::vector<uint32_t> mutates;
    std::vector<Written> written;
    std::string module;  ///< that it is reported under: the stated one, else `owner`
    std::string owner;   ///< of the parameters among the arguments
    bool owned = true;   ///< all tensor arguments belong to `owner`
    bool reads_cuda = false;
    Origin origin;                   ///< of what the tensor arguments hold
    bool draws = false;              ///< from a generator
    bool read = false;               ///< by the host, with an outcome that may differ from call to call
    std::vector<ir::ValueId> roots;  ///< of the tensor arguments: whose memory results may be views of
    Frames frames;
    std::optional<StatedPlace> stated;  ///< what the program itself says about where it is
  };

  /// False once something could not be recorded: the program runs on, and nothing more is written down.
  [[nodiscard]] bool recording() const { return recording_; }
  /// True when the operator only calls other operators, which are to be recorded in its place.
  [[nodiscard]] bool opens(const c10::OperatorHandle& op, c10::DispatchKeySet keys);
  /// Records the arguments of a call. Nothing when there is nothing to await.
  [[nodiscard]] std::optional<Pending> before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  /// Records the results of a call.
  void after(Pending pending, c10::ArrayRef<c10::IValue> results);
  /// Remembers where an operator threw.
  void note_failure(const Pending& pending);
  /// Module path and source place of the operator that threw last; empty when none did.
  [[nodiscard]] const std::string& failed_at() const { return failed_at_; }
  /// Ends recording; the first break is kept. `where` is filled from the calling thread's stack.
  void stop(GraphBreak reason);

  // recorder_host.cpp: host functions
  /// What lies on this thread's stack below `frame` belongs to the program. Before it runs.
  void begin_on_stack(const void* frame);
  /// Records a host function that is about to run. Nothing when there is nothing to await.
  [[nodiscard]] std::optional<Pending> before_host(const detail::HostFunction& function,
                                                   std::span<const at::Tensor> tensors);
  /// Records what it gave; `decides` where the program may go another way by that.
  void after_host(Pending pending, const std::optional<at::Scalar>& value, bool decides);
  /// Looks at an operator that a host function calls.
  void look_into_host(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, const HostScope& scope);

  /// The trace, once the program has returned these tensors. Call once.
  [[nodiscard]] Trace finish(std::span<const at::Tensor> outputs);

 private:
  /// What autograd knows of a tensor.
  struct History {
    bool requires_grad = false;
    bool is_leaf = true;

    static History of(const at::Tensor& tensor) { return {tensor.requires_grad(), tensor.is_leaf()}; }
    bool operator==(const History&) const = default;
  };
  /// A tensor from nowhere: state if something still holds it after the capture, else known by its content.
  struct Leaf {
    ir::NodeId node;
    ir::ValueId value;
    std::string name;  ///< empty: not a named tensor
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor{c10::intrusive_ptr<c10::TensorImpl>()};
    c10::weak_intrusive_ptr<c10::StorageImpl> storage{c10::intrusive_ptr<c10::StorageImpl>()};
    Layout layout;
    std::optional<ir::Alias> base;  ///< where it lies in an input or in state met before
    at::Tensor content;             ///< a copy, made at first use, of a small CPU tensor without a name
    bool is_content = false;        ///< known to be content: its memory changed without an operator
    ir::ValueId own_copy;           ///< what was written in its place, while it was taken for content
    at::Tensor read_by_host;        ///< what the host read of it, where every call must find the same
    History history;
  };
  struct Named {
    std::string name, module;
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
  };
  /// An input or state that no operator made: the program may find a gradient in it and may give it one.
  struct GradientLeaf {
    GradientSlot slot;
    WeakTensor tensor = no_tensor();
    WeakTensor found = no_tensor();          ///< its gradient when the call began
    std::optional<MovingTensor> found_kind;  ///< set where there was one
  };

  // recorder.cpp: calls
  void fail(GraphBreak reason, const Frames& frames, const std::string& module);
  [[nodiscard]] GraphBreak located(GraphBreak reason, const Frames& frames, const std::string& module);
  ir::Arg encode(const at::Tensor& tensor, bool overwritten, Pending& pending);
  bool reseats(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments);
  [[nodiscard]] static bool copies_to_host(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments);
  void finish_copies();
  bool note_host_read(const Pending& pending);
  void begin_read(Pending& pending, bool copy);
  bool end_read(const Pending& pending, ir::NodeId node, c10::ArrayRef<c10::IValue> results);
  void note_writes(c10::ArrayRef<c10::IValue> arguments, Pending& pending);
  void check_write(const at::Tensor& tensor, Pending& pending);
  void check_overlaps(const at::Tensor& written, c10::ArrayRef<c10::IValue> arguments, Pending& pending);
  bool check_written(const Pending& pending);
  void place_result(const at::Tensor& tensor, ir::ValueId value, bool known_before, const Pending& pending);
  void fail_beyond_argument(const Pending& pending);
  void bind_as_read(const at::Tensor& tensor, ir::ValueId plain);
  void watch_memory(const Pending& pending, std::span<const at::Tensor> results);

  // recorder_leaves.cpp: tensors from nowhere
  void add_input(const at::Tensor& tensor, uint32_t index);
  void add_own_region(const at::Tensor& tensor, ir::ValueId value, bool look);
  void index_names(std::span<const NamedTensor> names);
  ir::ValueId resolve(const at::Tensor& tensor, bool overwritten);
  Placement place(const at::Tensor& tensor);
  std::optional<ir::ValueId> view_of(const at::Tensor& tensor, const Placement& placement);
  ir::ValueId look_at(const at::Tensor& tensor, const Placement& placement);
  ir::ValueId add_leaf(const at::Tensor& tensor, const Named* named, std::optional<ir::Alias> base = std::nullopt);
  bool add_named_over(const at::Tensor& tensor);
  void watch(Memory& memory);
  void refresh_content(Memory& memory);
  void own_content(const at::Tensor& tensor);
  [[nodiscard]] Leaf* leaf_of(ir::ValueId root);
  [[nodiscard]] bool is_written(const Leaf& leaf) const;
  [[nodiscard]] bool outlives_call(ir::ValueId root) const;
  [[nodiscard]] ir::ValueId root_of(ir::ValueId value) const;
  [[nodiscard]] ir::ValueId origin_of(ir::ValueId value);
  void set_owner(ir::ValueId value, const std::string& module);
  [[nodiscard]] const std::string& owner(ir::ValueId value) const;
  /// "input 0", "fc1.weight", "a closed-over tensor" or "an intermediate tensor".
  [[nodiscard]] std::string description(ir::ValueId value);

  // recorder_host.cpp
  [[nodiscard]] std::optional<GraphBreak> refusal_of(const detail::HostFunction& function) const;
  void look_into_host(const at::Tensor& tensor, bool writing, const HostScope& scope);
  void finish_host();

  // recorder_gradients.cpp: what no operator tells of gradients
  void note_step(const WeakTensor& parameter, const Frames& frames);
  void note_leaves(std::span<const NamedTensor> names, std::span<const WeakTensor> leaves);
  void note_leaf(const at::Tensor& tensor, const std::string& name, std::optional<uint32_t> input,
                 const std::string& module = {});
  void refuse_hooks(const at::Tensor& leaf, ir::ValueId value, const Pending& pending);
  void note_gradient_use(const at::Tensor& tensor, ir::ValueId value, const Pending& pending);
  [[nodiscard]] GradientLeaf* finder_of(const c10::TensorImpl* gradient);
  [[nodiscard]] std::vector<at::Tensor> with_assigned_gradients(std::span<const at::Tensor> results);
  void forget_unused_gradients();
  bool finish_found_gradient(const Leaf& leaf);
  void finish_histories(std::span<const at::Tensor> outputs);
  void finish_kept_gradients(std::span<const at::Tensor> results, std::span<const at::Tensor> outputs);
  void finish_gradients();
  [[nodiscard]] std::string final_name(const GradientLeaf& leaf);

  // recorder_finish.cpp
  void finish_outputs(std::span<const at::Tensor> outputs);
  void refuse_foreign_outputs();
  void finish_identities(std::span<const at::Tensor> outputs);
  void finish_inputs();
  void finish_leaves(std::span<const at::Tensor> outputs);
  void finish_leaf(Leaf& leaf, std::span<const at::Tensor> outputs);
  void finish_kept(std::span<const at::Tensor> outputs);
  void finish_kept_inputs(std::span<const at::Tensor> outputs);
  void finish_state(Leaf& leaf, const at::Tensor& tensor);
  void finish_content(Leaf& leaf);
  void finish_look(const Leaf& leaf);
  void make_view(ir::ValueId value, ir::Alias alias, ir::Call call, std::vector<ir::Arg> args);
  void finish_writes();
  void finish_scopes();
  void order_leaves_first();

  std::mutex mutex_;
  std::atomic<bool> recording_{true};
  bool effects_ = false;  ///< an operator had effects that its schema does not tell
  Trace trace_;
  std::string failed_at_;
  OpFactsCache facts_;
  TensorLedger ledger_;
  Scopes scopes_;
  const void* stack_begin_ = nullptr;
  std::thread::id thread_;  ///< whose stack that is
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> written_by_host_;
  struct Argument {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    Layout layout;
    History history;
    size_t holders, storage_holders;  ///< when the call began
  };
  std::vector<Argument> inputs_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> wrapped_views_;  ///< taken for views of inputs or state
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> reseated_;       ///< of the program's own, by set_
  std::vector<Leaf> leaves_;
  int64_t content_bytes_ = 0;
  std::vector<GradientLeaf> gradient_leaves_;
  std::unordered_map<const c10::TensorImpl*, size_t> gradient_leaf_by_tensor_, gradient_leaf_by_found_;
  bool differentiates_ = false;  ///< an operator met a tensor that requires gradients, in grad mode
  std::vector<Named> names_;
  std::unordered_map<const c10::TensorImpl*, size_t> names_by_tensor_;
  std::unordered_multimap<const c10::StorageImpl*, size_t> names_by_storage_;
  std::vector<std::string> owners_;  ///< by ValueId: module that owns it, or empty
  struct Placed {
    std::string module;
    Frames frames;
    std::string line;  ///< stated by the program; else `frames` tell
  };
  std::unordered_map<uint32_t, Placed> places_;  ///< by NodeId
};

/// That of the calling thread, or of the thread whose LibTorch state it carries; null where nothing is recorded.
[[nodiscard]] Recorder* current_recorder();

/// Runs a call, whose kernel is found by the keys `below`, and records it. What it calls in turn is not recorded.
void run_recorded(Recorder& recorder, const c10::OperatorHandle& op, c10::DispatchKeySet below,
                  torch::jit::Stack* stack);

/// The break of a callable that catches what a host function throws.
[[nodiscard]] GraphBreak host_threw();

/// Why a tensor cannot stand in a graph ("a sparse tensor"); nothing when it can.
[[nodiscard]] std::optional<std::string> unsupported_kind(const at::Tensor& tensor);

/// The same for a tensor that no operator of the graph made.
[[nodiscard]] std::optional<std::string> unsupported_leaf(const at::Tensor& tensor);

}  // namespace sinter::frontend
