#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/llvm_writer.h"

namespace sinter::codegen {

/// A value that loops and branches may change: what holds it where the writer stands.
struct Carried {
  std::string type;
  std::string value;
};

/// Writes loops and branches as basic blocks, and the phis of the values they carry. Names of blocks are unique in the
/// function; what follows a block NAME stands in NAME.done.
class LlvmBlocks {
 public:
  /// The writer stands in block `block`.
  LlvmBlocks(LlvmWriter& out, std::string block) : out_(out), block_(std::move(block)) {}

  struct Loop {
    std::string name;
    std::string first, end;  ///< i64 operands
    bool may_be_empty = false;
  };
  /// Runs `body` for index = first and what it answers, while that is below `end`. At least once unless the loop may be
  /// empty.
  void loop(const Loop& loop, const std::vector<Carried*>& carried,
            const std::function<std::string(const std::string& index)>& body);
  /// The same with a fixed step.
  void counted(const Loop& loop, int64_t step, const std::vector<Carried*>& carried,
               const std::function<void(const std::string& index)>& body);

  /// Runs `then` where an i1 is true, else `otherwise`, which may be null.
  void branch(std::string_view name, std::string_view condition, const std::vector<Carried*>& carried,
              const std::function<void()>& then, const std::function<void()>& otherwise);

 private:
  /// Where the writer comes to a join from: the block, and what the carried values are there.
  struct Origin {
    std::string block;
    std::vector<std::string> values;
  };
  [[nodiscard]] Origin origin(const std::vector<Carried*>& carried) const;
  void enter(std::string_view block);
  /// Phis at the head of the current block; the carried values become these.
  void join(const Origin& one, const Origin& other, const std::vector<Carried*>& carried);

  LlvmWriter& out_;
  std::string block_;
};

}  // namespace sinter::codegen
