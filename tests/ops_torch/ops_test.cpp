#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <c10/util/Logging.h>

#include <limits>
#include <span>

#include "compare.h"

namespace sinter::test {
namespace {

/// The table's ops through the public API, against eager, for one device and dtype.
class Ops : public ::testing::TestWithParam<std::pair<c10::DeviceType, at::ScalarType>> {
 protected:
  void SetUp() override {
    if (device().is_cuda() && !at::globalContext().hasCUDA()) GTEST_SKIP() << "needs a GPU";
  }

  /// Thousands of calls throw here; nobody reads where.
  static void SetUpTestSuite() {
    c10::SetStackTraceFetcher(std::function<std::string()>([] { return std::string(); }));
  }

  static c10::Device device() {
    return {GetParam().first, GetParam().first == at::kCPU ? c10::DeviceIndex(-1) : c10::DeviceIndex(0)};
  }
  static at::ScalarType dtype() { return GetParam().second; }

 private:
  c10::NoGradGuard no_grad_;
};

const std::vector<Call>& calls() {
  static const std::vector<Call> all = all_calls();
  return all;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

template <class F>
std::string message_of(F&& run) {
  try {
    run();
  } catch (const c10::Error& error) {
    return first_line(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return first_line(error.what());
  }
  return {};
}

/// The operands in double, for a reference; floats only.
std::vector<at::Tensor> widened(std::vector<at::Tensor> operands) {
  for (auto& operand : operands) {
    if (at::isFloatingType(operand.scalar_type())) operand = operand.to(at::kDouble);
  }
  return operands;
}

std::optional<at::Tensor> exact(const Call& call, const std::vector<at::Tensor>& wide) {
  try {
    return call(wide).to(at::kDouble);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Calls that eager answers, with the answers.
struct Batch {
  std::vector<Call> calls;
  std::vector<at::Tensor> results;
};

Batch answered(std::span<const Call> all, const std::vector<at::Tensor>& operands) {
  Batch batch;
  for (const auto& call : all) {
    try {
      auto result = call(operands);
      batch.results.push_back(std::move(result));
      batch.calls.push_back(call);
    } catch (const std::exception&) {
      continue;  // what eager refuses is the other test's
    }
  }
  return batch;
}

std::vector<at::Tensor> call_all(const std::vector<Call>& batch, const std::vector<at::Tensor>& operands) {
  std::vector<at::Tensor> results;
  for (const auto& call : batch) results.push_back(call(operands));
  return results;
}

/// Rows that every call of this dtype becomes a kernel of; the others refuse some calls, or throw for some values.
bool has_kernel(const ir::OpRow& row, at::ScalarType dtype, bool is_half) {
  if (row.is_native() && row.name != "div") return true;
  const bool is_float = at::isFloatingType(dtype);
  if (row.domain == ir::Domain::nonzero_second && (!is_float || is_half)) return false;
  if (row.name == "div" || row.name == "div_rounded" || (row.name == "aten_pow" && !is_float)) return false;
  const auto refuses = [&row](std::string_view guard) {
    return row.decomposition().expression.find(guard) != std::string_view::npos;
  };
  if (dtype == at::kBool && refuses("boolean: refuse")) return false;
  if (dtype == at::kByte && refuses("unsigned: refuse")) return false;
  return !(is_half && refuses("half: refuse"));
}

/// True when a call of this op takes a half operand: some rows leave halves to ATen, whatever the other operands are.
bool takes_half(const std::string& op, const Batch& batch, const std::vector<at::Tensor>& operands) {
  const auto is_half = [&operands](const auto& arg) {
    const auto* operand = std::get_if<Operand>(&arg);
    return operand != nullptr && at::isReducedFloatingType(operands[static_cast<size_t>(*operand)].scalar_type());
  };
  return std::any_of(batch.calls.begin(), batch.calls.end(), [&](const Call& call) {
    return call.name() == op && std::any_of(call.args.begin(), call.args.end(), is_half);
  });
}

/// functionalize leaves in-place ops on narrow integers to ATen on a GPU, where the other operand is wider.
bool stays_in_place(std::string_view op, const at::Tensor& operand) {
  const bool in_place = op.substr(0, op.find('.')).ends_with('_');
  return in_place && operand.is_cuda() && !at::isFloatingType(operand.scalar_type());
}

/// On the CPU, operators that divide integers end a segment, since they may refuse their data, and those over few
/// integers are in none.
bool in_one_segment(const at::Tensor& operand) {
  return operand.is_cuda() || !at::isIntegralType(operand.scalar_type(), /*includeBool=*/true);
}

void check(const Batch& batch, const std::vector<at::Tensor>& operands) {
  ASSERT_FALSE(batch.calls.empty()) << "eager answers none of these calls";
  auto fast = compile([&batch](const std::vector<at::Tensor>& inputs) { return call_all(batch.calls, inputs); },
                      {.compile_budget = std::numeric_limits<double>::infinity(), .fullgraph = true, .strict = true});
  static_cast<void>(fast(operands));
  const auto results = fast(operands);
  const auto report = fast.report();
  ASSERT_TRUE(report.entries.size() == 1 || !in_one_segment(operands[0])) << report;
  for (const auto& entry : report.entries) {
    ASSERT_TRUE(entry.compiled && (entry.replays == 1 || !in_one_segment(operands[0]))) << report;
    for (const auto& record : entry.externs) {
      const auto row = ir::find_aten(record.op);
      const bool left =
          row && has_kernel(ir::row(*row), operands[0].scalar_type(), takes_half(record.op, batch, operands));
      EXPECT_FALSE(left && !stays_in_place(record.op, operands[0])) << record.op << " was left a call";
    }
  }
  const auto wide = widened(operands);
  for (size_t i = 0; i < batch.calls.size(); ++i) {
    const auto& call = batch.calls[i];
    const auto found = difference(call, results[i], batch.results[i], exact(call, wide), operands);
    if (found) ADD_FAILURE() << call.label << ": " << *found;
  }
}

/// All calls on contiguous operands; elsewhere one call of each overload.
std::vector<Call> calls_for(Layout layout) {
  const bool every = layout == Layout::contiguous || layout == Layout::cancelling;
  std::vector<Call> some;
  for (const auto& call : calls()) {
    if (every || (call.first_choice && !call.in_place)) some.push_back(call);
  }
  return some;
}

/// Calls compiled together: all of a layout, which is quick, and a program of more than a thousand results.
constexpr size_t batch_size = 2000;

TEST_P(Ops, of_the_table_give_what_eager_gives_in_every_layout) {
  for (const auto layout : layouts) {
    SCOPED_TRACE(name(layout));
    const auto inputs = operands(dtype(), layout, device());
    const auto all = calls_for(layout);
    for (size_t from = 0; from < all.size(); from += batch_size) {
      const auto some = std::span(all).subspan(from, std::min(batch_size, all.size() - from));
      check(answered(some, inputs), inputs);
    }
  }
}

TEST_P(Ops, of_the_table_throw_what_eager_throws) {
  const auto inputs = operands(dtype(), Layout::contiguous, device());
  for (const auto& call : calls()) {
    const auto eager = message_of([&] { static_cast<void>(call(inputs)); });
    if (eager.empty()) continue;
    auto fast = compile([&call](const std::vector<at::Tensor>& operands) { return call(operands); });
    for (int turn = 0; turn < 2; ++turn)
      EXPECT_EQ(message_of([&] { static_cast<void>(fast(inputs)); }), eager) << call.label;
  }
}

constexpr std::array dtypes{at::kFloat, at::kHalf,  at::kBFloat16, at::kDouble, at::kLong,
                            at::kInt,   at::kShort, at::kChar,     at::kByte,   at::kBool};

std::vector<std::pair<c10::DeviceType, at::ScalarType>> on(c10::DeviceType device) {
  std::vector<std::pair<c10::DeviceType, at::ScalarType>> all;
  for (const auto dtype : dtypes) all.emplace_back(device, dtype);
  return all;
}

std::string dtype_name(const ::testing::TestParamInfo<std::pair<c10::DeviceType, at::ScalarType>>& info) {
  return c10::toString(info.param.second);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Ops, ::testing::ValuesIn(on(at::kCPU)), dtype_name);
INSTANTIATE_TEST_SUITE_P(Gpu, Ops, ::testing::ValuesIn(on(at::kCUDA)), dtype_name);

}  // namespace
}  // namespace sinter::test
