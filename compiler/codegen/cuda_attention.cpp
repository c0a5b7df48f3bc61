#include "compiler/codegen/cuda_attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/codegen/cuda_access.h"
#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/cuda_prelude.h"
#include "compiler/support/ceil_div.h"
#include "compiler/support/errors.h"

namespace sinter::codegen {
namespace {

using kernel::AttentionKernel;
using kernel::AttentionOperand;
using kernel::Param;

constexpr int64_t rows_of_warp = 16;      ///< of one product on tensor cores
constexpr int64_t most_early_words = 40;  ///< of values in a thread's registers while scores are computed
constexpr int64_t most_warps = 4;         ///< of a block: they share the keys in the first cache
constexpr double log2_of_e = 1.4426950408889634;

class AttentionText {
 public:
  explicit AttentionText(const AttentionKernel& kernel)
      : kernel_(kernel),
        type_(cuda_type(kernel.dtype)),
        warps_(std::min(most_warps, ceil_div(kernel.queries, rows_of_warp))),
        tiles_(ceil_div(kernel.queries, rows_of_warp * warps_)),
        key_tiles_(2 * ceil_div(kernel.keys, rows_of_warp)),
        piece_(kernel.vector % 32 == 0 ? 8 : 4),
        value_piece_(std::gcd(kernel.vector / 8, int64_t{8})) {
    const bool fits = kernel.vector % kernel::attention_vector_step == 0 &&
                      kernel.vector <= kernel::longest_attention_vector && kernel.keys <= kernel::most_attention_keys;
    const auto side_by_side = [](const AttentionOperand& operand) { return operand.column == 1; };
    if (!fits || !side_by_side(kernel.query) || !side_by_side(kernel.key) || !side_by_side(kernel.values) ||
        !side_by_side(kernel.result)) {
      throw InternalError("codegen", kernel.name + ": an attention of sizes or strides that no kernel takes", {});
    }
    params_.resize(kernel.params.size(), {.alignment = ir::bytes_of(kernel.dtype), .written = false});
  }

  KernelSource write() {
    begin();
    load_queries();
    if (loads_early()) load_all_values();
    score();
    weigh();
    mix();
    store();
    out_ += "}\n";
    KernelSource source;
    source.name = kernel_.name;
    source.comment = comment();
    source.text = cuda_prelude(out_) + out_;
    params_.back().written = true;
    source.params = params_;
    source.numel = kernel_.batches() * kernel_.queries * kernel_.vector;
    source.grid = {static_cast<uint32_t>(tiles_ * kernel_.batches()), 1, 1};
    source.block = {static_cast<uint32_t>(warps_ * warp_threads), 1, 1};
    source.bytes = kernel_.bytes_moved();
    source.ops = {"attention"};
    return source;
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(indent_, ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    indent_ += 2;
  }
  /// A loop that becomes straight code: what it indexes stays in registers.
  void unroll(std::string_view variable, int64_t count) {
    line("#pragma unroll");
    open("for (unsigned {0} = 0; {0} < {1}u; ++{0}) {{", variable, count);
  }
  void close() {
    indent_ -= 2;
    line("}}");
  }

  [[nodiscard]] std::string comment() const {
    std::string text;
    for (const std::string& words : kernel_.comment) text += "// " + words + "\n";
    return text + fmt::format("// {} x {} queries and {} keys of {} elements, {} warps a block of 16 queries each\n",
                              kernel_.batches(), kernel_.queries, kernel_.keys, kernel_.vector, warps_);
  }

  [[nodiscard]] std::string name_of(uint32_t param) const {
    return fmt::format("{}{}", kernel_.params[param].role == Param::Role::output ? "out" : "in", param);
  }

  void begin() {
    std::string list;
    for (uint32_t p = 0; p < kernel_.params.size(); ++p) {
      const char* constness = kernel_.params[p].role == Param::Role::output ? "" : "const ";
      list += fmt::format("{}{}{}* __restrict__ {}", p == 0 ? "" : ", ", constness, type_, name_of(p));
    }
    out_ = fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n", warps_ * warp_threads,
                       kernel_.name, list);
    line("wait_for_earlier();");
    for (uint32_t p = 0; p < kernel_.params.size(); ++p) line("{0} = from_here({0});", name_of(p));
    line("const unsigned lane = threadIdx.x % 32u, row = lane / 4u, part = lane % 4u;");
    const std::string tile = tiles_ == 1 ? "" : fmt::format("blockIdx.x % {}u * {}u + ", tiles_, warps_);
    line("const unsigned first = ({}threadIdx.x / 32u) * 16u;  // of its queries", tile);
    line("if (first >= {}u) return;", kernel_.queries);
    int64_t below = tiles_;
    for (size_t dim = kernel_.batch.size(); dim-- > 0;) {
      const std::string over = below == 1 ? "" : fmt::format(" / {}u", below);
      const std::string within = dim == 0 ? "" : fmt::format(" % {}u", kernel_.batch[dim]);
      line("const {} i{} = blockIdx.x{}{};", index_type(), dim, over, within);
      below *= kernel_.batch[dim];
    }
    point("query", kernel_.query);
    point("key", kernel_.key);
    point("value", kernel_.values);
    if (kernel_.bias) point("bias", *kernel_.bias);
    point("result", kernel_.result);
  }

