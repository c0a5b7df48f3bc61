#include "tests/llvm/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <variant>

#include "compiler/ir/interpret.h"
#include "compiler/ir/parse.h"

namespace sinter::test {

using ir::HostTensor;
using ir::RefValue;

namespace {

constexpr RowSizes sizes[] = {{3, 2},   {5, 7},    {64, 8},   {257, 16}, {9, 49},   {40, 64},
                              {3, 100}, {130, 96}, {4, 1000}, {2, 768},  {2, 4104}, {1, 8195}};

HostTensor random_tensor(const ir::Type& type, std::mt19937_64& random) {
  HostTensor tensor = ir::zeros(type);
  std::uniform_real_distribution<double> reals(-4, 4);
  for (RefValue& element : *tensor.storage) {
    if (ir::is_float(type.dtype)) {
      element = ir::stored(reals(random), type.dtype);
    } else {
      element = ir::stored(static_cast<int64_t>(random() % 200) - 100, type.dtype);
    }
  }
  return tensor;
}

/// Relative to 1 or to the number, whichever is larger: sums come in another order.
double allowed(ir::DType dtype) {
  if (dtype == ir::DType::f64) return 1e-13;
  return dtype == ir::DType::f32 ? 2e-6 : dtype == ir::DType::f16 ? 1.5e-3 : 1.2e-2;
}

bool agree(const RefValue& got, const RefValue& want, ir::DType dtype) {
  if (!ir::is_float(dtype)) return got == want;
  const double value = std::get<double>(got);
  const double wanted = std::get<double>(want);
  if (std::isnan(value) || std::isnan(wanted)) return std::isnan(value) && std::isnan(wanted);
  return value == wanted || std::abs(value - wanted) <= allowed(dtype) * std::max(1.0, std::abs(wanted));
}

std::string print(const RefValue& value) {
  return std::visit([](auto number) { return fmt::format("{}", number); }, value);
}

/// Elements behind the last one, which are zero and stay so.
bool is_room_untouched(const Buffer& buffer, int64_t used) {
  for (int64_t e = used; e < buffer.size(); ++e) {
    if (buffer.get(e) != Buffer(buffer.dtype(), 1).get(0)) return false;
  }
  return true;
}

}  // namespace

const std::vector<RowBody>& row_bodies() {
  static const std::vector<RowBody> all = {
      {"softmax", R"(graph @softmax on {D} (%x: {T}[{R},{N}]) -> (%y) {{
        %c = cast %x : {C}[{R},{N}]
        %m = reduce max %c over 1 : {C}[{R},1]
        %d = sub %c, %m : {C}[{R},{N}]
        %e = exp %d : {C}[{R},{N}]
        %s = reduce sum %e over 1 : {C}[{R},1]
        %q = div %e, %s : {C}[{R},{N}]
        %y = cast %q : {T}[{R},{N}]
      }})"},
      {"norm_of_a_sum_that_is_stored",
       R"(graph @norm on {D} (%x: {T}[{R},{N}], %r: {T}[{R},{N}], %w: {T}[{N}]) -> (%s, %y, %v) {{
        %xc = cast %x : {C}[{R},{N}]
        %rc = cast %r : {C}[{R},{N}]
        %sc = add %xc, %rc : {C}[{R},{N}]
        %s = cast %sc : {T}[{R},{N}]
        %c = cast %s : {C}[{R},{N}]
        %t = reduce sum %c over 1 : {C}[{R},1]
        %m = mul %t, 0.125 : {C}[{R},1]
        %d = sub %c, %m : {C}[{R},{N}]
        %d2 = mul %d, %d : {C}[{R},{N}]
        %v = reduce sum %d2 over 1 : {C}[{R},1]
        %v1 = add %v, 1.0 : {C}[{R},1]
        %q = sqrt %v1 : {C}[{R},1]
        %n = div %d, %q : {C}[{R},{N}]
        %wc = cast %w : {C}[{N}]
        %o = mul %n, %wc : {C}[{R},{N}]
        %y = cast %o : {T}[{R},{N}]
      }})"},
      {"least_of_every_second_element", R"(graph @least on {D} (%x: {T}[{R},{N}]{{{N2},2}}) -> (%y) {{
        %c = cast %x : {C}[{R},{N}]
        %y = reduce min %c over 1 : {C}[{R},1]
      }})"},
      {"softmax_across_rows", R"(graph @softmax on {D} (%x: {T}[{N},{R}]) -> (%y, %m) {{
        %c = cast %x : {C}[{N},{R}]
        %m = reduce max %c over 0 : {C}[1,{R}]
        %d = sub %c, %m : {C}[{N},{R}]
        %e = exp %d : {C}[{N},{R}]
        %s = reduce sum %e over 0 : {C}[1,{R}]
        %q = div %e, %s : {C}[{N},{R}]
        %y = cast %q : {T}[{N},{R}]
      }})"},
      {"group_norm", R"(graph @group on {D} (%x: {T}[{R},3,{N}], %w: {T}[3,1]) -> (%y) {{
        %c = cast %x : {C}[{R},3,{N}]
        %s = reduce sum %c over 1, 2 : {C}[{R},1,1]
        %m = mul %s, 0.001 : {C}[{R},1,1]
        %d = sub %c, %m : {C}[{R},3,{N}]
        %t = tanh %d : {C}[{R},3,{N}]
        %h = reduce max %t over 1, 2 : {C}[{R},1,1]
        %wc = cast %w : {C}[3,1]
        %n = mul %t, %wc : {C}[{R},3,{N}]
        %o = add %n, %h : {C}[{R},3,{N}]
        %y = cast %o : {T}[{R},3,{N}]
      }})",
       5000},
      {"moments_of_channels", R"(graph @moments on {D} (%x: {T}[2,{R},{N}]) -> (%s, %q) {{
        %c = cast %x : {C}[2,{R},{N}]
        %e = mul %c, 0.015625 : {C}[2,{R},{N}]
        %s = reduce sum %e over 0, 2 : {C}[1,{R},1]
        %p = mul %e, %c : {C}[2,{R},{N}]
        %q = reduce sum %p over 0, 2 : {C}[1,{R},1]
      }})",
       5000},
      {"products_and_predicates", R"(graph @product on {D} (%x: {T}[{R},{N}]) -> (%p, %a, %o) {{
        %c = cast %x : {C}[{R},{N}]
        %f = mul %c, 0.001 : {C}[{R},{N}]
        %g = add %f, 1.0 : {C}[{R},{N}]
        %p = reduce prod %g over 1 : {C}[{R},1]
        %l = lt %c, 3.5 : b8[{R},{N}]
        %a = reduce all %l over 1 : b8[{R},1]
        %h = gt %c, 3.5 : b8[{R},{N}]
        %o = reduce any %h over 1 : b8[{R},1]
      }})",
       100},
      {"norm_across_rows_and_sums_side_by_side",
       R"(graph @norm on {D} (%x: {T}[{N},{R}], %g: {T}[{N},{R}]) -> (%y, %a, %b) {{
        %c = cast %x : {C}[{N},{R}]
        %t = reduce sum %c over 0 : {C}[1,{R}]
        %m = ratio %t, {N}.0 : {C}[1,{R}]
        %d = sub %m, %c : {C}[{N},{R}]
        %d2 = mul %d, %d : {C}[{N},{R}]
        %q = reduce sum %d2 over 0 : {C}[1,{R}]
        %v = ratio %q, {N}.0 : {C}[1,{R}]
        %v1 = add %v, 1.0 : {C}[1,{R}]
        %i = rsqrt %v1 : {C}[1,{R}]
        %e = sub %c, %m : {C}[{N},{R}]
        %n = mul %e, %i : {C}[{N},{R}]
        %y = cast %n : {T}[{N},{R}]
        %n2 = mul %n, %n : {C}[{N},{R}]
        %a = reduce sum %n2 over 0 : {C}[1,{R}]
        %h = cast %g : {C}[{N},{R}]
        %h2 = mul %h, %h : {C}[{N},{R}]
        %b = reduce sum %h2 over 0 : {C}[1,{R}]
      }})"},
  };
  return all;
}

