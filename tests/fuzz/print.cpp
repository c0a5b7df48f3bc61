#include "print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "execute.h"

namespace sinter::test::fuzz {
namespace {

std::string list(const std::vector<int64_t>& numbers) { return fmt::format("{{{}}}", fmt::join(numbers, ", ")); }

std::string number(double value) {
  if (value == kScale) return "scale";
  if (is_host_number(value)) return name_of_host_number(value);
  if (value == std::floor(value)) return fmt::format("{}", static_cast<int64_t>(value));
  return fmt::format("{}", value);
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {
    for (size_t i = 0; i < program.inputs.size(); ++i) names_[program.inputs[i].name] = "x" + std::to_string(i);
    for (size_t i = 0; i < program.state.size(); ++i) names_[program.state[i].name] = "s" + std::to_string(i);
  }

  std::string print() {
    line(fmt::format("void fuzz_{}(Session& s) {{", program_.seed));
    ++depth_;
    modes();
    world();
    const size_t declarations = text_.size();
    line("auto f = s.compile([&](const std::vector<Tensor>& x, [[maybe_unused]] double scale) {");
    ++depth_;
    const size_t beginning = text_.size();
    for (size_t i = 0; i < program_.inputs.size(); ++i) line(fmt::format("Tensor x{0} = x[{0}];", i));
    body(program_.body);
    results();
    --depth_;
    line("}, {.modules = {" + modules() + "}});");
    for (const Call& call : program_.calls) print_call(call);
    --depth_;
    line("}");
    declare_host(declarations, beginning);
    return text_;
  }

 private:
  void line(const std::string& text) { text_ += std::string(depth_ * 2, ' ') + text + "\n"; }
  const std::string& name(Name value) {
    auto& text = names_[value];
    if (text.empty()) text = "v" + std::to_string(value);
    return text;
  }

  /// A training step needs something to train.
  bool steps() const { return program_.mode == Mode::step && !program_.modules.empty(); }

  /// Declares what the program names of the host, as Host has it: what lasts before the callable, the others in it.
  void declare_host(size_t declarations, size_t beginning) {
    const auto names = [this](const char* name) { return text_.find(name) != std::string::npos; };
    std::string kept = names("flag") ? "  bool flag = false;\n" : "";
    std::string drawn;
    if (names("drawn") || names("coin()")) {
      drawn += fmt::format("    std::mt19937_64 engine({}u + step);\n", program_.seed);
      drawn += "    [[maybe_unused]] const double drawn = static_cast<double>(engine() % 4) / 2 - 1;\n";
    }
    if (names("coin()")) drawn += "    const auto coin = [&] { return engine() % 2 == 0; };\n";
    if (names("rate")) drawn += "    const double rate = 0.5 / (1 + step / 3);\n";
    if (names("step ") || names("step)") || names("step;") || !drawn.empty()) {
      kept += "  uint64_t step = 0;\n";
      drawn.insert(0, "    ++step;\n");
    }
    text_.insert(beginning, drawn);
    text_.insert(declarations, kept);
  }

  void modes() {
    if (program_.threads != 1) line(fmt::format("at::set_num_threads({});", program_.threads));
    if (program_.mode == Mode::no_grad) line("const c10::NoGradGuard no_grad;");
    if (program_.mode == Mode::inference)
      line("const c10::NoGradGuard no_grad;  // and c10::InferenceMode in the calls");
    if (program_.mode == Mode::grad || steps()) line("const at::AutoGradMode grad(true);");
  }

  void world() {
    for (const auto& source : program_.state) {
      line(fmt::format("Tensor {} = {};", name(source.name), drawn(source, {})));
      line(fmt::format("s.watch(\"{0}\", &{0});", name(source.name)));
    }
    for (size_t i = 0; i < program_.modules.size(); ++i) {
      line(fmt::format("auto m{} = s.adopt(torch::nn::{});", i, construction(program_.modules[i])));
    }
    if (steps()) line("torch::optim::SGD optimizer(<parameters>, SGDOptions(0.1).momentum(0.9));");
  }

  std::string modules() const {
    std::string text;
    for (size_t i = 0; i < program_.modules.size(); ++i)
      text += fmt::format("{1}{{\"m{0}\", m{0}.ptr()}}", i, i == 0 ? "" : ", ");
    return text;
  }

  static std::string construction(const ModuleSpec& spec) {
    const auto [a, b] = spec.sizes;
    switch (spec.kind) {
      case ModuleKind::linear:
        return fmt::format("Linear({}, {})", a, b);
      case ModuleKind::conv1d:
        return fmt::format("Conv1d(torch::nn::Conv1dOptions({}, {}, 3).padding(1))", a, b);
      case ModuleKind::conv2d:
        return fmt::format("Conv2d(torch::nn::Conv2dOptions({}, {}, 3).padding(1))", a, b);
      case ModuleKind::depthwise:
        return fmt::format("Conv2d(torch::nn::Conv2dOptions({0}, {1}, 3).padding(1).groups({0}))", a, b);
      case ModuleKind::batch_norm:
        return fmt::format("BatchNorm1d({})", a);
      case ModuleKind::layer_norm:
        return fmt::format("LayerNorm(torch::nn::LayerNormOptions({{{}}}))", a);
      case ModuleKind::dropout:
        return "Dropout(0.25)";
      case ModuleKind::embedding:
        return fmt::format("Embedding({}, {})", a, b);
    }
    return {};
  }

  static std::string fresh(const Source& source, std::vector<int64_t> sizes) {
    if (source.dtype == at::kBool) return fmt::format("s.integers(2, {}, at::kBool)", list(sizes));
    if (source.high > 0) {
      return fmt::format("s.integers({}, {}, at::k{})", source.high, list(sizes), c10::toString(source.dtype));
    }
    if (source.dtype == at::kFloat) return fmt::format("s.randn({})", list(sizes));
    if (source.dtype == at::kComplexFloat) {
      sizes.push_back(2);
      return fmt::format("at::view_as_complex(s.randn({}))", list(sizes));
    }
    return fmt::format("s.randn({}, at::k{})", list(sizes), c10::toString(source.dtype));
  }

  static std::string drawn(const Source& source, const Shape& shape) {
    auto sizes = sizes_in(source, shape);
    if (sizes.empty()) return fresh(source, sizes);
    switch (source.place) {
      case Place::dense:
        break;
      case Place::transposed:
        std::swap(sizes.front(), sizes.back());
        return fresh(source, sizes) + ".transpose(0, -1)";
      case Place::strided:
        sizes.back() *= 2;
        return fresh(source, sizes) + fmt::format(".slice(-1, 0, {}, 2)", sizes.back());
      case Place::offset: {
        const int64_t numel = c10::multiply_integers(sizes);
        return fresh(source, {numel + 3}) + fmt::format(".narrow(0, 3, {}).view({})", numel, list(sizes));
      }
      case Place::expanded: {
        auto one = sizes;
        one[0] = 1;
        return fresh(source, one) + ".expand(" + list(sizes) + ")";
      }
      case Place::channels_last:
        if (sizes.size() == 4) return fresh(source, sizes) + ".contiguous(at::MemoryFormat::ChannelsLast)";
        if (sizes.size() == 5) return fresh(source, sizes) + ".contiguous(at::MemoryFormat::ChannelsLast3d)";
        break;
    }
    return fresh(source, sizes);
  }

  std::string argument(size_t index, const Call& call) const {
    auto source = program_.inputs[index];
    if (source.shares < 0 && source.place == Place::dense) source.place = call.place;
    if (source.shares < 0) return drawn(source, call.shape) + (call.gradient ? ".requires_grad_()" : "");
    const auto base = "x" + std::to_string(source.shares);
    if (source.place == Place::transposed) return base + ".transpose(0, -1)";
    if (source.place == Place::offset) return fmt::format("{0}.narrow(0, 1, {0}.size(0) - 1)", base);
    return base;
  }

  void body(const Block& block) {
    for (const auto& instruction : block.body) print_instruction(instruction);
  }

  void print_instruction(const Instruction& instruction) {
    if (instruction.row->kind == Kind::control) return print_control(instruction);
    if (instruction.row->effect == Effect::train) {
      return line(fmt::format("m{}->{};", instruction.module, expression(instruction)));
    }
    if (instruction.row->effect != Effect::none) return line(expression(instruction) + ";");
    const auto& result = name(instruction.result);
    if (instruction.row->kind == Kind::module) {
      return line(fmt::format("Tensor {} = m{}->forward({});", result, instruction.module, expression(instruction)));
    }
    line(fmt::format("Tensor {} = {};", result, expression(instruction)));
  }

  void print_control(const Instruction& made) {
    const auto& result = name(made.result);
    line(fmt::format("Tensor {} = {};", result, name(made.operands[0])));
    line(opening(made));
    for (size_t i = 0; i < made.blocks.size(); ++i) {
      if (i > 0) line("} else {");
      ++depth_;
      body(made.blocks[i]);
      line(fmt::format("{} = {};", result, name(made.blocks[i].result)));
      --depth_;
    }
    line("}");
  }

  std::string opening(const Instruction& made) {
    const auto text = expression(made);
    switch (made.row->control) {
      case Control::branch:
      case Control::every:
      case Control::coin:
      case Control::flagged:
        return fmt::format("if ({}) {{", text);
      case Control::grad_mode:
        return fmt::format("{{ const at::AutoGradMode mode({});", text);
      case Control::loop:
      case Control::turns:
        return fmt::format("for (int i = 0; i < {}; ++i) {{", text);
      case Control::until:
        // The condition reads the value that the block changes.
        return fmt::format("for (int i = 0; i < {} && at::sum({}).item<double>() < {}; ++i) {{", kMostTurns,
                           name(made.result), number(made.numbers[0]));
      case Control::autocast:
        return fmt::format("{{  // const Autocast autocast(s.device().type(), {});", text);
      case Control::side_stream:
        return "{  // on another stream";
      case Control::none:
        break;
    }
    return "{";
  }

  /// The row's text with names for t[0], t[1], ... and numbers for n[0], n[1], ...
  std::string expression(const Instruction& instruction) {
    std::string out;
    const std::string_view text = instruction.row->text;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool begins = i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0;
      const bool indexed = begins && i + 3 < text.size() && text[i + 1] == '[' && text[i + 3] == ']';
      if (!indexed || (text[i] != 't' && text[i] != 'n')) {
        out += text[i];
        continue;
      }
      const size_t index = text[i + 2] - '0';
      out += text[i] == 't' ? name(instruction.operands[index]) : number(instruction.numbers[index]);
      i += 3;
    }
    return out;
  }

