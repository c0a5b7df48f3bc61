#pragma once

#include <map>
#include <memory>
#include <vector>

#include "compiler/ir/interpret.h"
#include "compiler/passes/plan_memory.h"

namespace sinter::passes {

/// Runs a plan over memory that remembers every byte's owner: a step that reads what was released, overwritten or never
/// written, or takes a tensor nobody bound, is a test failure. Fused nodes are interpreted.
class PlanMachine {
 public:
  PlanMachine(const ir::Graph& graph, const PlannedMemory& planned, const ir::Environment& environment);

  /// The outputs, then what written memory holds in the end.
  [[nodiscard]] std::vector<ir::HostTensor> run();
  /// Where output i lies: block and byte.
  [[nodiscard]] std::pair<const void*, int64_t> address(size_t output) const;

 private:
  /// Elements by the byte they start at; writing one drops those it overlaps.
  struct Block {
    std::map<int64_t, std::pair<ir::RefValue, int64_t>> elements;
    void write(int64_t byte, int64_t size, const ir::RefValue& value);
  };
  struct Place {
    std::shared_ptr<Block> block;
    int64_t byte = 0;
  };

  void run_steps(const std::vector<Step>& steps);
  void step(const Launch& launch);
  void step(const RunCall& call);
  void step(const Allocate& allocate);
  void step(const Bind& bind);
  void step(const Release& release);
  void step(const BeginWrites& begin);
  [[nodiscard]] bool lasts(BufferId id) const;

  [[nodiscard]] Place place(BufferId id) const;
  [[nodiscard]] ir::HostTensor read(BufferId id) const;
  void write(BufferId id, const ir::HostTensor& tensor);
  void give(BufferId id, const ir::HostTensor& tensor);

  const ir::Graph& graph_;
  const PlannedMemory& planned_;
  const ir::Environment& environment_;
  bool writing_ = false;
  std::shared_ptr<Block> arena_ = std::make_shared<Block>();
  std::vector<std::shared_ptr<Block>> held_;  ///< by buffer: tensors the frame holds
  std::vector<std::weak_ptr<Block>> roots_;   ///< by buffer: address of roots, as launches know it
};

}  // namespace sinter::passes
