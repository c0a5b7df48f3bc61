#include "runtime/same_once.h"

#include <algorithm>
#include <unordered_map>

namespace sinter::runtime {
namespace {

/// Follows the steps of two plans side by side; buffers correspond by where they first appear.
class Matcher {
 public:
  Matcher(const Plan& plan, const Plan& other) : plan_(plan), other_(other) {}

  bool steps() {
    if (plan_.device != other_.device) return false;
    return std::equal(plan_.once.begin(), plan_.once.end(), other_.once.begin(), other_.once.end(),
                      [this](const Step& a, const Step& b) { return same(a, b); });
  }

  [[nodiscard]] std::optional<std::vector<std::pair<BufferId, BufferId>>> frozen() const {
    std::vector<std::pair<BufferId, BufferId>> pairs;
    for (uint32_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].kind != BufferKind::frozen) continue;
      const auto known = pairs_.find(BufferId{i});
      if (known == pairs_.end()) return std::nullopt;
      pairs.emplace_back(*known);
    }
    return pairs;
  }

 private:
  bool same(BufferId a, BufferId b) {
    if (!a.valid() || !b.valid()) return a.valid() == b.valid();
    const auto [known, added] = pairs_.try_emplace(a, b);
    if (!added) return known->second == b;
    const Buffer& x = plan_.buffers[a.index];
    const Buffer& y = other_.buffers[b.index];
    if (x.kind != y.kind || x.type != y.type) return false;
    switch (x.kind) {
      case BufferKind::state:
        return x.index == y.index;
      case BufferKind::view:
        return x.offset == y.offset && same(x.base, y.base);
      case BufferKind::in_place:
        return same(x.base, y.base);
      case BufferKind::input:
        return false;
      default:
        return true;
    }
  }

  bool same(const Step& a, const Step& b) {
    if (a.index() != b.index()) return false;
    if (const auto* launch = std::get_if<Launch>(&a)) return same(*launch, std::get<Launch>(b));
    if (const auto* run = std::get_if<RunCall>(&a)) {
      return same(plan_.calls[run->call], other_.calls[std::get<RunCall>(b).call]);
    }
    if (const auto* allocate = std::get_if<Allocate>(&a)) return same(allocate->buffer, std::get<Allocate>(b).buffer);
    if (const auto* bind = std::get_if<Bind>(&a)) return same(bind->buffer, std::get<Bind>(b).buffer);
    if (const auto* release = std::get_if<Release>(&a)) return same(release->buffer, std::get<Release>(b).buffer);
    return true;
  }

  bool same(const Launch& a, const Launch& b) {
    const KernelSource& x = plan_.kernels[a.kernel];
    const KernelSource& y = other_.kernels[b.kernel];
    return x.text == y.text && x.sizes == y.sizes && x.numel == y.numel &&
           std::equal(
               a.args.begin(), a.args.end(), b.args.begin(), b.args.end(),
               [this](const KernelArg& p, const KernelArg& q) { return p.pass == q.pass && same(p.buffer, q.buffer); });
  }

  bool same(const ExternCall& a, const ExternCall& b) {
    return a.op == b.op && !a.random &&
           std::equal(a.args.begin(), a.args.end(), b.args.begin(), b.args.end(),
                      [this](const ir::Arg& p, const ir::Arg& q) { return same(p, q); }) &&
           std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(),
                      [this](BufferId p, BufferId q) { return same(p, q); });
  }

  bool same(const ir::Arg& a, const ir::Arg& b) {
    const auto* value = a.value();
    const auto* other_value = b.value();
    if (value != nullptr && other_value != nullptr) return same(BufferId{value->index}, BufferId{other_value->index});
    const ir::ArgList* list = a.list();
    const ir::ArgList* other_list = b.list();
    if (list == nullptr || other_list == nullptr) return a == b;
    return std::equal(list->begin(), list->end(), other_list->begin(), other_list->end(),
                      [this](const ir::Arg& p, const ir::Arg& q) { return same(p, q); });
  }

  const Plan& plan_;
  const Plan& other_;
  std::unordered_map<BufferId, BufferId> pairs_;
};

}  // namespace

std::optional<std::vector<std::pair<BufferId, BufferId>>> same_once(const Plan& plan, const Plan& other) {
  Matcher matcher(plan, other);
  if (!matcher.steps()) return std::nullopt;
  return matcher.frozen();
}

}  // namespace sinter::runtime
