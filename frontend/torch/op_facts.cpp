#include "frontend/torch/op_facts.h"

#include <ATen/core/enum_tag.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "frontend/torch/convert.h"

namespace sinter::frontend {
namespace {

using std::string_view;

/// Operators whose result is no tensor, yet known without looking at data.
constexpr std::array<string_view, 22> kMetadataOnly{"aten::is_same_size",
                                                    "aten::_fused_sdp_choice",
                                                    "aten::is_pinned",
                                                    "aten::is_set_to",
                                                    "aten::can_cast",
                                                    "aten::result_type",
                                                    "aten::promote_types",
                                                    "aten::size",
                                                    "aten::stride",
                                                    "aten::sym_size",
                                                    "aten::sym_stride",
                                                    "aten::sym_numel",
                                                    "aten::sym_storage_offset",
                                                    "aten::sym_is_contiguous",
                                                    "aten::is_contiguous",
                                                    "aten::dense_dim",
                                                    "aten::sparse_dim",
                                                    "aten::is_coalesced",
                                                    "aten::is_non_overlapping_and_dense",
                                                    "aten::_cufft_get_plan_cache_size",
                                                    "aten::_has_compatible_shallow_copy_type",
                                                    "aten::_debug_has_internal_overlap"};

/// Namespaces whose operators do what their schemas say.
constexpr std::array<string_view, 3> kPlainNamespaces{"aten", "prims", "prim"};
constexpr std::array<string_view, 5> kCollectives{"c10d", "_c10d_functional", "_c10d_functional_autograd", "symm_mem",
                                                  "_dtensor"};

constexpr std::array<string_view, 4> kUninitialised{"aten::empty", "aten::empty_strided", "aten::empty_like",
                                                    "aten::new_empty"};

/// Operators that give nothing, and throw where they do not like the data they look at.
constexpr std::array<string_view, 1> kChecks{"aten::_linalg_check_errors"};

/// Operators whose results' sizes depend on data, untagged.
constexpr std::array<string_view, 1> kUntaggedSizes{"aten::_pack_padded_sequence"};

template <size_t N>
bool holds(const std::array<string_view, N>& names, string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool mentions_tensor(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  for (const auto& inner : type.containedTypes()) {
    if (mentions_tensor(*inner)) return true;
  }
  return false;
}

bool is_tensor_result(const c10::Argument& result) { return mentions_tensor(*result.type()); }

bool writes(const c10::Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

/// True when `candidate` takes the arguments of `schema` that are not outputs, in the same order, and writes none.
bool is_functional_form(const c10::FunctionSchema& schema, const c10::FunctionSchema& candidate) {
  std::vector<const c10::Argument*> wanted;
  for (const c10::Argument& argument : schema.arguments()) {
    if (!argument.is_out()) wanted.push_back(&argument);
  }
  const auto& offered = candidate.arguments();
  if (offered.size() != wanted.size() || candidate.returns().empty()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (writes(offered[i]) || *offered[i].type() != *wanted[i]->type()) return false;
  }
  return true;
}

/// The name of an overload's functional form, tried in the order in which ATen names them.
std::string functional_form(const c10::FunctionSchema& schema) {
  std::string base = schema.name();
  const bool in_place = base.ends_with('_') && !base.ends_with("__");
  if (in_place) base.pop_back();
  std::string overload = schema.overload_name();
  if (overload.ends_with("_out")) overload.resize(overload.size() - 4);
  for (const char* const other : {overload.c_str(), "", "Tensor", "Scalar", "int"}) {
    const std::string candidate = other;
    const auto found = c10::Dispatcher::singleton().findSchema({base, candidate});
    if (found && is_functional_form(schema, found->schema())) {
      return candidate.empty() ? base : base + "." + candidate;
    }
  }
  return {};
}

bool takes_generator(const c10::FunctionSchema& schema) {
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.type()->str().find("Generator") != std::string::npos) return true;
  }
  return false;
}

bool is_impure(const c10::OperatorHandle& op, const c10::FunctionSchema& schema, bool writes_something) {
  const string_view name_space = string_view(schema.name()).substr(0, schema.name().find("::"));
  if (schema.returns().empty() && !writes_something) return !holds(kChecks, schema.name());
  if (holds(kCollectives, name_space)) return true;
  return !holds(kPlainNamespaces, name_space) && !op.hasTag(at::Tag::pt2_compliant_tag);
}

bool has_composite_kernel(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

OpFacts look_up(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  OpFacts facts;
  facts.name = schema.name();
  if (!schema.overload_name().empty()) facts.name += "." + schema.overload_name();
  for (uint32_t i = 0; i < schema.arguments().size(); ++i) {
    if (writes(schema.arguments()[i])) facts.mutates.push_back(i);
    const std::string& name = schema.arguments()[i].name();
    if (name == "dropout_p" || name == "dropout") facts.dropout = i;
    if (name == "train" || name == "training") facts.train = i;
    if (name == "storage_offset") facts.storage_offset = i;
  }
  if (!facts.mutates.empty()) facts.functional = functional_form(schema);
  const bool takes_tensor = std::any_of(schema.arguments().begin(), schema.arguments().end(),
                                        [](const auto& argument) { return mentions_tensor(*argument.type()); });
  const auto& returns = schema.returns();
  facts.gives_numbers = !returns.empty() && std::none_of(returns.begin(), returns.end(), is_tensor_result);
  facts.composite = has_composite_kernel(op);
  facts.random = op.hasTag(at::Tag::nondeterministic_seeded) || takes_generator(schema);
  facts.impure = is_impure(op, schema, !facts.mutates.empty());
  facts.view_in_place = op.hasTag(at::Tag::inplace_view);
  facts.declares_aliases =
      std::ranges::any_of(returns, [](const c10::Argument& result) { return result.alias_info() != nullptr; });
  facts.metadata_only = holds(kMetadataOnly, schema.name());
  facts.reads_host = !facts.metadata_only && (op.hasTag(at::Tag::data_dependent_output) || facts.gives_numbers ||
                                              holds(kChecks, schema.name()));
  facts.sizes_from_data = op.hasTag(at::Tag::dynamic_output_shape) || holds(kUntaggedSizes, schema.name());
  facts.uninitialised = holds(kUninitialised, schema.name());
  facts.makes_cpu_memory =
      facts.mutates.empty() &&
      (facts.uninitialised || !takes_tensor || schema.name().ends_with("_like") || schema.name() == "aten::clone");
  return facts;
}

/// What the schema does not say.
std::vector<uint32_t> unsaid_writes(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments) {
  struct Row {
    string_view name;
    std::array<uint32_t, 2> writes;
    std::optional<uint32_t> only_when;  ///< position of a flag
  };
  static constexpr std::array<Row, 7> rows{{{"aten::native_batch_norm", {3, 4}, 5},
                                            {"aten::native_batch_norm.out", {3, 4}, 5},
                                            {"aten::cudnn_batch_norm", {3, 4}, 5},
                                            {"aten::miopen_batch_norm", {3, 4}, 5},
                                            {"aten::batch_norm_update_stats", {1, 2}, std::nullopt},
                                            {"aten::batch_norm_gather_stats", {3, 4}, std::nullopt},
                                            {"aten::batch_norm_gather_stats_with_counts", {3, 4}, std::nullopt}}};
  const auto* found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == facts.name; });
  if (found == rows.end()) return {};
  if (found->only_when && !arguments[*found->only_when].toBool()) return {};
  return {found->writes.begin(), found->writes.end()};
}

bool is_mask(const c10::IValue& index) {
  bool mask = false;
  for_each_tensor(index, [&](const at::Tensor& tensor) {
    mask = mask || tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
  });
  return mask;
}

}  // namespace

