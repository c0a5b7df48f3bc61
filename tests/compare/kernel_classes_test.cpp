#include "bench/compare/kernel_classes.h"

#include <gtest/gtest.h>

namespace sinter::test {
namespace {

using bench::class_of_kernel;
using bench::KernelClass;

TEST(KernelClasses, a_library_kernel_is_known_by_what_it_is_for) {
  EXPECT_EQ(class_of_kernel("sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc"), KernelClass::matrix);
  EXPECT_EQ(class_of_kernel("nvjet_sm90_hsh_128x8_64x12_2x1_v_bz_splitK_bias_TNT"), KernelClass::matrix);
  EXPECT_EQ(class_of_kernel("cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, 2>"),
            KernelClass::layout);
  EXPECT_EQ(class_of_kernel("cudnn::bn_fw_tr_1C11_kernel_NCHW<__half2, float, 512, true, 1>"), KernelClass::norm);
  EXPECT_EQ(class_of_kernel("at::native::max_pool_forward_nhwc<c10::Half, int>"), KernelClass::pool);
  EXPECT_EQ(class_of_kernel("pytorch_flash::flash_fwd_kernel<...>"), KernelClass::attention);
  EXPECT_EQ(class_of_kernel("at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"),
            KernelClass::pointwise);
  EXPECT_EQ(class_of_kernel("memcpy device to device"), KernelClass::copy);
  EXPECT_EQ(class_of_kernel("Memcpy DtoD (Device -> Device)"), KernelClass::copy);
}

TEST(KernelClasses, generated_kernels_of_sinter_and_of_triton_are_told_apart_by_their_operations) {
  EXPECT_EQ(class_of_kernel("fused_add_maximum"), KernelClass::pointwise);
  EXPECT_EQ(class_of_kernel("fused_cast"), KernelClass::layout);
  EXPECT_EQ(class_of_kernel("fused_attention"), KernelClass::attention);
  EXPECT_EQ(class_of_kernel("triton_poi_fused__to_copy_relu_3"), KernelClass::pointwise);
  EXPECT_EQ(class_of_kernel("triton_red_fused_native_batch_norm_backward_7"), KernelClass::norm);
  EXPECT_EQ(class_of_kernel("strange"), KernelClass::other);
}

TEST(KernelClasses, side_by_side_adds_up_each_class_of_each_contender) {
  const auto kernel = [](const char* name, int count, double us) {
    return nlohmann::json{{"name", name}, {"count", count}, {"us", us}};
  };
  const std::string text = bench::kernels_side_by_side(
      {{"eager", {kernel("gemm_a", 2, 10), kernel("gemm_b", 1, 5.5), kernel("memset", 1, 0.5)}},
       {"compiled", {kernel("fused_cast", 3, 4), kernel("gemm_a", 2, 9)}}});
  EXPECT_NE(text.find("matrix                15.5         3             9.0         2"), std::string::npos) << text;
  EXPECT_NE(text.find("layout                 0.0         0             4.0         3"), std::string::npos) << text;
  EXPECT_NE(text.find("all                   16.0         4            13.0         5"), std::string::npos) << text;
  EXPECT_EQ(text.find("attention"), std::string::npos) << "a class that nobody has is left out";
  EXPECT_LT(text.find("gemm_a"), text.find("gemm_b")) << "the longer one first";
}

}  // namespace
}  // namespace sinter::test
