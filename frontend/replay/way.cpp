#include "frontend/replay/way.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/ir/op_types.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/aten.h"
#include "compiler/support/planted.h"
#include "frontend/replay/composites.h"
#include "frontend/replay/draw_log.h"
#include "frontend/torch/convert.h"
#include "frontend/trace/call_key.h"
#include "frontend/trace/overlap.h"

namespace sinter::frontend {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

/// Integers of so many elements on the CPU are lengths, indices and shapes: the host reads them sooner or later.
constexpr int64_t kFewNumbers = 64;

template <class Test>
bool any_tensor(Arguments arguments, Test&& test) {
  bool found = false;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) { found = found || test(tensor); });
  }
  return found;
}

/// The device that a factory was told, else that of the tensor it makes another like.
c10::DeviceType device_made_on(Arguments arguments) {
  for (const c10::IValue& argument : arguments) {
    if (argument.isDevice()) return argument.toDevice().type();
  }
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor() && argument.toTensor().defined()) return argument.toTensor().device().type();
  }
  return c10::DeviceType::CPU;
}

/// Memory that the program may fill itself is there at once: new memory without content, and everything that comes from
/// numbers alone on the CPU.
bool makes_memory_for_the_host(const OpTraits& traits, Arguments arguments) {
  if (!traits.facts.mutates.empty()) return false;
  if (traits.facts.uninitialised) return true;
  const bool reads = any_tensor(arguments, [](const at::Tensor&) { return true; });
  return (traits.makes_alike || !reads) && device_made_on(arguments) == c10::DeviceType::CPU;
}

bool crosses_devices(const OpTraits& traits, Arguments arguments) {
  if (!traits.copies) return false;
  bool cpu = false, cuda = false;
  const auto note = [&](c10::DeviceType type) { (type == c10::DeviceType::CPU ? cpu : cuda) = true; };
  for (const c10::IValue& argument : arguments) {
    if (argument.isDevice()) note(argument.toDevice().type());
    for_each_tensor(argument, [&](const at::Tensor& tensor) { note(tensor.device().type()); });
  }
  return cpu && cuda;
}

/// A copy to the CPU in f64 that names the CPU, as LibTorch makes it to print a tensor: the host looks at it next.
bool is_for_the_host(const OpTraits& traits, Arguments arguments) {
  if (traits.facts.name != "aten::_to_copy" || !arguments[0].isTensor() || !arguments[0].toTensor().is_cpu())
    return false;
  constexpr size_t dtype = 1, device = 3;
  return arguments[device].isDevice() && arguments[dtype].isInt() && arguments[dtype].toScalarType() == at::kDouble;
}

bool divides_by_a_number(Arguments arguments) {
  const c10::IValue& divisor = arguments[1];
  std::optional<ir::Scalar> number;
  if (divisor.isInt()) number = divisor.toInt();
  if (divisor.isTensor() && divisor.toTensor().defined()) number = wrapped_number(divisor.toTensor());
  const auto* integer = number ? std::get_if<int64_t>(&*number) : nullptr;
  return integer != nullptr && divides_any(*integer);
}

/// True where nothing has data: tensors on the meta device are sizes, strides and dtypes.
bool is_about_metadata(const OpFacts& facts, Arguments arguments) {
  if (facts.random || facts.impure) return false;
  bool meta = false, other = false;
  for (const c10::IValue& argument : arguments) {
    other = other || (argument.isDevice() && !argument.toDevice().is_meta());
    for_each_tensor(argument, [&](const at::Tensor& tensor) { (tensor.is_meta() ? meta : other) = true; });
  }
  return meta && !other;
}

/// True for a copy to the meta device: of what a tensor is, not of its data.
bool gives_metadata(const OpTraits& traits, Arguments arguments) {
  return traits.copies && std::ranges::any_of(arguments, [](const c10::IValue& argument) {
           return argument.isDevice() && argument.toDevice().is_meta();
         });
}

/// True for a view that counts from the beginning of a storage, and is not known to lie in the storage's first tensor:
/// it may lie elsewhere where that tensor begins elsewhere.
bool counts_from_elsewhere(const OpFacts& facts, Arguments arguments, const TensorTable& table) {
  if (!facts.storage_offset || !arguments[*facts.storage_offset].isInt()) return false;
  if (facts.name != "aten::as_strided") return true;
  const at::Tensor& tensor = arguments[0].toTensor();
  const auto* memory = table.memory_of(tensor);
  if (memory == nullptr) return false;
  return !table.lies_in_first(table.elements_of(tensor), table.id_of(*memory));
}

/// Lengths, indices and shapes that no step gives.
bool few_numbers(const TensorTable& table, Arguments arguments) {
  bool found = false;
  const bool other = any_tensor(arguments, [&](const at::Tensor& tensor) {
    found = true;
    const bool integral = c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
    return !tensor.is_cpu() || !integral || tensor.numel() > kFewNumbers || table.is_deferred(tensor);
  });
  return found && !other;
}