  [[nodiscard]] const char* index_type() const {
    const auto is_far = [](const AttentionOperand& operand) { return operand.offset + operand.reach > INT32_MAX; };
    const bool wide = is_far(kernel_.query) || is_far(kernel_.key) || is_far(kernel_.values) ||
                      is_far(kernel_.result) || (kernel_.bias && is_far(*kernel_.bias));
    return wide ? "unsigned long long" : "unsigned";
  }

  void point(std::string_view name, const AttentionOperand& operand) {
    std::vector<std::string> terms;
    if (operand.offset != 0) terms.push_back(fmt::format("{}u", operand.offset));
    for (size_t dim = 0; dim < operand.batch.size(); ++dim) {
      if (operand.batch[dim] != 0) terms.push_back(fmt::format("i{} * {}u", dim, operand.batch[dim]));
    }
    const std::string index = terms.empty() ? "0u" : fmt::format("{}", fmt::join(terms, " + "));
    const char* constness = kernel_.params[operand.param].role == Param::Role::output ? "" : "const ";
    line("{}{}* {} = {} + ({});", constness, type_, name, name_of(operand.param), index);
  }

  /// The type that holds `count` halves of an operand, whose address is a multiple of as many bytes as is known.
  [[nodiscard]] std::string pack_of(const AttentionOperand& operand, int64_t count) {
    constexpr int64_t half = 2;
    int64_t alignment = std::gcd(access_bytes, std::gcd(count, std::gcd(operand.offset, operand.row)) * half);
    for (const int64_t stride : operand.batch) alignment = std::gcd(alignment, stride * half);
    alignment = std::gcd(alignment, kernel_.params[operand.param].alignment);
    params_[operand.param].alignment = std::max(params_[operand.param].alignment, alignment);
    return fmt::format("pack<{}, {}, {}>", type_, count, alignment);
  }

  /// Elements are taken in another order than they lie in, the same for queries and keys: a thread has neighbours.
  void load_queries() {
    const int64_t pieces = kernel_.vector / (4 * piece_);
    line("pack<unsigned, {}, 4> queries[2][{}];  // of rows `row` and `row + 8`", piece_ / 2, pieces);
    unroll("half", 2);
    line("const unsigned at = min(first + half * 8u + row, {}u);", kernel_.queries - 1);
    unroll("p", pieces);
    line("queries[half][p] = words_of(load<{}>(query + (at * {}u + (p * 4u + part) * {}u)));",
         pack_of(kernel_.query, piece_), kernel_.query.row, piece_);
    close();
    close();
  }

