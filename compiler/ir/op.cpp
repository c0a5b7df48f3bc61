#include "compiler/ir/op.h"

#include <string>
#include <unordered_map>

#include "compiler/ir/op_table_derived.h"
#include "compiler/ir/op_table_native.h"
#include "compiler/support/errors.h"

namespace sinter::ir {

namespace {

constexpr size_t native_count = table::native_rows.size();

constexpr auto rows = []<size_t... N, size_t... D>(std::index_sequence<N...>, std::index_sequence<D...>) {
  return std::array{table::native_rows[N]..., table::derived_rows[D]...};
}(std::make_index_sequence<native_count>(), std::make_index_sequence<table::derived_rows.size()>());

using NameTable = std::unordered_map<std::string_view, OpId>;

OpId id_of(size_t index) { return OpId{static_cast<uint32_t>(index)}; }

const NameTable& ir_names() {
  static const NameTable names = [] {
    NameTable made;
    for (size_t i = 0; i < rows.size(); ++i) made.emplace(rows[i].name, id_of(i));
    return made;
  }();
  return names;
}

const NameTable& aten_names() {
  static const NameTable names = [] {
    NameTable made;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (std::string_view name : rows[i].aten) made.emplace(name, id_of(i));
    }
    return made;
  }();
  return names;
}

std::optional<OpId> lookup(const NameTable& names, std::string_view name) {
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

/// A row that names this overload, else one of the base name.
std::optional<OpId> find_overload(const std::string& base, std::string_view overload) {
  if (!overload.empty()) {
    if (const auto found = lookup(aten_names(), base + std::string(overload))) return found;
  }
  return lookup(aten_names(), base);
}

}  // namespace

std::span<const OpRow> op_table() { return rows; }

const OpRow& row(OpId op) { return rows[op.index]; }

std::optional<OpId> find_op(std::string_view name) { return lookup(ir_names(), name); }

std::optional<OpId> find_aten(std::string_view aten_name) {
  const size_t dot = std::min(aten_name.find('.'), aten_name.size());
  const std::string base(aten_name.substr(0, dot));
  const std::string_view overload = aten_name.substr(dot);
  if (const auto found = find_overload(base, overload)) return found;
  if (!base.ends_with('_')) return std::nullopt;
  return find_overload(base.substr(0, base.size() - 1), overload);
}

OpId op_named(std::string_view name) {
  if (const auto found = find_op(name)) return *found;
  throw InternalError("op table", "no row is named " + std::string(name));
}

}  // namespace sinter::ir
