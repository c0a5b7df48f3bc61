#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

namespace c10 {
struct IValue;
}

namespace sinter {
struct Kwargs;
}

/// Takes containers of tensors and scalars apart into a list of tensors and a byte string that says how they hang
/// together, and builds them again. Everything else about a call is type-erased.
namespace sinter::detail {

/// First byte of every item of a structure string.
enum class Tag : char {
  tensor = 'T',     ///< the next tensor of the list
  undefined = 'U',  ///< an undefined tensor
  boolean = 'b',    ///< followed by 8 bytes, an int64_t
  integer = 'i',    ///< followed by 8 bytes, an int64_t
  real = 'd',       ///< followed by 8 bytes, a double
  text = 's',       ///< followed by an 8-byte length and the characters
  empty = 'o',      ///< an optional without a value
  sequence = '[',   ///< followed by an 8-byte count and the elements
  tuple = '(',      ///< the same
  map = '{',        ///< the same; every element is a text and a value
};

/// A value taken apart. Points into the value it came from.
struct Flat {
  c10::SmallVector<const at::Tensor*, 8> tensors;
  c10::SmallVector<char, 64> structure;
  const std::type_info* unknown = nullptr;  ///< type of a part that cannot be described

  void tag(Tag tag) { structure.push_back(static_cast<char>(tag)); }
  void tag(Tag kind, const void* eight_bytes) {
    const auto* bytes = static_cast<const char*>(eight_bytes);
    tag(kind);
    structure.append(bytes, bytes + 8);
  }
  void count(Tag kind, size_t size) {
    const auto wide = static_cast<int64_t>(size);
    tag(kind, &wide);
  }
  void text(std::string_view characters) {
    count(Tag::text, characters.size());
    structure.append(characters.begin(), characters.end());
  }
};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class T, size_t N>
inline constexpr bool is_tuple<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;

template <class T>
inline constexpr bool is_map = false;
template <class T, class... More>
inline constexpr bool is_map<std::map<std::string, T, More...>> = true;
template <class T, class... More>
inline constexpr bool is_map<std::unordered_map<std::string, T, More...>> = true;

template <class T>
concept IsTensor = std::derived_from<T, at::Tensor>;
template <class T>
concept IsText = std::convertible_to<const T&, std::string_view>;
template <class T>
concept IsSequence = is_vector<T> || std::same_as<T, c10::ArrayRef<typename T::value_type>>;

template <class T>
concept IsDynamic = std::same_as<T, c10::IValue>;

template <class T>
void flatten(Flat& flat, const T& value);

/// The same for a value whose type is known at run time only: tensors, scalars, strings, None, and lists, tuples and
/// string-keyed dicts of them.
void flatten_dynamic(Flat& flat, const c10::IValue& value);

void flatten_kwargs(Flat& flat, const Kwargs& kwargs);

template <class Map>
void flatten_map(Flat& flat, const Map& map) {
  flat.count(Tag::map, map.size());
  const auto entry = [&flat](const auto& item) {
    flat.text(item.first);
    flatten(flat, item.second);
  };
  if constexpr (std::same_as<Map, std::map<std::string, typename Map::mapped_type>>) {
    std::for_each(map.begin(), map.end(), entry);
  } else {
    std::vector<const typename Map::value_type*> sorted;
    for (const auto& item : map) sorted.push_back(&item);
    std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    for (const auto* item : sorted) entry(*item);
  }
}

template <class T>
void flatten_number(Flat& flat, const T& value) {
  if constexpr (std::floating_point<T>) {
    const auto wide = static_cast<double>(value);
    flat.tag(Tag::real, &wide);
  } else {
    const auto wide = static_cast<int64_t>(value);
    flat.tag(std::same_as<T, bool> ? Tag::boolean : Tag::integer, &wide);
  }
}

/// Appends `value` to `flat`.
template <class T>
void flatten(Flat& flat, const T& value) {
  if constexpr (IsTensor<T>) {
    if (!value.defined()) return flat.tag(Tag::undefined);
    flat.tag(Tag::tensor);
    flat.tensors.push_back(&value);
  } else if constexpr (IsDynamic<T>) {
    flatten_dynamic(flat, value);
  } else if constexpr (std::same_as<T, Kwargs>) {
    flatten_kwargs(flat, value);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    flatten_number(flat, value);
  } else if constexpr (IsText<T>) {
    flat.text(value);
  } else if constexpr (std::same_as<T, std::nullopt_t>) {
    flat.tag(Tag::empty);
  } else if constexpr (is_optional<T>) {
    if (!value) return flat.tag(Tag::empty);
    flatten(flat, *value);
  } else if constexpr (is_map<T>) {
    flatten_map(flat, value);
  } else if constexpr (is_tuple<T>) {
    flat.count(Tag::tuple, std::tuple_size_v<T>);
    std::apply([&flat](const auto&... items) { (flatten(flat, items), ...); }, value);
  } else if constexpr (IsSequence<T>) {
    flat.count(Tag::sequence, value.size());
    for (const auto& item : value) flatten(flat, item);
  } else {
    flat.unknown = &typeid(T);
  }
}

/// What a replay hands back: the tensors, and the structure of the result they belong to.
struct Replay {
  c10::SmallVector<at::Tensor, 4> tensors;
  std::string_view structure;
  std::string own_structure;          ///< where `structure` points when it holds numbers of this very call
  std::shared_ptr<const void> owner;  ///< of what `structure` points to otherwise: others may drop it meanwhile
};

/// Reads a result out of a replay, item by item.
class Reader {
 public:
  explicit Reader(Replay& replay) : tensor_(replay.tensors.begin()), cursor_(replay.structure.data()) {}