const OpFacts& OpFactsCache::of(const c10::OperatorHandle& op) {
  const auto [entry, added] = facts_.try_emplace(&op.schema());
  if (added) entry->second = look_up(op);
  return entry->second;
}

bool draws(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments) {
  const auto holds_at = [&arguments](std::optional<uint32_t> position, const auto& test) {
    return position && test(arguments[*position]);
  };
  const bool keeps_all =
      holds_at(facts.dropout, [](const c10::IValue& p) { return p.isDouble() && p.toDouble() == 0; }) ||
      holds_at(facts.train, [](const c10::IValue& train) { return train.isBool() && !train.toBool(); });
  return facts.random && !keeps_all;
}

std::vector<uint32_t> written_positions(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments) {
  std::vector<uint32_t> positions = facts.mutates;
  for (const uint32_t position : unsaid_writes(facts, arguments)) positions.push_back(position);
  std::erase_if(positions, [&](uint32_t position) {
    const c10::IValue& argument = arguments[position];
    return argument.isNone() || (argument.isTensor() && !argument.toTensor().defined());
  });
  return positions;
}

bool sizes_from_data(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments) {
  if (!facts.sizes_from_data) return false;
  if (facts.name == "aten::index.Tensor") return is_mask(arguments[1]);
  if (facts.name == "aten::repeat_interleave.Tensor") return arguments[1].isNone();
  return true;
}

bool only_looks(const OpFacts& facts) { return facts.declares_aliases && facts.mutates.empty(); }

bool copies(const OpFacts& facts) {
  constexpr std::array<string_view, 4> names{"_to_copy", "copy", "copy_", "_copy_from"};
  const string_view base = string_view(facts.name).substr(facts.name.find("::") + 2);
  return holds(names, base.substr(0, base.find('.')));
}

bool resizes(const OpFacts& facts) {
  return facts.name.starts_with("aten::resize") || facts.name.starts_with("aten::set_");
}

}  // namespace sinter::frontend
