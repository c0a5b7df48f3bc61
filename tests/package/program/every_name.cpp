// Calls every public function that the library defines. What is missing from frontend/symbols.map does not link.
#include <sinter/profile.h>
#include <sinter/sinter.h>
#include <torch/types.h>

#include <iostream>
#include <sstream>

namespace {

bool throws(const auto& call) {
  try {
    call();
  } catch (const sinter::UserError&) {
    return true;
  } catch (const sinter::InternalError&) {
    return false;
  }
  return false;
}

}  // namespace

int main() {
  const torch::NoGradGuard no_grad;
  int64_t calls = 0;
  auto fast = sinter::compile([&calls](const at::Tensor& x) {
    ++calls;
    return std::vector<c10::IValue>{sinter::cond(
        x.sum() > 0, [](const at::Tensor& t) { return t * 2; }, [](const at::Tensor& t) { return -t; }, x)};
  });
  at::Tensor x = torch::ones({4});
  sinter::mark_dynamic(x, 0, 2, 64);
  (void)sinter::materialize(x);
  for (int call = 0; call < 4; ++call) {
    if (!at::equal(fast(x).at(0).toTensor(), x * 2)) return 1;
  }
  const sinter::Report report = fast.report();
  std::ostringstream text;
  text << report << sinter::compile_times() << report.json() << sinter::compile_times().total()
       << sinter::compile_times().text() << sinter::compile_times().json()
       << sinter::name(sinter::BreakCode::unsupported_op) << report.entries.at(0).kernel_origins().built;
  if (text.str().empty() || calls != 4) return 1;
  const sinter::Profile profile = sinter::profile([](const at::Tensor& t) { return t * 2; }, {.steps = 1})(x);
  const sinter::ModeProfile& eager = profile.modes.at(0);
  text << profile << profile.json() << profile.chrome_trace() << eager.attributed() << eager.busy()
       << eager.limits.least_time(eager.operators.at(0)).has_value() << sinter::name(eager.operators.at(0).phase);
  const bool told = throws([] { (void)sinter::compile("nowhere.pt2"); }) &&
                    throws([] { (void)sinter::read_saved("nowhere.pt"); }) &&
                    throws([] { sinter::Model("nowhere.pt").to(at::kCPU).to(at::kHalf).name(); });
  return told ? 0 : 1;
}