/// A write that the compiler can place: to the elements of one dtype, in one memory that it sees whole.
bool can_write(const TensorTable& table, const at::Tensor& tensor, Arguments arguments) {
  const Elements elements = table.elements_of(tensor);
  if (ir::overlaps_itself(elements.type(tensor.device()))) return false;
  if (any_tensor(arguments, [&](const at::Tensor& read) { return overlaps_in_part(tensor, read); })) return false;
  const auto* memory = table.memory_of(tensor);
  if (memory == nullptr) return true;
  const TraceMemoryId id = table.id_of(*memory);
  const Elements& root = table.value(table.known(id).root).elements;
  if (!lies_inside(elements, root)) {
    return !table.find(tensor).valid() && table.can_be_apart(tensor, /*is_written=*/true);
  }
  if (ir::overlaps_itself(root.type(tensor.device())) || !table.can_write(id)) return false;
  if (any_tensor(arguments, [&](const at::Tensor& read) { return table.reaches_into(id, read); })) return false;
  return std::ranges::all_of(memory->values, [&](TraceValueId value) {
    const Elements& seen = table.value(value).elements;
    return seen.dtype == root.dtype && seen.reading.plain() && lies_inside(seen, root);
  });
}

/// What is read conjugated or negated is known where a step has made the view.
bool is_known_kind(const TensorTable& table, const at::Tensor& tensor) {
  return is_ordinary(tensor) || (is_dense(tensor) && table.find(tensor).valid());
}

/// Tensors over written memory that come to be read conjugated or negated.
bool reads_writes_otherwise(const OpTraits& traits, Arguments arguments, const TensorTable& table) {
  if (!traits.changes_reading || !arguments[0].isTensor()) return false;
  const auto* memory = table.memory_of(arguments[0].toTensor());
  return memory != nullptr && memory->written;
}

/// A tensor that comes to see memory which steps give or write in a way that the compiler does not follow.
bool sees_writes_otherwise(const TensorTable& table, const at::Tensor& tensor) {
  const auto* memory = table.memory_of(tensor);
  if (memory == nullptr || table.lies_in_first(table.elements_of(tensor), table.id_of(*memory))) return false;
  if (!memory->written && table.find(tensor).valid()) return false;
  return !table.can_be_apart(tensor);
}

/// Views that LibTorch makes alike: of the first argument, in its elements, as autograd sees them.
constexpr std::array<std::string_view, 15> kPlainViews{
    "aten::view",   "aten::_reshape_alias", "aten::expand",   "aten::permute",   "aten::transpose",
    "aten::t",      "aten::select",         "aten::slice",    "aten::unsqueeze", "aten::squeeze",
    "aten::unbind", "aten::split",          "aten::diagonal", "aten::unfold",    "aten::split_with_sizes"};

/// What settings decide in operators that are no pointwise ones and no views. Those that are not listed may look at
/// any.
struct ConcernsRow {
  std::string_view base;
  SettingConcerns concerns{};
};
constexpr SettingConcerns kNone{};
constexpr SettingConcerns kProducts{.products = true};
constexpr SettingConcerns kConvolutions{.products = true, .convolutions = true};
constexpr std::array kConcerns{ConcernsRow{"aten::native_layer_norm", kNone},
                               ConcernsRow{"aten::native_layer_norm_backward", kNone},
                               ConcernsRow{"aten::_softmax", kNone},
                               ConcernsRow{"aten::_softmax_backward_data", kNone},
                               ConcernsRow{"aten::_log_softmax", kNone},
                               ConcernsRow{"aten::_log_softmax_backward_data", kNone},
                               ConcernsRow{"aten::cat", kNone},
                               ConcernsRow{"aten::stack", kNone},
                               ConcernsRow{"aten::clone", kNone},
                               ConcernsRow{"aten::copy_", kNone},
                               ConcernsRow{"aten::_to_copy", kNone},
                               ConcernsRow{"aten::roll", kNone},
                               ConcernsRow{"aten::flip", kNone},
                               ConcernsRow{"aten::constant_pad_nd", kNone},
                               ConcernsRow{"aten::zeros_like", kNone},
                               ConcernsRow{"aten::ones_like", kNone},
                               ConcernsRow{"aten::sum", kNone},
                               ConcernsRow{"aten::mean", kNone},
                               ConcernsRow{"aten::amax", kNone},
                               ConcernsRow{"aten::amin", kNone},
                               ConcernsRow{"aten::embedding", kNone},
                               ConcernsRow{"aten::mm", kProducts},
                               ConcernsRow{"aten::bmm", kProducts},
                               ConcernsRow{"aten::addmm", kProducts},
                               ConcernsRow{"aten::baddbmm", kProducts},
                               ConcernsRow{"aten::convolution", kConvolutions},
                               ConcernsRow{"aten::convolution_backward", kConvolutions},
                               ConcernsRow{"aten::native_batch_norm", kConvolutions},
                               ConcernsRow{"aten::native_batch_norm_backward", kConvolutions},
                               ConcernsRow{"aten::cudnn_batch_norm", kConvolutions},
                               ConcernsRow{"aten::cudnn_batch_norm_backward", kConvolutions}};

