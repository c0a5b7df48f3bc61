#include "runtime/graph_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "runtime/program.h"

namespace sinter::runtime {
namespace {

using ir::Device;

/// A call and those of its results that say what it drew.
struct DrawRow {
  std::string_view op;
  std::array<size_t, 2> results;
};
constexpr std::array draw_rows{DrawRow{"aten::_scaled_dot_product_efficient_attention", {2, 3}},
                               DrawRow{"aten::_efficient_attention_forward", {2, 3}}};

class LayoutMaker {
 public:
  LayoutMaker(const Plan& plan, std::span<const BufferId> steady) : plan_(plan), steady_(steady.begin(), steady.end()) {
    layout_.closing = closing_calls(plan);
  }

  GraphLayout run() {
    for (const Step& step : plan_.steps) {
      const auto* call = std::get_if<RunCall>(&step);
      if (call != nullptr && !layout_.closing.contains(call->call)) visit(plan_.calls[call->call]);
      if (const auto* launch = std::get_if<Launch>(&step)) visit(*launch);
    }
    for (BufferId id : plan_.written) {
      if (buffer(id).type.device != plan_.device) refuse("writes a tensor on " + ir::to_string(buffer(id).type.device));
    }
    place_inputs();
    place_outputs();
    place_operands_of_closing_calls();
    layout_.scalar_binds = binds_for(plan_, scalars_);
    return std::move(layout_);
  }

 private:
  [[nodiscard]] const Buffer& buffer(BufferId id) const { return plan_.buffers[id.index]; }
  [[nodiscard]] BufferId root(BufferId id) const { return root_of(plan_, id).buffer; }

  void refuse(const std::string& reason) {
    if (layout_.refusal.empty()) layout_.refusal = reason;
  }

  /// Memory of another device, or of a dtype of unknown width, can be neither re-pointed nor copied.
  [[nodiscard]] bool is_copyable(const Buffer& b) const {
    return b.type.device == plan_.device && ir::bytes_of(b.type.dtype) > 0;
  }

  void visit(const ExternCall& call) {
    layout_.draws = layout_.draws || call.random;
    if (call.impure) {
      refuse(call.op + " may do more than launch kernels; define it with at::Tag::pt2_compliant_tag if it does not");
    }
    for_each_argument(call, [&](BufferId id) {
      const Buffer& memory = buffer(root(id));
      const bool elsewhere = memory.type.device != plan_.device && !draws_.contains(root(id));
      if (elsewhere && memory.kind != BufferKind::frozen) {
        refuse(fmt::format("{} reads a tensor on {}", call.op, ir::to_string(memory.type.device)));
      }
      read_by_calls_.insert(root(id));
    });
    for (size_t i = 0; i < call.results.size(); ++i) {
      const BufferId result = call.results[i];
      if (!result.valid() || buffer(result).type.device == plan_.device) continue;
      if (says_what_it_drew(call, i)) {
        draws_.insert(result);
        if (!call.random) blank_.insert(result);
        continue;
      }
      refuse(fmt::format("{} makes a tensor on {}", call.op, ir::to_string(buffer(result).type.device)));
    }
  }

  void visit(const Launch& launch) {
    for (const KernelArg& arg : launch.args) {
      if (arg.pass == KernelArg::Pass::pointer) {
        touched_by_kernels_.insert(root(arg.buffer));
      } else if (holds_host_numbers(buffer(root(arg.buffer)).kind)) {
        scalars_.push_back(arg.buffer);
      } else if (draws_.contains(root(arg.buffer))) {
        refuse("a kernel reads what a call drew");
      }
    }
  }

  void place_inputs() {
    for (uint32_t i = 0; i < plan_.buffers.size(); ++i) {
      const BufferId id{i};
      if (buffer(id).kind != BufferKind::input) continue;
      if (read_by_calls_.contains(id)) {
        if (!steady_.contains(id)) copy_in(id);
      } else if (touched_by_kernels_.contains(id)) {
        layout_.moving_inputs.push_back(id);
      }
    }
  }

  void copy_in(BufferId id) {
    if (!is_copyable(buffer(id))) refuse(fmt::format("input {} cannot be copied", buffer(id).index));
    const bool written = std::find(plan_.written.begin(), plan_.written.end(), id) != plan_.written.end();
    if (written && !buffer(id).type.is_dense()) {
      refuse(fmt::format("a library call writes input {}, which has gaps", buffer(id).index));
    }
    layout_.copied_inputs.push_back(id);
  }

  void place_outputs() {
    for (BufferId id : plan_.outputs) {
      const BufferId memory = root(id);
      if (is_given_by_closing_call(memory)) continue;
      switch (buffer(memory).kind) {
        case BufferKind::output:
          place_output(memory);
          break;
        case BufferKind::result:
          add(blank_.contains(memory) ? layout_.blank_outputs : layout_.copied_outputs, memory);
          break;
        case BufferKind::arena:
          refuse(fmt::format("output {} lies in the arena", id.index));
          break;
        default:
          break;  // the caller's frame holds it
      }
    }
    layout_.output_binds = binds_for(plan_, plan_.outputs);
    for (BufferId id : layout_.copied_outputs) {
      if (!is_copyable(buffer(id))) refuse(fmt::format("output {} cannot be copied", id.index));
    }
  }

  [[nodiscard]] bool is_given_by_closing_call(BufferId memory) const {
    return std::ranges::any_of(layout_.closing.calls, [&](uint32_t call) {
      return std::ranges::find(plan_.calls[call].results, memory) != plan_.calls[call].results.end();
    });
  }

  void place_operands_of_closing_calls() {
    std::vector<BufferId> held;  // by the caller's frame, or what it is a view of
    for (BufferId operand : layout_.closing.operands) {
      const BufferId memory = root(operand);
      const BufferKind kind = buffer(memory).kind;
      const bool given = kind == BufferKind::input || kind == BufferKind::state || kind == BufferKind::frozen;
      const bool fresh = contains(layout_.moving_outputs, memory) || contains(layout_.copied_outputs, memory);
      if (kind == BufferKind::frozen) add(layout_.kept, memory);
      given || fresh ? held.push_back(operand) : add(layout_.lent, operand);
    }
    layout_.closing_binds = binds_for(plan_, held);
  }

  void place_output(BufferId memory) {
    add(read_by_calls_.contains(memory) ? layout_.copied_outputs : layout_.moving_outputs, memory);
  }

  static bool contains(std::span<const BufferId> list, BufferId id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  }
  static void add(std::vector<BufferId>& list, BufferId id) {
    if (!contains(list, id)) list.push_back(id);
  }

  const Plan& plan_;
  std::set<BufferId> steady_;
  GraphLayout layout_;
  std::set<BufferId> read_by_calls_;
  std::set<BufferId> touched_by_kernels_;
  std::vector<BufferId> scalars_;
  std::set<BufferId> draws_;  ///< what calls drew, where it lies on the CPU when they are not recorded
  std::set<BufferId> blank_;  ///< those of calls that draw nothing
};

}  // namespace

bool says_what_it_drew(const ExternCall& call, size_t result) {
  const auto* row = std::ranges::find(draw_rows, call.op, &DrawRow::op);
  return row != draw_rows.end() && std::ranges::find(row->results, result) != row->results.end();
}

GraphLayout lay_out_graph(const Plan& plan, std::span<const BufferId> steady) {
  return LayoutMaker(plan, steady).run();
}

}  // namespace sinter::runtime