  void score() {
    line("float scores[{}][4] = {{}};  // by 8 keys: two of row `row`, two of row `row + 8`", key_tiles_);
    unroll("tile", ceil_div(kernel_.keys, int64_t{8}));
    line("const unsigned at = min(tile * 8u + row, {}u);", kernel_.keys - 1);
    unroll("p", kernel_.vector / (4 * piece_));
    line("const pack<unsigned, {}, 4> keys = words_of(load<{}>(key + (at * {}u + (p * 4u + part) * {}u)));", piece_ / 2,
         pack_of(kernel_.key, piece_), kernel_.key.row, piece_);
    unroll("k", piece_ / 4);
    line("const unsigned rows[4] = {{queries[0][p].v[k * 2u], queries[1][p].v[k * 2u], queries[0][p].v[k * 2u + 1u],");
    line("                          queries[1][p].v[k * 2u + 1u]}};");
    line("add_product(scores[tile], rows, keys.v[k * 2u], keys.v[k * 2u + 1u], {}{{}});", type_);
    close();
    close();
    close();
  }

  /// True where two scores of a row are biased by one load.
  [[nodiscard]] bool biases_pairs() const {
    const AttentionOperand& bias = *kernel_.bias;
    const auto even = [](int64_t stride) { return stride % 2 == 0; };
    if (bias.column != 1 || !even(bias.offset) || !even(bias.row) || !std::ranges::all_of(bias.batch, even))
      return false;
    int64_t last = (kernel_.queries - 1) * bias.row + kernel_.keys + kernel_.keys % 2;
    for (size_t dim = 0; dim < bias.batch.size(); ++dim) last += (kernel_.batch[dim] - 1) * bias.batch[dim];
    return last <= bias.reach && kernel_.params[bias.param].alignment % 4 == 0;
  }

  [[nodiscard]] std::string widened(const std::string& half) const {
    return cuda_cast(half, kernel_.dtype, ir::DType::f32);
  }

  /// Scores in powers of two, -inf where there is no key.
  void weigh() {
    line("const float nothing = -__int_as_float(0x7f800000);");
    line("float most[2] = {{nothing, nothing}};");
    unroll("tile", key_tiles_);
    unroll("half", 2);
    line("const unsigned at = tile * 8u + part * 2u;");
    if (kernel_.bias) load_bias();
    unroll("k", 2);
    const std::string biased =
        kernel_.bias ? fmt::format(" + {} * {:.9g}f", widened("biases.v[k]"), log2_of_e) : std::string();
    line("float& score = scores[tile][half * 2u + k];");
    const std::string seen = kernel_.causal ? " && at + k <= first + half * 8u + row" : "";
    line("score = at + k < {}u{} ? score * {:.9g}f{} : nothing;", kernel_.keys, seen, kernel_.scale * log2_of_e,
         biased);
    line("most[half] = fmaxf(most[half], score);");
    close();
    close();
    close();
    line("float sum[2] = {{}};");
    unroll("half", 2);
    line("most[half] = join_lanes<4u>(most[half], [](float a, float b) {{ return fmaxf(a, b); }});");
    if (kernel_.zeros) line("if (most[half] == nothing) most[half] = 0.0f;");
    unroll("tile", key_tiles_);
    unroll("k", 2);
    line("float& score = scores[tile][half * 2u + k];");
    line("score = approx_exp2(score - most[half]);");
    line("sum[half] += score;");
    close();
    close();
    line("sum[half] = join_lanes<4u>(sum[half], [](float a, float b) {{ return a + b; }});");
    if (kernel_.zeros) line("if (sum[half] == 0.0f) sum[half] = 1.0f;");
    close();
  }