std::span<const RowSizes> row_sizes() { return sizes; }

std::string text_of(const RowBody& body, RowSizes size, std::string_view dtype, std::string_view computed,
                    std::string_view device) {
  return fmt::format(fmt::runtime(body.text), fmt::arg("R", size.rows), fmt::arg("N", size.length),
                     fmt::arg("N2", 2 * size.length), fmt::arg("T", dtype), fmt::arg("C", computed),
                     fmt::arg("D", device));
}

RowTrial row_trial(std::string name, const std::string& text, uint64_t seed, int64_t room, const ChangeInput& change) {
  RowTrial trial{.name = std::move(name), .graph = ir::parse(text), .kernel = {}, .outputs = {}, .params = {}};
  trial.kernel = kernel::lower(trial.graph, "fused_row");
  std::mt19937_64 random(seed);
  std::vector<HostTensor> inputs;
  for (const ir::NodeId id : trial.graph.order()) {
    if (trial.graph.node(id).as<ir::Input>() == nullptr) continue;
    const ir::Type& type = trial.graph.type(trial.graph.node(id).results[0]);
    inputs.push_back(random_tensor(type, random));
    if (change) change(inputs.back());
    const std::vector<RefValue>& elements = *inputs.back().storage;
    Buffer buffer(type.dtype, static_cast<int64_t>(elements.size()) + room);
    for (size_t e = 0; e < elements.size(); ++e) buffer.set(static_cast<int64_t>(e), elements[e]);
    trial.params.push_back(std::move(buffer));
  }
  for (const ir::ValueId output : trial.graph.outputs) {
    trial.params.emplace_back(trial.graph.type(output).dtype, trial.graph.type(output).span() + room);
  }
  trial.outputs = ir::interpret(trial.graph, {.inputs = inputs, .states = {}, .call = {}});
  return trial;
}

