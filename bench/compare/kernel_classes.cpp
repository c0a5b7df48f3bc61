#include "bench/compare/kernel_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace sinter::bench {
namespace {

using nlohmann::json;

struct NamePart {
  std::string_view part;  ///< in lower case
  KernelClass kernel_class;
};

/// The first part that a name contains decides: what a kernel is for stands before what it is built from.
constexpr std::array parts = {
    NamePart{"memcpy", KernelClass::copy},
    NamePart{"memset", KernelClass::copy},
    NamePart{"nchwtonhwc", KernelClass::layout},
    NamePart{"nhwctonchw", KernelClass::layout},
    NamePart{"tensortransform", KernelClass::layout},
    NamePart{"transpose_read", KernelClass::layout},
    NamePart{"catarray", KernelClass::layout},
    NamePart{"direct_copy", KernelClass::layout},
    NamePart{"bfloat16_copy", KernelClass::layout},
    NamePart{"float16_copy", KernelClass::layout},
    NamePart{"fillfunctor", KernelClass::copy},
    NamePart{"flash", KernelClass::attention},
    NamePart{"fmha", KernelClass::attention},
    NamePart{"attention", KernelClass::attention},
    NamePart{"sdpa", KernelClass::attention},
    NamePart{"pool", KernelClass::pool},
    NamePart{"batch_norm", KernelClass::norm},
    NamePart{"batchnorm", KernelClass::norm},
    NamePart{"bn_fw", KernelClass::norm},
    NamePart{"bn_bw", KernelClass::norm},
    NamePart{"layer_norm", KernelClass::norm},
    NamePart{"layernorm", KernelClass::norm},
    NamePart{"softmax", KernelClass::norm},
    NamePart{"splitkreduce", KernelClass::matrix},
    NamePart{"triton_red", KernelClass::norm},
    NamePart{"triton_per", KernelClass::norm},
    NamePart{"triton_tem", KernelClass::matrix},
    NamePart{"triton_mm", KernelClass::matrix},
    NamePart{"reduce_kernel", KernelClass::norm},
    NamePart{"nll_loss", KernelClass::norm},
    NamePart{"gemm", KernelClass::matrix},
    NamePart{"gemv", KernelClass::matrix},
    NamePart{"conv", KernelClass::matrix},
    NamePart{"xmma", KernelClass::matrix},
    NamePart{"cutlass", KernelClass::matrix},
    NamePart{"nvjet", KernelClass::matrix},
    NamePart{"wgrad", KernelClass::matrix},
    NamePart{"dgrad", KernelClass::matrix},
    NamePart{"fprop", KernelClass::matrix},
    NamePart{"cudnn", KernelClass::matrix},
    NamePart{"rnn", KernelClass::matrix},
    NamePart{"lstm", KernelClass::matrix},
    NamePart{"triton_poi", KernelClass::pointwise},
    NamePart{"triton_", KernelClass::pointwise},
    NamePart{"elementwise", KernelClass::pointwise},
    NamePart{"multi_tensor_apply", KernelClass::pointwise},
};

/// Sinter's kernels are called after their operations; one of casts alone changes layout or dtype.
std::optional<KernelClass> class_of_generated(std::string_view name) {
  if (!name.starts_with("fused_")) return std::nullopt;
  if (name == "fused_attention") return KernelClass::attention;
  return name == "fused_cast" ? KernelClass::layout : KernelClass::pointwise;
}

constexpr std::array classes = {KernelClass::matrix,    KernelClass::attention, KernelClass::norm,
                                KernelClass::pool,      KernelClass::layout,    KernelClass::copy,
                                KernelClass::pointwise, KernelClass::other};

struct Sum {
  int64_t count = 0;
  double microseconds = 0;
};

template <class Counted>
Sum sum_of(const KernelList& list, const Counted& counted) {
  Sum sum;
  for (const json& kernel : list.kernels) {
    if (!counted(class_of_kernel(kernel.at("name").get<std::string>()))) continue;
    sum.count += kernel.at("count").get<int64_t>();
    sum.microseconds += kernel.at("us").get<double>();
  }
  return sum;
}

template <class Counted>
std::string class_line(std::string_view title, const std::vector<KernelList>& lists, const Counted& counted) {
  std::string text = fmt::format("  {:<10}", title);
  for (const KernelList& list : lists) {
    const Sum sum = sum_of(list, counted);
    text += fmt::format("  {:>14.1f} {:>9}", sum.microseconds, sum.count);
  }
  return text + "\n";
}

std::string longest(const KernelList& list, size_t most) {
  std::vector<const json*> rows;
  for (const json& kernel : list.kernels) rows.push_back(&kernel);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const json* a, const json* b) { return a->at("us").get<double>() > b->at("us").get<double>(); });
  std::string text = fmt::format("\n  {}, longest kernels\n", list.contender);
  for (size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const auto name = rows[i]->at("name").get<std::string>();
    text += fmt::format("  {:>10.1f} {:>5}  {:<9}  {}\n", rows[i]->at("us").get<double>(),
                        rows[i]->at("count").get<int64_t>(), to_string(class_of_kernel(name)), name.substr(0, 140));
  }
  return text;
}

}  // namespace

std::string_view to_string(KernelClass kernel_class) {
  constexpr std::array<std::string_view, classes.size()> names = {"matrix", "attention", "norm",      "pool",
                                                                  "layout", "copy",      "pointwise", "other"};
  return names.at(static_cast<size_t>(kernel_class));
}

KernelClass class_of_kernel(std::string_view name) {
  if (const auto generated = class_of_generated(name)) return *generated;
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const NamePart& row : parts) {
    if (lower.find(row.part) != std::string::npos) return row.kernel_class;
  }
  return KernelClass::other;
}

std::string kernels_side_by_side(const std::vector<KernelList>& lists, size_t most) {
  std::string text = fmt::format("  {:<10}", "class");
  for (const KernelList& list : lists) text += fmt::format("  {:>24}", list.contender.substr(0, 24));
  text += fmt::format("\n  {:<10}", "");
  for (size_t i = 0; i < lists.size(); ++i) text += fmt::format("  {:>14} {:>9}", "us", "kernels");
  text += "\n";
  for (const KernelClass one : classes) {
    const auto is_one = [one](KernelClass found) { return found == one; };
    const bool any =
        std::any_of(lists.begin(), lists.end(), [&](const KernelList& list) { return sum_of(list, is_one).count > 0; });
    if (any) text += class_line(to_string(one), lists, is_one);
  }
  text += class_line("all", lists, [](KernelClass) { return true; });
  for (const KernelList& list : lists) text += longest(list, most);
  return text;
}

}  // namespace sinter::bench
