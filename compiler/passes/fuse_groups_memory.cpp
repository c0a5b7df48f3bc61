#include <algorithm>

#include "compiler/ir/view_source.h"
#include "compiler/kernel/region.h"
#include "compiler/passes/fuse_groups.h"

/// What joining regions does to memory: the work of both is done where the later one stands.
namespace sinter::passes {

using namespace ir;

namespace {

/// A region that waits over more library calls holds its operands while much else is held.
constexpr size_t far = 16;
/// Bytes that a region may hold for that, and how many times what it gives in the end: a sum of the gradients of
/// several uses of a weight may wait for the last of them, the sum over a batch may not.
constexpr int64_t most_held = int64_t{1} << 16;
constexpr int64_t most_held_times = 8;

}  // namespace

/// True for a region that reads nothing but what the call was given.
bool FuseGroups::reads_what_is_given(NodeId leader) const {
  const auto given = [&](const Arg& arg) {
    if (arg.value() == nullptr) return true;
    const NodeId producer = graph_.value(kernel::region_operand(graph_, *arg.value()).base).producer;
    const Node& node = graph_.node(producer);
    return node.as<Input>() != nullptr || node.as<State>() != nullptr || leader_[producer.index] == leader;
  };
  return std::ranges::all_of(members_[leader.index],
                             [&](NodeId member) { return std::ranges::all_of(graph_.node(member).args, given); });
}

/// True for a region that reads what the call was given, and gives what it leaves behind: it may run at any time.
bool FuseGroups::leaves_all(NodeId leader) const {
  const auto is_left = [&](NodeId consumer) {
    return graph_.node(consumer).as<Write>() != nullptr || leader_[consumer.index] == leader;
  };
  return reads_what_is_given(leader) && std::ranges::all_of(members_[leader.index], [&](NodeId member) {
           return std::ranges::all_of(consumers_[member.index], is_left);
         });
}

/// True where the later of two regions may run when the earlier one does, and what that gives is needed after the later
/// one's place: the memory of both is held at once anyway.
bool FuseGroups::is_kept_past(NodeId earlier, NodeId later) const {
  if (!reads_what_is_given(earlier) || !reads_what_is_given(later)) return false;
  const size_t place = place_of(later);
  return std::ranges::all_of(outputs(members_[earlier.index]), [&](ValueId value) {
    const auto& users = consumers_[graph_.value(value).producer.index];
    return std::ranges::any_of(users, [&](NodeId user) { return position_[user.index] > place; });
  });
}

int64_t FuseGroups::size_of(ValueId value) const {
  const Type& type = graph_.type(value);
  return type.is_static() ? type.numel() * bytes_of(type.dtype) : 0;
}

size_t FuseGroups::place_of(NodeId leader) const { return position_[members_[leader.index].back().index]; }

/// The one that stands first, and the other one.
std::pair<NodeId, NodeId> FuseGroups::by_place(NodeId a, NodeId b) const {
  return place_of(a) < place_of(b) ? std::pair(a, b) : std::pair(b, a);
}

/// What is computed before a library call but needed after it takes memory meanwhile.
bool FuseGroups::call_between(NodeId a, NodeId b) const {
  return calls_before_[place_of(a)] != calls_before_[place_of(b)];
}

/// What changes where one region waits for a later one: operands are held that nothing else needs until then, and
/// results need not be there before.
FuseGroups::Waiting FuseGroups::waiting(NodeId earlier, NodeId later) const {
  const size_t end = place_of(later);
  const auto is_needed_then = [&](ValueId value) {
    const NodeId producer = graph_.value(value).producer;
    const Node& node = graph_.node(producer);
    if (node.as<Input>() != nullptr || node.as<State>() != nullptr || is_output_[value.index]) return true;
    return std::ranges::any_of(consumers_[producer.index], [&](NodeId consumer) {
      const NodeId leader = leader_[consumer.index];
      return leader != earlier && place_of(leader) >= end;
    });
  };
  Waiting waiting;
  std::unordered_set<ValueId> seen;
  for (const NodeId member : members_[earlier.index]) {
    for (const Arg& arg : graph_.node(member).args) {
      if (arg.value() == nullptr) continue;
      const ValueId base = kernel::region_operand(graph_, *arg.value()).base;
      const bool inside = leader_[graph_.value(base).producer.index] == earlier;
      if (!inside && seen.insert(base).second && !is_needed_then(base)) waiting.held += size_of(base);
    }
  }
  for (const ValueId result : outputs(members_[earlier.index])) waiting.given_later += size_of(result);
  return waiting;
}

/// True where two regions stand so far apart that joining them would hold a good deal meanwhile: the sum that is the
/// gradient of a norm's weight, and the update of that weight.
bool FuseGroups::hoards(NodeId a, NodeId b) const {
  const auto [earlier, later] = by_place(a, b);
  if (calls_before_[place_of(later)] - calls_before_[place_of(earlier)] <= far) return false;
  const Waiting change = waiting(earlier, later);
  return change.held > std::max(most_held, most_held_times * change.given_later);
}

/// True where a region that runs at this place computes what tensors hold in the end that others read later: it cannot
/// be written where it belongs then, but has to be copied there.
bool FuseGroups::overwrites_at(size_t place, NodeId region) const {
  const auto reads_later = [&](NodeId reader) {
    return graph_.node(reader).as<Write>() == nullptr && leader_[reader.index] != region &&
           place_of(leader_[reader.index]) > place;
  };
  const auto is_read_later = [&](NodeId consumer) {
    const Node& node = graph_.node(consumer);
    if (node.as<Write>() == nullptr) return false;
    const NodeId owner = graph_.value(view_source(graph_, *node.args[0].value()).base).producer;
    return std::ranges::any_of(consumers_[owner.index], reads_later);
  };
  return std::ranges::any_of(members_[region.index], [&](NodeId member) {
    return std::ranges::any_of(consumers_[member.index], is_read_later);
  });
}

/// True for a value of one region that another one alone needs when it runs: other users stand far before that.
bool FuseGroups::is_for_alone(ValueId value, NodeId region, NodeId user) const {
  if (is_output_[value.index]) return false;
  const size_t end = place_of(user);
  bool is_used = false;
  for (const NodeId consumer : consumers_[graph_.value(value).producer.index]) {
    const NodeId other = leader_[consumer.index];
    is_used = is_used || other == user;
    if (other == user || other == region) continue;
    if (place_of(other) >= end || calls_before_[end] - calls_before_[place_of(other)] <= far) return false;
  }
  return is_used;
}

/// True where the earlier of two regions is needed before the later one's place, so that this would run at its place,
/// and more would be held from there on than what is held for it now: values that a pass computes again where they are
/// needed, lest they are kept, and that could be computed with their operands.
bool FuseGroups::stores_ahead(NodeId a, NodeId b) const {
  const auto [earlier, later] = by_place(a, b);
  if (!call_between(earlier, later)) return false;
  const auto waits = [&](NodeId consumer) {
    const NodeId user = leader_[consumer.index];
    return user != earlier && user != later && place_of(user) < place_of(later) && call_between(user, later);
  };
  const auto is_waited_for = [&](NodeId member) { return std::ranges::any_of(consumers_[member.index], waits); };
  if (std::ranges::none_of(members_[earlier.index], is_waited_for)) return false;
  if (overwrites_at(place_of(earlier), later)) return true;
  int64_t held = 0;
  for (const ValueId value : outputs(members_[later.index])) held += size_of(value);
  for (const ValueId value : outputs(members_[earlier.index])) {
    if (is_for_alone(value, earlier, later)) held -= size_of(value);
  }
  return held > most_held;
}

bool FuseGroups::holds_more(const Edge& edge) const {
  const NodeId a = leader_[edge.producer.index];
  const NodeId b = leader_[edge.consumer.index];
  return a != b && (hoards(a, b) || stores_ahead(a, b));
}

/// True where joining two regions that do not read each other holds less than they do apart, and nobody waits for it.
bool FuseGroups::saves_memory(NodeId a, NodeId b) const {
  const auto [earlier, later] = by_place(a, b);
  const size_t end = place_of(later);
  const auto comes_later = [&](NodeId consumer) {
    const NodeId leader = leader_[consumer.index];
    return leader == earlier || leader == later || place_of(leader) > end;
  };
  const auto may_wait = [&](NodeId member) { return std::ranges::all_of(consumers_[member.index], comes_later); };
  const Waiting change = waiting(earlier, later);
  return change.held < change.given_later && std::ranges::all_of(members_[earlier.index], may_wait);
}

}  // namespace sinter::passes
