#include "runtime/product_choices.h"

#include <gtest/gtest.h>

#include <limits>

namespace sinter::runtime {
namespace {

constexpr double refused = std::numeric_limits<double>::infinity();

TEST(ProductChoices, the_fastest_way_is_taken_but_for_noise) {
  EXPECT_EQ(pick({}), 0u);
  EXPECT_EQ(pick({{"LibTorch", 10}}), 0u);
  EXPECT_EQ(pick({{"LibTorch", 10}, {"cuBLASLt 0", 9.9}, {"cuBLASLt 1", 12}}), 0u) << "as fast but for noise";
  EXPECT_EQ(pick({{"LibTorch", 10}, {"cuBLASLt 0", refused}, {"cuBLASLt 1", 7}, {"cuBLASLt 2", 8}}), 2u);
  EXPECT_EQ(pick({{"LibTorch", 10}, {"cuBLASLt 0", refused}}), 0u);
}

ProductChoice chosen() {
  return {.algorithm = ProductAlgorithm{{std::byte{0}, std::byte{0xfe}, std::byte{7}}, 1024},
          .name = "cuBLASLt 2",
          .origin = "measured",
          .measured = {{"LibTorch", 84.5}, {"cuBLASLt 0", refused}, {"cuBLASLt 2", 61.25}}};
}

TEST(ProductChoices, come_back_from_their_text) {
  const auto found = decode(encode(chosen()));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->algorithm, chosen().algorithm);
  EXPECT_EQ(found->name, "cuBLASLt 2");
  EXPECT_EQ(found->origin, "disk");
  ASSERT_EQ(found->measured.size(), 3u);
  EXPECT_EQ(found->measured[0].name, "LibTorch");
  EXPECT_EQ(found->measured[1].microseconds, refused);
  EXPECT_EQ(found->measured[2].microseconds, 61.25);

  const ProductChoice libtorch{
      .algorithm = std::nullopt, .name = "LibTorch", .origin = "measured", .measured = {{"LibTorch", 3}}};
  const auto again = decode(encode(libtorch));
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->algorithm);
}

TEST(ProductChoices, other_texts_are_none) {
  const std::string text = encode(chosen());
  EXPECT_FALSE(decode(""));
  EXPECT_FALSE(decode(text.substr(0, text.find("code")))) << "the library's way without its code";
  std::string other = text;
  other.replace(other.find("00fe07"), 6, "00fg07");
  EXPECT_FALSE(decode(other));
  EXPECT_FALSE(decode("sinter product choice 2\nchosen LibTorch\n"));
  EXPECT_FALSE(decode(text + "more\n"));
}

TEST(ProductChoices, problems_that_differ_have_different_keys) {
  const ProductProblem problem{.rows = 64,
                               .columns = 32,
                               .terms = 16,
                               .left = {.line = 16},
                               .right = {.turned = true, .line = 16},
                               .bias = true};
  EXPECT_EQ(to_string(problem), "f16[64,16] x f16[16,32] + bias");
  std::vector<ProductProblem> others(10, problem);
  others[0].dtype = ir::DType::bf16;
  others[1].batch = 2;
  others[2].rows = 65;
  others[3].left.line = 24;
  others[4].right.turned = false;
  others[5].bias = false;
  others[6].summand = true;
  others[7].activation = ProductActivation::relu;
  others[8].sums = PartialSums::f32;
  others[9].alignment = 2;
  for (const ProductProblem& other : others) EXPECT_NE(key_of(other), key_of(problem)) << to_string(other);
}

}  // namespace
}  // namespace sinter::runtime
