#include "compiler/codegen/llvm_blocks.h"

namespace sinter::codegen {

namespace {

std::string phi(std::string_view name, std::string_view type, std::string_view one, std::string_view one_block,
                std::string_view other, std::string_view other_block) {
  return fmt::format("  {} = phi {} [ {}, %{} ], [ {}, %{} ]\n", name, type, one, one_block, other, other_block);
}

}  // namespace

void LlvmBlocks::loop(const Loop& loop, const std::vector<Carried*>& carried,
                      const std::function<std::string(const std::string& index)>& body) {
  const std::string done = loop.name + ".done";
  const Origin before = origin(carried);
  if (loop.may_be_empty) {
    const std::string any = out_.value("icmp slt i64 {}, {}", loop.first, loop.end);
    out_.line("br i1 {}, label %{}, label %{}", any, loop.name, done);
  } else {
    out_.line("br label %{}", loop.name);
  }
  enter(loop.name);
  const size_t head = out_.position();
  const std::string index = out_.fresh();
  std::vector<std::string> names;
  for (Carried* value : carried) names.push_back(value->value = out_.fresh());
  const std::string next = body(index);
  const std::string more = out_.value("icmp slt i64 {}, {}", next, loop.end);
  out_.line("br i1 {}, label %{}, label %{}", more, loop.name, done);

  const Origin after = origin(carried);
  std::string phis = phi(index, "i64", loop.first, before.block, next, after.block);
  for (size_t i = 0; i < carried.size(); ++i) {
    phis += phi(names[i], carried[i]->type, before.values[i], before.block, after.values[i], after.block);
  }
  out_.insert(head, phis);
  enter(done);
  if (loop.may_be_empty) join(before, after, carried);
}

void LlvmBlocks::counted(const Loop& loop, int64_t step, const std::vector<Carried*>& carried,
                         const std::function<void(const std::string& index)>& body) {
  this->loop(loop, carried, [&](const std::string& index) {
    body(index);
    return out_.value("add i64 {}, {}", index, step);
  });
}

void LlvmBlocks::branch(std::string_view name, std::string_view condition, const std::vector<Carried*>& carried,
                        const std::function<void()>& then, const std::function<void()>& otherwise) {
  const Origin before = origin(carried);
  const std::string done = fmt::format("{}.done", name);
  const std::string other = otherwise ? fmt::format("{}.else", name) : done;
  out_.line("br i1 {}, label %{}, label %{}", condition, name, other);
  enter(name);
  then();
  out_.line("br label %{}", done);
  const Origin one = origin(carried);
  for (size_t i = 0; i < carried.size(); ++i) carried[i]->value = before.values[i];
  if (otherwise) {
    enter(other);
    otherwise();
    out_.line("br label %{}", done);
  }
  const Origin two = otherwise ? origin(carried) : before;
  enter(done);
  join(one, two, carried);
}

LlvmBlocks::Origin LlvmBlocks::origin(const std::vector<Carried*>& carried) const {
  Origin from{.block = block_, .values = {}};
  for (const Carried* value : carried) from.values.push_back(value->value);
  return from;
}

void LlvmBlocks::enter(std::string_view block) {
  out_.label(block);
  block_ = block;
}

void LlvmBlocks::join(const Origin& one, const Origin& other, const std::vector<Carried*>& carried) {
  for (size_t i = 0; i < carried.size(); ++i) {
    carried[i]->value = out_.value("phi {} [ {}, %{} ], [ {}, %{} ]", carried[i]->type, one.values[i], one.block,
                                   other.values[i], other.block);
  }
}

}  // namespace sinter::codegen
