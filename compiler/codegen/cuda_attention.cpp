#include "compiler/codegen/cuda_attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "compiler/codegen/cuda_access.h"
#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/cuda_lines.h"
#include "compiler/codegen/cuda_params.h"
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
constexpr int64_t columns_of_product = 16;
constexpr int64_t keys_of_block = 64;  ///< whose scores a warp holds at a time
constexpr int64_t most_warps = 4;      ///< of a block: they share the keys in the first cache
constexpr double log2_of_e = 1.4426950408889634;

class AttentionText : CudaLines {
 public:
  explicit AttentionText(const AttentionKernel& kernel)
      : kernel_(kernel),
        type_(cuda_type(kernel.dtype)),
        warps_(std::min(most_warps, ceil_div(kernel.queries, rows_of_warp))),
        tiles_(ceil_div(kernel.queries, rows_of_warp * warps_)),
        key_tiles_(2 * ceil_div(std::min(kernel.keys, keys_of_block), rows_of_warp)),
        several_(kernel.keys > keys_of_block),
        columns_(ceil_div(kernel.vector, columns_of_product) * columns_of_product),
        piece_(columns_ % 32 == 0 && kernel.vector % 8 == 0 ? 8 : 4),
        value_piece_(std::gcd(std::gcd(columns_ / 8, int64_t{8}), kernel.vector)) {
    const bool fits =
        kernel.vector % kernel::attention_vector_step == 0 && kernel.vector <= kernel::longest_attention_vector;
    const auto side_by_side = [](const AttentionOperand& operand) { return operand.column == 1; };
    if (!fits || !side_by_side(kernel.query) || !side_by_side(kernel.key) || !side_by_side(kernel.values) ||
        !side_by_side(kernel.result)) {
      throw InternalError("codegen", kernel.name + ": an attention of sizes or strides that no kernel takes");
    }
    params_.resize(kernel.params.size(), {.alignment = ir::bytes_of(kernel.dtype), .written = false});
  }

  KernelSource write() {
    begin();
    load_queries();
    line("const float nothing = -__int_as_float(0x7f800000);");
    line("float most[2] = {{nothing, nothing}}, sum[2] = {{}}, mixed[{}][4] = {{}};", columns_ / 8);
    if (several_) open("for (unsigned begin = 0; begin < {}u; begin += {}u) {{", kernel_.keys, keys_of_block);
    if (loads_early()) load_all_values();
    score();
    weigh();
    mix();
    if (several_) close();
    store();
    KernelSource source;
    source.name = kernel_.name;
    source.comment = comment();
    const std::string text = signature() + lines() + "}\n";
    source.text = cuda_prelude(text) + text;
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
  /// A loop that becomes straight code: what it indexes stays in registers.
  void unroll(std::string_view variable, int64_t count) {
    line("#pragma unroll");
    open("for (unsigned {0} = 0; {0} < {1}u; ++{0}) {{", variable, count);
  }

  [[nodiscard]] std::string comment() const {
    std::string text;
    for (const std::string& words : kernel_.comment) text += "// " + words + "\n";
    return text + fmt::format("// {} x {} queries and {} keys of {} elements, {} warps a block of 16 queries each\n",
                              kernel_.batches(), kernel_.queries, kernel_.keys, kernel_.vector, warps_);
  }

  [[nodiscard]] std::string name_of(uint32_t param) const { return cuda_param_name(kernel_.params[param], param); }

  [[nodiscard]] std::string signature() const {
    return fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n", warps_ * warp_threads,
                       kernel_.name, cuda_declarations(kernel_.params));
  }