/// Composite operators whose choice of steps no settings decide but those that the steps themselves look at. Others may
/// choose by any: attention is a fused kernel or two products.
constexpr std::array<std::string_view, 8> kChooseByConcerns{"aten::linear",  "aten::matmul",    "aten::conv1d",
                                                            "aten::conv2d",  "aten::conv3d",    "aten::layer_norm",
                                                            "aten::softmax", "aten::batch_norm"};

SettingConcerns concerns_of(std::string_view base) {
  const auto* row = std::ranges::find(kConcerns, base, &ConcernsRow::base);
  if (row != kConcerns.end()) return row->concerns;
  return SettingConcerns::everything();
}

AboveKernel above(const OpFacts& facts) {
  if (!facts.name.starts_with("aten::")) return AboveKernel::unknown;
  const std::string_view base = passes::base_name(facts.name);
  if (only_looks(facts)) {
    const bool plain = std::ranges::find(kPlainViews, base) != kPlainViews.end() && facts.name != "aten::view.dtype";
    return plain ? AboveKernel::makes_views : AboveKernel::unknown;
  }
  if (facts.mutates.empty()) return AboveKernel::nothing;
  const bool in_place = facts.mutates.size() == 1 && facts.mutates.front() == 0 && base.ends_with('_');
  return in_place && !base.ends_with("__") ? AboveKernel::counts_write : AboveKernel::unknown;
}

}  // namespace

OpTraits::OpTraits(OpFacts known) : facts(std::move(known)) {
  const std::string_view base = passes::base_name(facts.name);
  copies = frontend::copies(facts);
  resizes = frontend::resizes(facts);
  makes_alike = base.ends_with("_like");
  changes_reading = base == "aten::_conj" || base == "aten::_neg_view";
  fills = base == "aten::fill_" || base == "aten::zero_";
  refuses = passes::refuses_by_name(facts.name, ir::Device::Kind::cuda);
  refuses_on_cpu = passes::refuses_by_name(facts.name, ir::Device::Kind::cpu);
  const auto pointwise = ir::find_aten(facts.functional.empty() ? facts.name : facts.functional);
  refuses_divisors = pointwise && ir::row(*pointwise).domain == ir::Domain::nonzero_second &&
                     ir::row(*pointwise).rule != ir::TypeRule::float_like;
  if (!refuses && refuses_on_cpu) data_rule = index_rule_of(base);
  if (!refuses && !refuses_on_cpu && refuses_divisors) data_rule = &divisor_rule();
  if (!pointwise && !only_looks(facts)) concerns = concerns_of(base);
  chooses_by_concerns = std::ranges::find(kChooseByConcerns, base) != kChooseByConcerns.end();
  above = sinter::frontend::above(facts);
  opens = facts.composite && facts.name.starts_with("aten::") && !facts.gives_numbers && !facts.impure &&
          facts.mutates.empty() && CatchComposites::work_of(facts.name) == CatchComposites::Work::none;
}

SettingSet settings_of(SettingConcerns concerns, Arguments arguments) {
  const bool on_cpu = any_tensor(arguments, [](const at::Tensor& tensor) { return tensor.is_cpu(); });
  const bool on_cuda = any_tensor(arguments, [](const at::Tensor& tensor) { return tensor.is_cuda(); });
  if (on_cpu || on_cuda) {
    concerns.on_cpu = on_cpu;
    concerns.on_cuda = on_cuda;
  }
  return SettingSet(concerns);
}

bool views_what_is_there(const OpTraits& traits, Arguments arguments, const TensorTable& table) {
  return only_looks(traits.facts) &&
         !any_tensor(arguments, [&](const at::Tensor& tensor) { return table.lies_in_deferred(tensor); });
}