void for_each_row_trial(std::string_view device,
                        const std::function<void(std::string name, const std::string& text)>& visit) {
  const auto add = [&](const RowBody& body, RowSizes size, std::string_view dtype, std::string_view computed) {
    if (size.length > body.longest) return;
    visit(fmt::format("{} {}[{},{}]", body.name, dtype, size.rows, size.length),
          text_of(body, size, dtype, computed, device));
  };
  for (const RowBody& body : row_bodies()) {
    for (const RowSizes size : sizes) {
      add(body, size, "f16", "f32");
      add(body, size, "f32", "f32");
    }
    add(body, {6, 40}, "bf16", "f32");
    add(body, {6, 40}, "f64", "f64");
    add(body, {6, 40}, "f32", "f32");
  }
}

std::string difference(const RowTrial& trial) {
  std::string text;
  for (size_t i = 0; i < trial.outputs.size(); ++i) {
    const ir::Type& type = trial.graph.type(trial.graph.outputs[i]);
    const Buffer& buffer = trial.params[trial.params.size() - trial.outputs.size() + i];
    if (!is_room_untouched(buffer, type.span())) return fmt::format("{}: output {} ends too late", trial.name, i);
    ir::for_each_point(type.static_sizes(), [&](std::span<const int64_t> point) {
      const RefValue got = buffer.get(ir::evaluate(ir::storage_index(type), point));
      const RefValue want = trial.outputs[i].at(point);
      if (!text.empty() || agree(got, want, type.dtype)) return;
      text = fmt::format("{}: output {} at [{}] is {}, want {}", trial.name, i, fmt::join(point, ","), print(got),
                         print(want));
    });
  }
  return text;
}

}  // namespace sinter::test
