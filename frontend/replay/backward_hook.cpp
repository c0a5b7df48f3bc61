#include "frontend/replay/backward_hook.h"

#include <torch/csrc/autograd/engine.h>

#include "frontend/replay/session.h"

namespace sinter::frontend {
namespace {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::variable_list;

/// Runs nothing itself.
class HookedEngine final : public Engine {
 public:
  explicit HookedEngine(Engine& engine) : engine_(engine) {}

  variable_list execute(const edge_list& roots, const variable_list& inputs, bool keep_graph, bool create_graph,
                        bool accumulate_grad, const edge_list& outputs) override {
    variable_list results;
    const auto run = [&] {
      results = engine_.execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
    };
    Session* session = current_session();
    if (session == nullptr) return run(), results;
    session->backward({.roots = roots,
                       .gradients = inputs,
                       .keep_graph = keep_graph,
                       .create_graph = create_graph,
                       .accumulate = accumulate_grad,
                       .all_leaves = outputs.empty()},
                      run);
    return results;
  }
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& task, std::shared_ptr<torch::autograd::Node> root,
      torch::autograd::InputBuffer&& inputs) override {
    return engine_.execute_with_graph_task(task, std::move(root), std::move(inputs));
  }
  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return engine_.make_anomaly_metadata();
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return engine_.get_default_saved_variable_hooks();
  }

 private:
  Engine& engine_;
};

/// LibTorch may ask for it as long as the process lives.
Engine& hooked_engine() {
  static Engine& engine = *new HookedEngine(Engine::get_default_engine());
  return engine;
}

}  // namespace

void install_backward_hook() {
  [[maybe_unused]] static const bool installed = [] {
    (void)hooked_engine();  // while the default engine is still the one that it hands on to
    torch::autograd::set_default_engine_stub(&hooked_engine);
    return true;
  }();
}

}  // namespace sinter::frontend