Way way_of(const OpTraits& traits, Arguments arguments, const TensorTable& table) {
  const OpFacts& facts = traits.facts;
  if (facts.metadata_only || (facts.view_in_place && !traits.resizes)) return Way::transparent;
  if (is_about_metadata(facts, arguments) || gives_metadata(traits, arguments)) return Way::transparent;
  if (any_tensor(arguments, [&](const at::Tensor& tensor) { return !is_known_kind(table, tensor); })) return Way::now;
  if (any_tensor(arguments, [&](const at::Tensor& tensor) { return !table.lasts(tensor); })) return Way::now;
  if (any_tensor(arguments, [&](const at::Tensor& tensor) { return !table.can_be_value(tensor); })) return Way::now;
  if (facts.reads_host || facts.impure || traits.resizes || traits.excluded.load(std::memory_order_relaxed) ||
      sizes_from_data(facts, arguments) || crosses_devices(traits, arguments) || is_for_the_host(traits, arguments)) {
    return Way::now;
  }
  if (draws(facts, arguments) && !draws_in_step(facts, arguments)) return Way::now;
  if (makes_memory_for_the_host(traits, arguments)) return Way::transparent;
  if (may_refuse(traits, arguments)) {
    if (traits.data_rule == nullptr || !accepts_data(*traits.data_rule, arguments, table)) return Way::now;
  }
  if (few_numbers(table, arguments) || counts_from_elsewhere(facts, arguments, table)) return Way::now;
  if (any_tensor(arguments, [&](const at::Tensor& tensor) { return sees_writes_otherwise(table, tensor); }) ||
      reads_writes_otherwise(traits, arguments, table)) {
    return Way::now;
  }
  for (const uint32_t position : written_positions(facts, arguments)) {
    bool can = true;
    for_each_tensor(arguments[position],
                    [&](const at::Tensor& tensor) { can = can && can_write(table, tensor, arguments); });
    if (!can) return Way::now;
  }
  return Way::later;
}

/// Operators that may refuse their data throw where they stand, if the CPU runs them.
bool may_refuse(const OpTraits& traits, Arguments arguments) {
  if (traits.refuses) return true;
  if (!traits.refuses_on_cpu && !traits.refuses_divisors) return false;
  if (any_tensor(arguments, [](const at::Tensor& tensor) { return tensor.is_cuda(); })) return false;
  if (traits.refuses_on_cpu) return true;
  return !divides_by_a_number(arguments) && !any_tensor(arguments, [](const at::Tensor& tensor) {
    return tensor.is_floating_point() || tensor.is_complex();
  });
}

std::optional<GraphBreak> break_of(const OpTraits& traits, Arguments arguments) {
  const auto unsupported = [&](std::string reason, std::string hint) {
    return GraphBreak{.code = BreakCode::unsupported_op,
                      .op = traits.facts.name,
                      .where = {},
                      .reason = std::move(reason),
                      .hint = std::move(hint)};
  };
  if (any_tensor(arguments, [](const at::Tensor& tensor) { return !is_ordinary(tensor); })) {
    return unsupported("takes a tensor that is not dense and strided, on the CPU or a CUDA device", {});
  }
  if (traits.facts.impure) {
    return unsupported("may have effects that its schema does not tell",
                       "define it with at::Tag::pt2_compliant_tag if it has none");
  }
  if (traits.excluded.load(std::memory_order_relaxed)) return unsupported("gives a tensor that no kernel can give", {});
  return std::nullopt;
}

bool fills_what_nobody_reads(const OpTraits& traits, Arguments arguments, const TensorTable& table,
                             const PathNode* at) {
  if (!traits.fills || !arguments[0].isTensor()) return false;
  const at::Tensor& tensor = arguments[0].toTensor();
  if (!tensor.defined() || !is_ordinary(tensor) || !tensor.is_cpu() || tensor.numel() > kFewNumbers) return false;
  if (any_tensor(arguments, [&](const at::Tensor& any) { return any.has_storage() && table.is_deferred(any); })) {
    return false;
  }
  const auto* memory = table.memory_of(tensor);
  if (memory == nullptr) return true;
  const TraceMemoryId id = table.id_of(*memory);
  if (!table.is_alone(id)) return false;
  for (; at->parent != nullptr; at = at->parent) {
    if (only_looks(at->step)) continue;
    bool reads = false;
    const auto note = [&](ir::ValueId value) { reads = reads || table.value({value.index}).memory == id; };
    for (const ir::Arg& argument : at->step.args) ir::for_each_value(argument, note);
    if (reads) return false;
  }
  return true;
}

bool waits_for(const TensorTable& table, const OpFacts& facts, Arguments arguments) {
  if (table.empty()) return false;
  if (any_tensor(arguments,
                 [&](const at::Tensor& tensor) { return tensor.has_storage() && table.is_deferred(tensor); })) {
    return true;
  }
  if (planted(Bug::writes_not_awaited)) return false;
  for (const uint32_t position : written_positions(facts, arguments)) {
    bool met = false;
    for_each_tensor(arguments[position], [&](const at::Tensor& tensor) {
      met = met || (tensor.has_storage() && table.memory_of(tensor) != nullptr);
    });
    if (met) return true;
  }
  return false;
}

}  // namespace sinter::frontend
