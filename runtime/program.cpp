#include "runtime/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/support/errors.h"
#include "compiler/support/planted.h"

namespace sinter::runtime {
namespace {

bool is_derived(const Buffer& buffer) { return buffer.kind == BufferKind::view || buffer.kind == BufferKind::in_place; }

/// True for roots a frame holds before the first step.
bool is_given(BufferKind kind) {
  return kind == BufferKind::input || kind == BufferKind::state || kind == BufferKind::frozen;
}

class Flattener {
 public:
  Flattener(const Plan& plan, const std::vector<BufferId>& given) : plan_(plan), given_(given) {
    program_.slots.push_back(BufferId{});
  }

  Program run(const std::vector<Step>& steps) {
    // Every root a kernel touches gets its slot first, so that a root's producer knows to fetch its address.
    for (const Step& step : steps) {
      if (const auto* launch = std::get_if<sinter::Launch>(&step)) add_launch(*launch);
    }
    const size_t count = program_.slots.size();
    for (uint32_t slot = 1; slot < count; ++slot) {
      const BufferId root = program_.slots[slot];
      if (is_given(plan_.buffers[root.index].kind) && !produced_by(steps, root)) fetch(root);
    }
    for (BufferId buffer : given_) fetch(buffer);
    next_launch_ = 0;
    for (const Step& step : steps) std::visit([&](const auto& s) { add(s); }, step);
    return std::move(program_);
  }

 private:
  using Kind = Program::Instruction::Kind;

  [[nodiscard]] bool is_empty(const sinter::Launch& launch) const { return plan_.kernels[launch.kernel].numel == 0; }

  void add_launch(const sinter::Launch& launch) {
    if (is_empty(launch)) return;
    const auto first = static_cast<uint32_t>(program_.params.size());
    const KernelSource& kernel = plan_.kernels[launch.kernel];
    for (size_t i = 0; i < launch.args.size(); ++i) {
      program_.params.push_back(param(launch.args[i], i < kernel.params.size() ? kernel.params[i] : KernelParam{}));
    }
    const auto& sizes = kernel.sizes;
    for (const int64_t size : sizes) {
      program_.params.push_back({.pass = KernelArg::Pass::size, .offset = size, .buffer = {}});
    }
    const auto count = static_cast<uint32_t>(launch.args.size() + sizes.size());
    program_.launches.push_back({launch.kernel, first, count});
    program_.most_params = std::max(program_.most_params, count);
  }

  Program::Param param(const KernelArg& arg, const KernelParam& needs) {
    Program::Param param{.pass = arg.pass, .buffer = arg.buffer};
    if (arg.pass != KernelArg::Pass::pointer) return param;
    if (!planted(Bug::alignment_not_guarded)) param.clear = static_cast<uint64_t>(needs.alignment - 1);
    param.written = needs.written;
    param.bytes = span_bytes(plan_.buffers[arg.buffer.index].type);
    const Root root = root_of(plan_, arg.buffer);
    const Buffer& buffer = plan_.buffers[root.buffer.index];
    param.offset = root.bytes;
    if (buffer.kind != BufferKind::arena) {
      param.slot = slot_of(root.buffer);
      return param;
    }
    program_.uses_arena = true;
    param.slot = Program::arena_slot;
    param.offset += buffer.offset;
    return param;
  }

  uint32_t slot_of(BufferId root) {
    const auto [found, added] = slots_.try_emplace(root, static_cast<uint32_t>(program_.slots.size()));
    if (added) program_.slots.push_back(root);
    return found->second;
  }

  /// True when a step of its own makes this buffer (Plan::once makes frozen ones).
  [[nodiscard]] bool produced_by(const std::vector<Step>& steps, BufferId buffer) const {
    return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
      if (const auto* allocate = std::get_if<Allocate>(&step)) return allocate->buffer == buffer;
      const auto* run = std::get_if<RunCall>(&step);
      if (run == nullptr) return false;
      const auto& results = plan_.calls[run->call].results;
      return std::find(results.begin(), results.end(), buffer) != results.end();
    });
  }

  void fetch(BufferId root) {
    const auto found = slots_.find(root);
    if (found != slots_.end()) program_.instructions.push_back({Kind::fetch, root.index, found->second});
  }

  void add(const sinter::Launch& launch) {
    if (!is_empty(launch)) program_.instructions.push_back({Kind::launch, next_launch_++, 0});
  }
  void add(const RunCall& run) {
    program_.instructions.push_back({Kind::call, run.call, 0});
    for (BufferId result : plan_.calls[run.call].results) fetch(result);
  }
  void add(const Allocate& step) {
    if (std::find(given_.begin(), given_.end(), step.buffer) != given_.end()) return;
    program_.instructions.push_back({Kind::allocate, step.buffer.index, 0});
    fetch(step.buffer);
  }
  void add(const Bind& step) {
    const Root root = root_of(plan_, step.buffer);
    if (plan_.buffers[root.buffer.index].kind == BufferKind::arena) program_.uses_arena = true;
    program_.instructions.push_back({Kind::bind, step.buffer.index, 0});
  }
  void add(const BeginWrites&) { program_.instructions.push_back({Kind::begin_writes, 0, 0}); }
  void add(const Release& step) { program_.instructions.push_back({Kind::release, step.buffer.index, 0}); }

  const Plan& plan_;
  const std::vector<BufferId>& given_;
  Program program_;
  std::unordered_map<BufferId, uint32_t> slots_;
  uint32_t next_launch_ = 0;
};

}  // namespace

Root root_of(const Plan& plan, BufferId buffer) {
  Root root{buffer, 0};
  while (is_derived(plan.buffers[root.buffer.index])) {
    const Buffer& derived = plan.buffers[root.buffer.index];
    if (!derived.base.valid() || derived.base == root.buffer) {
      throw InternalError("runtime", fmt::format("plan {}: buffer {} has no base", plan.name, root.buffer.index));
    }
    if (derived.kind == BufferKind::view) root.bytes += derived.offset * ir::bytes_of(derived.type.dtype);
    root.buffer = derived.base;
  }
  return root;
}

int64_t span_bytes(const ir::Type& type) { return type.span() * ir::bytes_of(type.dtype); }

Program flatten(const Plan& plan, const std::vector<Step>& steps, const std::vector<BufferId>& given) {
  return Flattener(plan, given).run(steps);
}

std::vector<BufferId> binds_for(const Plan& plan, const std::vector<BufferId>& buffers) {
  std::vector<BufferId> order;
  for (BufferId buffer : buffers) {
    std::vector<BufferId> chain;
    for (BufferId b = buffer; is_derived(plan.buffers[b.index]); b = plan.buffers[b.index].base) chain.push_back(b);
    for (auto link = chain.rbegin(); link != chain.rend(); ++link) {
      if (std::find(order.begin(), order.end(), *link) == order.end()) order.push_back(*link);
    }
  }
  return order;
}

}  // namespace sinter::runtime
