#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/llvm/harness.h"
#include "tests/llvm/rows.h"

/// Kernels that reduce, compiled and compared with the interpreter.
namespace sinter::test {
namespace {

constexpr int64_t room = 80;  ///< behind the last element, which no kernel may touch
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// At every width, with sizes in the text and as parameters.
void expect_agreement(const RowTrial& trial) {
  for (const int width : host_widths()) {
    for (const bool generic : {false, true}) {
      RowTrial run = trial;
      run.kernel.generic_sizes = generic;
      run_compiled(run.kernel, run.params, width);
      const std::string differs = difference(run);
      ASSERT_EQ(differs, "") << width << (generic ? " generic\n" : "\n")
                             << codegen::generate_llvm(run.kernel, {.vector_bits = width}).text;
    }
  }
}

TEST(RowKernels, give_what_the_interpreter_gives) {
  uint64_t seed = 0;
  for_each_row_trial("cpu", [&](std::string name, const std::string& text) {
    expect_agreement(row_trial(std::move(name), text, ++seed, room));
  });
}

/// A product whose left operand is an image in another order, and one whose result becomes an image.
TEST(RowKernels, products_beside_images_in_another_order) {
  expect_agreement(
      row_trial("of_an_image",
                R"(graph @of_an_image on cpu (%x: f32[4,2,4,4]{32,1,8,2}, %w: f32[10,32], %b: f32[10]) -> (%s, %y) {
    %n = lt %x, 0.0 : b8[4,2,4,4]{32,1,8,2}
    %r = where %n, 0.0, %x : f32[4,2,4,4]{32,1,8,2}
    %c = cast %r : f32[4,2,4,4]
    %a = view %c + 0 : f32[1,4,1,32]{1,32,1,1}
    %v = view %w + 0 : f32[1,1,10,32]{1,1,32,1}
    %m = mul %a, %v : f32[1,4,10,32]{128,32,128,1}
    %s = reduce sum %m over 3 : f32[1,4,10,1]
    %o = view %s + 0 : f32[4,10]
    %y = add %o, %b : f32[4,10]
  })",
                11, room));
  expect_agreement(
      row_trial("to_an_image",
                R"(graph @to_an_image on cpu (%x: f32[4,2,4,4]{32,1,8,2}, %g: f32[4,10], %w: f32[10,32]) -> (%r, %t) {
    %n = lt %x, 0.0 : b8[4,2,4,4]{32,1,8,2}
    %z = where %n, 0.0, %x : f32[4,2,4,4]{32,1,8,2}
    %r = cast %z : f32[4,2,4,4]
    %a = view %g + 0 : f32[1,4,1,10]{1,10,1,1}
    %v = view %w + 0 : f32[1,1,32,10]{1,1,1,32}
    %m = mul %a, %v : f32[1,4,32,10]{128,32,1,128}
    %s = reduce sum %m over 3 : f32[1,4,32,1]
    %l = le %z, 0.0 : b8[4,2,4,4]{32,1,8,2}
    %o = view %s + 0 : f32[4,2,4,4]
    %t = where %l, 0.0, %o : f32[4,2,4,4]{32,1,8,2}
  })",
                12, room));
}

TEST(RowKernels, softmax_of_infinities_and_nan_is_the_interpreters) {
  for (const auto& body : {row_bodies().front(), row_bodies()[3]}) {
    const RowSizes sizes{7, 37};
    const auto change = [&](ir::HostTensor& input) {
      auto& elements = *input.storage;
      const auto at = [&](int64_t row, int64_t point) -> ir::RefValue& {
        const bool across = body.name != row_bodies().front().name;
        return elements[static_cast<size_t>(across ? point * sizes.rows + row : row * sizes.length + point)];
      };
      at(0, 5) = nan;
      at(1, 36) = infinity;
      for (int64_t p = 0; p < sizes.length; ++p) at(2, p) = -infinity;
      for (int64_t p = 1; p < sizes.length; ++p) at(3, p) = -infinity;
      at(4, 36) = nan;
      at(5, 0) = infinity;
      at(5, 1) = infinity;
    };
    expect_agreement(row_trial(body.name, text_of(body, sizes, "f32", "f32", "cpu"), 3, room, change));
  }
}

