#include "frontend/model_file/pytree.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "compiler/support/errors.h"
#include "compiler/support/first_line.h"

namespace sinter::frontend {
namespace {

using Json = nlohmann::json;
using Values = std::vector<c10::IValue>;

constexpr int kDeepest = 64;

/// The keys that a context lists, if they are as many texts as there are children. Dataclasses list theirs first.
std::vector<std::string> keys_in(const Json& context, size_t count) {
  if (!context.is_array()) return {};
  const bool texts = std::ranges::all_of(context, [](const Json& key) { return key.is_string(); });
  if (texts && context.size() == count) return context.get<std::vector<std::string>>();
  return context.empty() ? std::vector<std::string>() : keys_in(context.front(), count);
}

Pytree tree_of(const Json& json, int depth) {
  if (depth > kDeepest) throw std::invalid_argument("containers are nested too deeply");
  Pytree tree;
  const Json& type = json.at("type");
  if (type.is_null()) return tree;
  for (const Json& child : json.at("children_spec")) tree.children.push_back(tree_of(child, depth + 1));
  const auto name = type.get<std::string>();
  tree.kind = Pytree::Kind::tuple;
  if (name == "builtins.list") tree.kind = Pytree::Kind::list;
  if (name == "builtins.tuple" || name == "builtins.list" || name == "collections.namedtuple") return tree;
  const Json& context = json.at("context");
  tree.keys = keys_in(context.is_string() ? Json::parse(context.get<std::string>(), nullptr, false) : context,
                      tree.children.size());
  if (tree.keys.size() == tree.children.size() && (name == "builtins.dict" || !tree.keys.empty())) {
    tree.kind = Pytree::Kind::dict;
  }
  return tree;
}

c10::TypePtr common_type(const Values& items) {
  const auto all = [&](auto&& test) { return std::ranges::all_of(items, test); };
  if (all([](const c10::IValue& item) { return item.isTensor(); })) return c10::TensorType::get();
  if (all([](const c10::IValue& item) { return item.isInt(); })) return c10::IntType::get();
  if (all([](const c10::IValue& item) { return item.isDouble(); })) return c10::FloatType::get();
  if (all([](const c10::IValue& item) { return item.isBool(); })) return c10::BoolType::get();
  if (all([](const c10::IValue& item) { return item.isString(); })) return c10::StringType::get();
  return c10::AnyType::get();
}

c10::IValue build(const Pytree& tree, Values::iterator& leaf) {
  if (tree.kind == Pytree::Kind::leaf) return std::move(*leaf++);
  Values items;
  for (const Pytree& child : tree.children) items.push_back(build(child, leaf));
  if (tree.kind == Pytree::Kind::list) return make_list(std::move(items));
  if (tree.kind != Pytree::Kind::dict) return c10::ivalue::Tuple::create(std::move(items));
  return make_dict(tree.keys, std::move(items));
}

[[noreturn]] void differs(const std::string& place, const std::string& expected) {
  throw std::invalid_argument(fmt::format("{} must be {}", place, expected));
}

Values items_of(const Pytree& tree, const c10::IValue& value, const std::string& place) {
  const size_t count = tree.children.size();
  if (value.isTuple()) {
    const auto& elements = value.toTupleRef().elements();
    if (elements.size() == count) return Values(elements.begin(), elements.end());
  } else if (value.isList()) {
    const auto elements = value.toListRef();
    if (elements.size() == count) return Values(elements.begin(), elements.end());
  }
  differs(place, fmt::format("a list or tuple of {}", count));
}

}  // namespace

size_t Pytree::leaves() const {
  if (kind == Kind::leaf) return 1;
  size_t count = 0;
  for (const Pytree& child : children) count += child.leaves();
  return count;
}

Pytree parse_pytree(const std::string& path, const std::string& json) {
  try {
    const Json document = Json::parse(json);  // [protocol, tree]
    if (document.at(0) != 1) throw std::invalid_argument("another protocol than 1");
    return tree_of(document.at(1), 0);
  } catch (const std::exception& error) {  // of the JSON library, or of this reader
    throw UserError(fmt::format("{}: its containers cannot be read: {}", path, first_line(error.what())));
  }
}

c10::IValue make_list(Values items) {
  c10::impl::GenericList list(items.empty() ? c10::TensorType::get() : common_type(items));
  for (c10::IValue& item : items) list.push_back(std::move(item));
  return list;
}

c10::IValue make_dict(const std::vector<std::string>& keys, Values values) {
  c10::impl::GenericDict dict(c10::StringType::get(), common_type(values));
  for (size_t i = 0; i < values.size(); ++i) dict.insert(keys[i], std::move(values[i]));
  return dict;
}

c10::IValue unflatten(const Pytree& tree, Values leaves) {
  auto leaf = leaves.begin();
  return build(tree, leaf);
}

void flatten_along(const Pytree& tree, const c10::IValue& value, const std::string& place, Values& leaves) {
  if (tree.kind == Pytree::Kind::leaf) {
    leaves.push_back(value);
    return;
  }
  if (tree.kind == Pytree::Kind::dict) {
    if (!value.isGenericDict()) differs(place, "a dict");
    const auto dict = value.toGenericDict();
    if (dict.size() != tree.keys.size()) differs(place, fmt::format("a dict of {} entries", tree.keys.size()));
    for (size_t i = 0; i < tree.keys.size(); ++i) {
      const auto found = dict.find(tree.keys[i]);
      if (found == dict.end()) differs(place, "a dict with the key '" + tree.keys[i] + "'");
      flatten_along(tree.children[i], found->value(), place + "['" + tree.keys[i] + "']", leaves);
    }
    return;
  }
  const Values items = items_of(tree, value, place);
  for (size_t i = 0; i < items.size(); ++i) {
    flatten_along(tree.children[i], items[i], fmt::format("{}[{}]", place, i), leaves);
  }
}

}  // namespace sinter::frontend
