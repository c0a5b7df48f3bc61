#include "runtime/match_names.h"

#include <gtest/gtest.h>

namespace sinter::test {
namespace {

using Names = std::vector<std::string>;
using Partners = std::vector<std::optional<size_t>>;

TEST(MatchNames, equal_ones_are_matched_in_order_as_many_as_can_be) {
  const Names names{"copy", "a", "b", "a"};
  const Names others{"a", "c", "b", "a"};
  EXPECT_EQ(runtime::match_names(names, others), Partners({std::nullopt, 0, 2, 3}));
}

TEST(MatchNames, nothing_has_no_partner) {
  EXPECT_TRUE(runtime::match_names({}, Names{"a"}).empty());
  EXPECT_EQ(runtime::match_names(Names{"a"}, {}), Partners({std::nullopt}));
}

TEST(MatchNames, very_long_lists_are_matched_one_behind_the_other) {
  const Names many(20000, "a");
  const Partners partners = runtime::match_names(many, many);
  EXPECT_EQ(partners.front(), 0U);
  EXPECT_EQ(partners.back(), many.size() - 1);
}

}  // namespace
}  // namespace sinter::test