TEST(RowKernels, extremes_keep_nan_wherever_it_stands) {
  const std::string text = R"(graph @extremes on cpu (%x: f32[41,41]) -> (%a, %b) {
    %a = reduce max %x over 1 : f32[41,1]
    %b = reduce min %x over 1 : f32[41,1]
  })";
  const auto change = [](ir::HostTensor& input) {
    for (size_t row = 0; row < 40; ++row) (*input.storage)[row * 41 + row] = nan;
  };
  expect_agreement(row_trial("extremes", text, 5, room, change));
}

TEST(RowKernels, integers_wrap_and_have_extremes) {
  for (const char* dtype : {"i64", "i32", "i16", "i8", "u8"}) {
    for (const char* layout : {"[9,37]", "[9,37]{1,9}"}) {
      const std::string text = fmt::format(R"(graph @integers on cpu (%x: {0}{1}) -> (%a, %b, %c, %d) {{
        %a = reduce sum %x over 1 : {0}[9,1]
        %b = reduce prod %x over 1 : {0}[9,1]
        %c = reduce max %x over 1 : {0}[9,1]
        %d = reduce min %x over 1 : {0}[9,1]
      }})",
                                           dtype, layout);
      expect_agreement(row_trial(fmt::format("integers {}{}", dtype, layout), text, 7, room));
    }
  }
}

TEST(RowKernels, booleans_are_joined) {
  for (const char* layout : {"[70,130]", "[70,130]{1,70}"}) {
    const std::string text = fmt::format(R"(graph @booleans on cpu (%x: b8{}) -> (%a, %b) {{
      %a = reduce any %x over 1 : b8[70,1]
      %b = reduce all %x over 1 : b8[70,1]
    }})",
                                         layout);
    const auto change = [](ir::HostTensor& input) {
      auto& elements = *input.storage;
      for (size_t e = 0; e < elements.size(); ++e) elements[e] = int64_t{e % 35 < 20};
      for (size_t e = 0; e < 130; ++e) elements[e] = int64_t{0};
    };
    expect_agreement(row_trial("booleans", text, 1, room, change));
  }
}

TEST(RowKernels, one_row_of_everything_becomes_one_element) {
  const std::string text = R"(graph @all on cpu (%x: f32[33,5]) -> (%y) {
    %y = reduce sum %x over 0, 1 : f32[1,1]
  })";
  expect_agreement(row_trial("all", text, 9, room));
}

/// Long enough that what is dear does not fit the memory for it, and is computed again.
TEST(RowKernels, rows_too_long_to_keep_are_computed_again) {
  for (const size_t body : {size_t{0}, size_t{3}}) {
    expect_agreement(
        row_trial(row_bodies()[body].name, text_of(row_bodies()[body], {3, 20000}, "f32", "f32", "cpu"), 2, room));
  }
}

TEST(RowKernels, an_output_may_take_the_place_of_an_input) {
  RowTrial trial = row_trial("in place", text_of(row_bodies().front(), {50, 37}, "f32", "f32", "cpu"), 4, room);
  trial.kernel.params.back().in_place = true;
  for (const int width : host_widths()) {
    RowTrial run = trial;
    run.params.back() = run.params.front();
    const KernelSource source = codegen::generate_llvm(run.kernel, {.vector_bits = width});
    const auto compiled = runtime::LlvmJit().compile(source);
    const std::array<const void*, 2> pointers{run.params.back().data(), run.params.back().data()};
    (*compiled)(pointers.data(), 0, 50);
    EXPECT_EQ(difference(run), "");
  }
}

}  // namespace
}  // namespace sinter::test
