#include <cstring>
#include <map>

#include "frontend/guards.h"

namespace sinter::frontend {
namespace {

using detail::Tag;

/// Walks a structure string, giving every leaf a name and a text.
class Walk {
 public:
  explicit Walk(std::string_view structure) : rest_(structure) {
    if (rest_.empty()) return;
    const auto count = header();
    for (int64_t i = 0; i < count; ++i) item("argument " + std::to_string(i));
  }

  [[nodiscard]] const std::map<std::string, std::string>& leaves() const { return leaves_; }

 private:
  int64_t header() {
    int64_t wide = 0;
    std::memcpy(&wide, rest_.data() + 1, 8);
    rest_.remove_prefix(9);
    return wide;
  }

  std::string text() {
    const auto size = static_cast<size_t>(header());
    std::string characters(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return characters;
  }

  void leaf(const std::string& name, std::string value) { leaves_[name] = std::move(value); }

  std::string real() {
    const auto bits = header();
    double value = 0;
    std::memcpy(&value, &bits, 8);
    return std::to_string(value);
  }

  void items(const std::string& name, const char* kind) {
    const auto count = header();
    leaf(name, std::to_string(count) + " " + kind);
    for (int64_t i = 0; i < count; ++i) item(name + "[" + std::to_string(i) + "]");
  }

  void map(const std::string& name) {
    const auto count = header();
    leaf(name, std::to_string(count) + " entries");
    for (int64_t i = 0; i < count; ++i) {
      const auto key = text();
      item(name + "[\"" + key + "\"]");
    }
  }

  void item(const std::string& name) {
    const auto tag = static_cast<Tag>(rest_.front());
    switch (tag) {
      case Tag::tensor:
      case Tag::undefined:
      case Tag::empty:
        rest_.remove_prefix(1);
        return leaf(name, tag == Tag::tensor ? "a tensor" : tag == Tag::undefined ? "an undefined tensor" : "no value");
      case Tag::boolean:
        return leaf(name, header() != 0 ? "true" : "false");
      case Tag::integer:
        return leaf(name, std::to_string(header()));
      case Tag::real:
        return leaf(name, real());
      case Tag::text:
        return leaf(name, "\"" + text() + "\"");
      case Tag::sequence:
      case Tag::tuple:
        return items(name, "items");
      case Tag::map:
        return map(name);
    }
  }

  std::string_view rest_;
  std::map<std::string, std::string> leaves_;
};

}  // namespace

std::vector<GuardMiss> structure_differences(std::string_view was, std::string_view is) {
  const Walk before(was);
  const Walk after(is);
  std::vector<GuardMiss> misses;
  for (const auto& [name, value] : before.leaves()) {
    const auto found = after.leaves().find(name);
    const auto now = found == after.leaves().end() ? std::string("absent") : found->second;
    if (now != value) misses.push_back({name, value, now});
  }
  for (const auto& [name, value] : after.leaves()) {
    if (!before.leaves().contains(name)) misses.push_back({name, "absent", value});
  }
  return misses;
}

}  // namespace sinter::frontend