  [[nodiscard]] Tag peek() const { return static_cast<Tag>(*cursor_); }
  void skip_tag() { ++cursor_; }
  at::Tensor tensor() {
    if (static_cast<Tag>(*cursor_++) == Tag::undefined) return {};
    return std::move(*tensor_++);
  }
  template <class Wide>
  Wide number() {
    Wide wide{};
    std::memcpy(&wide, cursor_ + 1, 8);
    cursor_ += 9;
    return wide;
  }
  std::string text() {
    const auto size = static_cast<size_t>(number<int64_t>());
    cursor_ += size;
    return {cursor_ - size, size};
  }

 private:
  at::Tensor* tensor_;
  const char* cursor_;
};

/// True for the types that `read` can build.
template <class T>
inline constexpr bool is_result =
    IsTensor<T> || IsDynamic<T> || std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string>;
template <class T>
inline constexpr bool is_result<std::optional<T>> = is_result<T>;
template <class T, class A>
inline constexpr bool is_result<std::vector<T, A>> = is_result<T>;
template <class T, size_t N>
inline constexpr bool is_result<std::array<T, N>> = is_result<T>;
template <class A, class B>
inline constexpr bool is_result<std::pair<A, B>> = is_result<A> && is_result<B>;
template <class... T>
inline constexpr bool is_result<std::tuple<T...>> = (is_result<T> && ...);
template <class T, class... More>
inline constexpr bool is_result<std::map<std::string, T, More...>> = is_result<T>;
template <class T, class... More>
inline constexpr bool is_result<std::unordered_map<std::string, T, More...>> = is_result<T>;

template <class T>
T read(Reader& reader);

/// Lists have the type of their items where those are of one, else Any.
c10::IValue read_dynamic(Reader& reader);

template <class T, size_t... Index>
T read_tuple(Reader& reader, std::index_sequence<Index...> /*positions*/) {
  reader.number<int64_t>();
  return T{read<std::tuple_element_t<Index, T>>(reader)...};  // braces: evaluated left to right
}

template <class T>
T read_items(Reader& reader) {
  T result;
  for (auto left = reader.number<int64_t>(); left > 0; --left) {
    if constexpr (is_map<T>) {
      auto key = reader.text();
      result.emplace(std::move(key), read<typename T::mapped_type>(reader));
    } else {
      result.push_back(read<typename T::value_type>(reader));
    }
  }
  return result;
}

/// Builds a result from the reader's next items.
template <class T>
T read(Reader& reader) {
  if constexpr (IsTensor<T>) {
    return T(reader.tensor());
  } else if constexpr (IsDynamic<T>) {
    return read_dynamic(reader);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(reader.number<double>());
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    return static_cast<T>(reader.number<int64_t>());
  } else if constexpr (std::same_as<T, std::string>) {
    return reader.text();
  } else if constexpr (is_optional<T>) {
    if (reader.peek() != Tag::empty) return read<typename T::value_type>(reader);
    reader.skip_tag();
    return std::nullopt;
  } else if constexpr (is_tuple<T>) {
    return read_tuple<T>(reader, std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return read_items<T>(reader);
  }
}

}  // namespace sinter::detail
