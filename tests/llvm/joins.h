#pragma once

#include <span>
#include <string>
#include <string_view>

/// Kernels that read operands of joins under guards, for every back end.
namespace sinter::test {

/// A graph on device {D} with tensors of dtype {T}.
struct JoinBody {
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] std::span<const JoinBody> join_bodies();

[[nodiscard]] std::string text_of(const JoinBody& body, std::string_view dtype, std::string_view device);

}  // namespace sinter::test