  void results() {
    std::vector<std::string> outputs;
    for (const Name output : program_.outputs) outputs.push_back(name(output));
    if (!steps()) return line(fmt::format("return std::vector<Tensor>{{{}}};", fmt::join(outputs, ", ")));
    line("optimizer.zero_grad();");
    line(fmt::format("Tensor loss = at::mean({}.to(at::kFloat));", outputs[0]));
    line("loss.backward();");
    line("optimizer.step();");
    line("return std::vector<Tensor>{loss.detach()};");
  }

  void event(Event event) {
    if (event == Event::toggle_flag) line("flag = !flag;");
    if (const auto pair = alike(program_.state); event == Event::swap_state && pair) {
      line(fmt::format("std::swap(s{}, s{});", pair->first, pair->second));
    }
    for (size_t i = 0; i < program_.state.size(); ++i) {
      if (event == Event::update_state) line(fmt::format("s{}.mul_(0.5).add_(0.25);", i));
      if (event == Event::replace_state) line(fmt::format("s{} = {};", i, drawn(program_.state[i], {})));
    }
    for (size_t i = 0; i < program_.modules.size(); ++i) {
      if (event == Event::train) line(fmt::format("m{}->train();", i));
      if (event == Event::eval) line(fmt::format("m{}->eval();", i));
      if (event == Event::update_parameters) line(fmt::format("for (auto& p : m{}->parameters()) p.mul_(0.75);", i));
      if (event == Event::write_data) line(fmt::format("for (auto& p : m{}->parameters()) p.data().mul_(0.75);", i));
      if (event == Event::replace_parameter && program_.modules[i].kind == ModuleKind::linear) {
        line(fmt::format("m{0}->weight = s.randn(m{0}->weight.sizes());", i));
      }
    }
  }

  void print_call(const Call& call) {
    event(call.before);
    const bool again = program_.keeps_inputs && &call != &program_.calls.front();
    if (!again) {
      if (!program_.keeps_inputs) line("{");
      std::vector<std::string> names;
      for (size_t i = 0; i < program_.inputs.size(); ++i) line(fmt::format("Tensor x{} = {};", i, argument(i, call)));
    }
    std::vector<std::string> names;
    for (size_t i = 0; i < program_.inputs.size(); ++i) names.push_back("x" + std::to_string(i));
    line(fmt::format("f(std::vector<Tensor>{{{}}}, {});{}", fmt::join(names, ", "), number(call.scale),
                     call.other_stream ? "  // on another stream" : ""));
    if (!again && !program_.keeps_inputs) line("}");
  }

  const Program& program_;
  std::map<Name, std::string> names_;
  std::string text_;
  int depth_ = 0;
};

}  // namespace

std::string to_cpp(const Program& program) { return Printer(program).print(); }

}  // namespace sinter::test::fuzz