  void begin() {
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
      line("const unsigned i{} = blockIdx.x{}{};", dim, over, within);
      below *= kernel_.batch[dim];
    }
    point("query", kernel_.query);
    point("key", kernel_.key);
    point("value", kernel_.values);
    if (kernel_.bias) point("bias", *kernel_.bias);
    point("result", kernel_.result);
  }

  /// True where an element is further from a pointer than 31 bits tell.
  [[nodiscard]] bool is_wide() const {
    const auto is_far = [](const AttentionOperand& operand) { return operand.offset + operand.reach > INT32_MAX; };
    return is_far(kernel_.query) || is_far(kernel_.key) || is_far(kernel_.values) || is_far(kernel_.result) ||
           (kernel_.bias && is_far(*kernel_.bias));
  }

  /// A stride or an offset: what is multiplied by it is as wide.
  [[nodiscard]] std::string elements(int64_t number) const {
    return fmt::format("{}{}", number, is_wide() ? "ull" : "u");
  }

  void point(std::string_view name, const AttentionOperand& operand) {
    std::vector<std::string> terms;
    if (operand.offset != 0) terms.push_back(elements(operand.offset));
    for (size_t dim = 0; dim < operand.batch.size(); ++dim) {
      if (operand.batch[dim] != 0) terms.push_back(fmt::format("i{} * {}", dim, elements(operand.batch[dim])));
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

  /// What a thread has of the row `at` of queries or keys: zeros behind the end of the vector.
  [[nodiscard]] std::string piece_of(std::string_view name, const AttentionOperand& operand) {
    const std::string pack = pack_of(operand, piece_);
    const std::string row = fmt::format("{} + at * {}", name, elements(operand.row));
    const std::string column = fmt::format("(p * 4u + part) * {}u", piece_);
    if (columns_ == kernel_.vector) return fmt::format("load<{}>({} + {})", pack, row, column);
    if (kernel_.vector % piece_ != 0)
      return fmt::format("load_within<{}>({}, {}, {}u)", pack, row, column, kernel_.vector);
    return fmt::format("{1} < {2}u ? load<{0}>({3} + {1}) : {0}{{}}", pack, column, kernel_.vector, row);
  }

  /// Elements are taken in another order than they lie in, the same for queries and keys: a thread has neighbours.
  void load_queries() {
    const int64_t pieces = columns_ / (4 * piece_);
    line("pack<unsigned, {}, 4> queries[2][{}];  // of rows `row` and `row + 8`", piece_ / 2, pieces);
    unroll("half", 2);
    line("const unsigned at = min(first + half * 8u + row, {}u);", kernel_.queries - 1);
    unroll("p", pieces);
    line("queries[half][p] = words_of({});", piece_of("query", kernel_.query));
    close();
    close();
  }

  void score() {
    line("float scores[{}][4] = {{}};  // by 8 keys: two of row `row`, two of row `row + 8`", key_tiles_);
    unroll("tile", std::min(key_tiles_, ceil_div(kernel_.keys, int64_t{8})));
    line("const unsigned at = min({}tile * 8u + row, {}u);", begin_, kernel_.keys - 1);
    unroll("p", columns_ / (4 * piece_));
    line("const pack<unsigned, {}, 4> keys = words_of({});", piece_ / 2, piece_of("key", kernel_.key));
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
    return bias.column == 1 && even(bias.offset) && even(bias.row) && std::ranges::all_of(bias.batch, even) &&
           kernel_.params[bias.param].alignment % 4 == 0;
  }

  [[nodiscard]] std::string widened(const std::string& half) const {
    return cuda_cast(half, kernel_.dtype, ir::DType::f32);
  }

  /// Scores in powers of two, -inf where there is no key, become weights. What was mixed before is as if the greatest
  /// score so far had been known from the beginning.
  void weigh() {
    line("float greatest[2] = {{most[0], most[1]}};");
    unroll("tile", key_tiles_);
    unroll("half", 2);
    line("const unsigned at = {}tile * 8u + part * 2u;", begin_);
    if (kernel_.bias) load_bias();
    unroll("k", 2);
    const std::string biased =
        kernel_.bias ? fmt::format(" + {} * {:.9g}f", widened("biases.v[k]"), log2_of_e) : std::string();
    line("float& score = scores[tile][half * 2u + k];");
    const std::string seen = kernel_.causal ? " && at + k <= first + half * 8u + row" : "";
    line("score = at + k < {}u{} ? score * {:.9g}f{} : nothing;", kernel_.keys, seen, kernel_.scale * log2_of_e,
         biased);
    line("greatest[half] = fmaxf(greatest[half], score);");
    close();
    close();
    close();
    unroll("half", 2);
    line("greatest[half] = join_lanes<4u>(greatest[half], [](float a, float b) {{ return fmaxf(a, b); }});");
    line("const float base = greatest[half] == nothing ? 0.0f : greatest[half];");
    if (several_) {
      line("const float kept = approx_exp2(most[half] - base);");
      line("sum[half] *= kept;");
      unroll("i", columns_ / 8);
      line("mixed[i][half * 2u] *= kept;");
      line("mixed[i][half * 2u + 1u] *= kept;");
      close();
    }
    line("most[half] = greatest[half];");
    unroll("tile", key_tiles_);
    unroll("k", 2);
    line("float& score = scores[tile][half * 2u + k];");
    line("score = approx_exp2(score - base);");
    line("sum[half] += score;");
    close();
    close();
    close();
  }

  void load_bias() {
    const AttentionOperand& bias = *kernel_.bias;
    line("const {}* from = bias + min(first + half * 8u + row, {}u) * {};", type_, kernel_.queries - 1,
         elements(bias.row));
    line("pack<{}, 2, 4> biases{{}};", type_);
    if (biases_pairs()) {
      params_[bias.param].alignment = std::max(params_[bias.param].alignment, int64_t{4});
      line("if (at + 1u < {}u) biases = load<pack<{}, 2, 4>>(from + at);", kernel_.keys, type_);
      if (kernel_.keys % 2 != 0) line("if (at + 1u == {}u) biases.v[0] = from[at];", kernel_.keys);
      return;
    }
    const std::string step = bias.column == 1 ? "" : " * " + elements(bias.column);
    line("if (at < {}u) biases.v[0] = from[at{}];", kernel_.keys, step);
    line("if (at + 1u < {}u) biases.v[1] = from[(at + 1u){}];", kernel_.keys, step);
  }

  /// True where all values wait in registers while scores are computed.
  [[nodiscard]] bool loads_early() const { return columns_ / 8 * key_tiles_ <= most_early_words; }

  [[nodiscard]] int64_t value_pieces() const { return columns_ / (8 * value_piece_); }

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
    line("const unsigned at = {}step * 16u + part * 2u + k % 2u + k / 2u * 8u;", begin_);
    const std::string column = fmt::format("(p * 8u + row) * {}u", value_piece_);
    const std::string inside = columns_ == kernel_.vector ? "" : fmt::format(" && {} < {}u", column, kernel_.vector);
    line("if (at < {}u{}) {}[k] = load<{}>(value + (at * {} + {}));", kernel_.keys, inside, where,
         pack_of(kernel_.values, value_piece_), elements(kernel_.values.row), column);
    close();
  }

  void mix() {
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
    line("sum[half] = join_lanes<4u>(sum[half], [](float a, float b) {{ return a + b; }});");
    if (kernel_.zeros) line("if (sum[half] == 0.0f) sum[half] = 1.0f;");
    line("const unsigned at = first + half * 8u + row;");
    line("if (at >= {}u) continue;", kernel_.queries);
    line("const float inverse = 1.0f / sum[half];");
    unroll("p", value_pieces());
    if (columns_ == kernel_.vector) {
      store_columns(2 * value_piece_, "part * 2u", "i % {0}u", "i / {0}u");
    } else {  // the second half of what a thread has may lie behind the vector's end
      unroll("k", 2);
      store_columns(value_piece_, "part * 2u + k", "i", "k");
      close();
    }
    close();
    close();
  }

  /// Stores `count` neighbouring elements of the row, of those that are mixed in column `column` and the next one.
  void store_columns(int64_t count, std::string_view column, std::string_view tile, std::string_view which) {
    const std::string place = fmt::format("(p * 8u + {}) * {}u", column, value_piece_);
    const std::string pack = pack_of(kernel_.result, count);
    line("{} out;", pack);
    unroll("i", count);
    const std::string element =
        fmt::format("mixed[p * {}u + {}][half * 2u + {}] * inverse", value_piece_,
                    fmt::format(fmt::runtime(tile), value_piece_), fmt::format(fmt::runtime(which), value_piece_));
    line("out.v[i] = {};", cuda_cast(element, ir::DType::f32, kernel_.dtype));
    close();
    const std::string inside = columns_ == kernel_.vector ? "" : fmt::format("if ({} < {}u) ", place, kernel_.vector);
    line("{}store(result + (at * {} + {}), out);", inside, elements(kernel_.result.row), place);
  }

  const AttentionKernel& kernel_;
  const std::string type_;
  const int64_t warps_, tiles_, key_tiles_;
  const bool several_;  ///< blocks of keys
  const std::string begin_ = several_ ? "begin + " : "";
  const int64_t columns_;              ///< of a vector, with zeros to whole products
  const int64_t piece_, value_piece_;  ///< neighbouring elements of queries and keys, and of values, a thread has
  std::vector<KernelParam> params_;
};

}  // namespace

KernelSource generate_cuda(const AttentionKernel& kernel) { return AttentionText(kernel).write(); }

}  // namespace sinter::codegen