  void load_bias() {
    const AttentionOperand& bias = *kernel_.bias;
    line("const {}* from = bias + min(first + half * 8u + row, {}u) * {}u;", type_, kernel_.queries - 1, bias.row);
    line("pack<{}, 2, 4> biases{{}};", type_);
    if (biases_pairs()) {
      params_[bias.param].alignment = std::max(params_[bias.param].alignment, int64_t{4});
      line("if (at < {}u) biases = load<pack<{}, 2, 4>>(from + at);", kernel_.keys, type_);
      return;
    }
    const std::string step = bias.column == 1 ? "" : fmt::format(" * {}u", bias.column);
    line("if (at < {}u) biases.v[0] = from[at{}];", kernel_.keys, step);
    line("if (at + 1u < {}u) biases.v[1] = from[(at + 1u){}];", kernel_.keys, step);
  }

  /// True where all values wait in registers while scores are computed.
  [[nodiscard]] bool loads_early() const { return kernel_.vector / 8 * key_tiles_ <= most_early_words; }

  [[nodiscard]] int64_t value_pieces() const { return kernel_.vector / (8 * value_piece_); }

  void load_all_values() {
    line("{} values[{}][{}][4] = {{}};", pack_of(kernel_.values, value_piece_), key_tiles_ / 2, value_pieces());
    unroll("step", key_tiles_ / 2);
    unroll("p", value_pieces());
    load_values("values[step][p]");
    close();
    close();
  }

  /// Columns of the values are taken so that a thread loads neighbours, and stores neighbours.
  void load_values(std::string_view where) {
    unroll("k", 4);
    line("const unsigned at = step * 16u + part * 2u + k % 2u + k / 2u * 8u;");
    line("if (at < {}u) {}[k] = load<{}>(value + (at * {}u + (p * 8u + row) * {}u));", kernel_.keys, where,
         pack_of(kernel_.values, value_piece_), kernel_.values.row, value_piece_);
    close();
  }

  void mix() {
    line("float mixed[{}][4] = {{}};", kernel_.vector / 8);
    unroll("step", key_tiles_ / 2);
    line("unsigned weights[4];");
    unroll("k", 4);
    const auto weight = [&](int which) {
      return cuda_cast(fmt::format("scores[step * 2u + k / 2u][k % 2u * 2u + {}u]", which), ir::DType::f32,
                       kernel_.dtype);
    };
    line("weights[k] = two_halves({}, {});", weight(0), weight(1));
    close();
    unroll("p", value_pieces());
    const std::string_view values = loads_early() ? "values[step][p]" : "values";
    if (!loads_early()) {
      line("{} values[4] = {{}};", pack_of(kernel_.values, value_piece_));
      load_values(values);
    }
    unroll("i", value_piece_);
    line("add_product(mixed[p * {0}u + i], weights, two_halves({1}[0].v[i], {1}[1].v[i]),", value_piece_, values);
    line("            two_halves({0}[2].v[i], {0}[3].v[i]), {1}{{}});", values, type_);
    close();
    close();
    close();
  }

  void store() {
    unroll("half", 2);
    line("const unsigned at = first + half * 8u + row;");
    line("if (at >= {}u) continue;", kernel_.queries);
    line("const float inverse = 1.0f / sum[half];");
    unroll("p", kernel_.vector / (8 * value_piece_));
    const std::string pack = pack_of(kernel_.result, 2 * value_piece_);
    line("{} out;", pack);
    unroll("i", 2 * value_piece_);
    const std::string element = fmt::format("mixed[p * {0}u + i % {0}u][half * 2u + i / {0}u] * inverse", value_piece_);
    line("out.v[i] = {};", cuda_cast(element, ir::DType::f32, kernel_.dtype));
    close();
    line("store(result + (at * {}u + (p * 8u + part * 2u) * {}u), out);", kernel_.result.row, value_piece_);
    close();
    close();
  }

  const AttentionKernel& kernel_;
  const std::string type_;
  const int64_t warps_, tiles_, key_tiles_;
  const int64_t piece_, value_piece_;  ///< neighbouring elements of queries and keys, and of values, a thread has
  std::vector<KernelParam> params_;
  std::string out_;
  size_t indent_ = 2;
};

}  // namespace

KernelSource generate_cuda(const AttentionKernel& kernel) { return AttentionText(kernel).write(); }

}  // namespace sinter::codegen
