#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <string>

#include "compiler/support/errors.h"
#include "compiler/support/first_line.h"
#include "frontend/command/commands.h"
#include "frontend/report/events.h"

/// The `sinter` program: options in, one of the commands, exit code out. 0 done, 1 a check failed (with --strict:
/// Sinter itself did), 2 misuse.
namespace sinter::command {
namespace {

void add_target(CLI::App& app, TargetOptions& target, bool model_required) {
  auto* model =
      app.add_option("model", target.model, "name of a built-in model (sinter models), or a .pt2 or .pt file");
  if (model_required) model->required();
  app.add_option("--input", target.inputs, "an input, e.g. f16[1,3,224,224] or i64[1,128]<30000; once for each")
      ->allow_extra_args(false);
  app.add_option("--set", target.settings, "a setting of the model, e.g. depth=2 (sinter models); once for each")
      ->allow_extra_args(false);
  app.add_option("--inputs", target.inputs_file, "arguments that torch.save wrote: a list or tuple");
  app.add_option("--weights", target.weights, "state dict that torch.save wrote, for a built-in model");
  app.add_option("--device", target.device, "cpu, cuda or cuda:1 (a GPU if there is one)");
  app.add_option("--dtype", target.dtype, "convert the model and its float inputs: f32, f16, bf16, f64");
  app.add_option("--numerics", target.numerics, "fast or eager: where half values are rounded");
  app.add_option("--replay", target.replay,
                 "checked or trusted: whether replays run the host code; automatic: trusted for files")
      ->check(CLI::IsMember({"automatic", "checked", "trusted"}));
  app.add_option("--batch", target.batch, "replace dim 0 of every input")->check(CLI::NonNegativeNumber);
  app.add_option("--seed", target.seed, "of weights and inputs");
  app.add_flag("--train", target.train, "whole training steps: forward, cross entropy, backward, optimizer");
  app.add_option("--amp", target.amp, "with --train: autocast of the forward pass, f16 or bf16");
  app.add_option("--optimizer", target.optimizer, "with --train: sgd (with momentum; the default), adamw or radam");
  app.add_flag("--freeze", target.freeze, "compute what depends on state alone once");
  app.add_flag("--strict", target.strict, "stop at an internal error instead of running through ATen");
  app.add_flag("--fullgraph", target.fullgraph, "stop at a graph break instead of running as eager runs");
}

/// The command line, and what was chosen.
class Program {
 public:
  Program() {
    app_.require_subcommand(1);
    auto* run_app = app_.add_subcommand("run", "compile, call, compare with eager, print the report");
    add_target(*run_app, run_.target, true);
    run_app->add_option("--mode", run_.target.mode, "default, reduce-overhead or max-autotune");
    run_app->add_option("--json", run_.json, "write the report as JSON to this file");
    run_app->add_option("--check", run_.expected, "compare with results that torch.save wrote");
    run_app->add_option("--out", run_.out, "save the results for torch.load");
    run_app->add_option("--calls", run_.calls, "how often to call")->check(CLI::PositiveNumber);
    auto* explain_app = app_.add_subcommand("explain", "what was captured, what broke, what is guarded");
    add_target(*explain_app, run_.target, true);
    explain_app->add_option("--mode", run_.target.mode, "default, reduce-overhead or max-autotune");
    explain_app->add_option("--json", run_.json, "write the report as JSON to this file");
    auto* bench_app = app_.add_subcommand("bench", "measure models and modes, each in a fresh process");
    add_bench(*bench_app);
    add_profile(*app_.add_subcommand("profile", "where steps spend time and memory: module, line, phase"));
    add_compile_times(*app_.add_subcommand("compile-times", "where compile time goes: phase, function, kernel"));
    auto* demo_app = app_.add_subcommand("demo", "GELU MLP and ResNet-50 in both modes");
    demo_app->add_option("--device", bench_.target.device, "cpu, cuda or cuda:1 (a GPU if there is one)");
    demo_app->add_option("--json", bench_.json, "write rows as JSON to this file");
    demo_app->add_option("--report", bench_.text, "the report file (sinter-demo.txt)");
    auto* dump_app = app_.add_subcommand("dump", "print the IR, kernels and plan of a model");
    add_target(*dump_app, dump_.target, true);
    dump_app->add_option("--what", dump_.items, "items of SINTER_DUMP, e.g. after:fuse,cuda,plan, or help")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->default_val(std::vector<std::string>{"after:fuse"});
    auto* opt_app = app_.add_subcommand("opt", "run passes over a graph in text form");
    opt_app->add_option("file", opt_.file, "graph file, or - for standard input")->default_val("-");
    opt_app->add_option("--pass", opt_.passes, "a pass to run, or all; once for each, in order")
        ->allow_extra_args(false);
    opt_app->add_flag("--freeze", opt_.freeze, "state never changes");
    opt_app->add_flag("--kernels", opt_.kernels, "run all passes; print the plan and the text of its kernels");
    opt_app->add_flag("--list", opt_.list, "list the passes");
    app_.add_subcommand("models", "list the built-in models");
    auto* ops_app = app_.add_subcommand("ops", "list ATen's operators and what becomes of each");
    ops_app->add_option("pattern", ops_.pattern, "part of the names to list");
    ops_app->add_option("--how", ops_.how, "fused, decomposed, opened, called, ends or answered");
    add_check_files(*app_.add_subcommand("check-files", "check a folder of .pt2 files against eager"));
    auto* files_child = app_.add_subcommand("check-files-child", "one share of check-files, in its own process");
    add_check_files(*files_child->group(""));
    files_child->add_option("--list", files_list_);
    files_child->add_option("--out", child_file_);
    add_child(*app_.add_subcommand("bench-child", "one measurement of bench, in its own process")->group(""));
  }

  int main(int argc, char** argv) {
    if (argc > 1 && argv[1][0] != '-') check_command(argv[1]);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app_.exit(error);
      throw UserError(std::string(error.what()) + ". Run sinter --help");
    }
    if (app_.got_subcommand("run")) return run(run_);
    if (app_.got_subcommand("explain")) return explain(run_);
    if (app_.got_subcommand("bench")) return bench(bench_);
    if (app_.got_subcommand("profile")) return profile(profile_);
    if (app_.got_subcommand("compile-times")) return show_compile_times(compile_times_);
    if (app_.got_subcommand("demo")) return demo(bench_);
    if (app_.got_subcommand("dump")) return dump(dump_);
    if (app_.got_subcommand("opt")) return opt(opt_);
    if (app_.got_subcommand("ops")) return ops(ops_);
    if (app_.got_subcommand("check-files")) return check_files(check_files_);
    if (app_.got_subcommand("check-files-child")) return check_files_child(check_files_, files_list_, child_file_);
    if (app_.got_subcommand("bench-child")) return bench_child(child_target_, child_, child_file_);
    return list_models();
  }

 private:
  void check_command(const std::string& name) const {
    std::string known;
    for (const CLI::App* command : app_.get_subcommands({})) {
      if (command->get_name() == name) return;
      if (!command->get_group().empty()) known += (known.empty() ? "" : ", ") + command->get_name();
    }
    throw UserError(fmt::format("command '{}' is unknown. Known: {}", name, known));
  }

  void add_bench(CLI::App& app) {
    add_target(app, bench_.target, false);
    app.add_option("--mode", bench_.modes, "default and reduce-overhead unless named; once for each")
        ->allow_extra_args(false);
    app.add_option("--json", bench_.json, "write rows as JSON to this file");
    app.add_option("--report", bench_.text, "write the table and the reports to this file");
    app.add_option("--html", bench_.html, "write the joined rows as a page with plots to this file");
    app.add_option("--budget", bench_.budget, "seconds of timing per measure")->check(CLI::PositiveNumber);
    app.add_option("--starts", bench_.starts, "fresh processes for each first call; their median counts")
        ->check(CLI::PositiveNumber);
    app.add_flag("--kernels", bench_.kernels, "also list every GPU kernel of one call, and whose it is");
    app.add_option("--losses", bench_.losses, "with --train: also the losses of so many steps, beside eager's")
        ->check(CLI::NonNegativeNumber);
    auto* from = app.add_option("--from", bench_.from, "join the rows of this result file instead of measuring");
    for (CLI::Option* measuring : app.get_options()) {
      const std::string name = measuring->get_single_name();
      if (measuring != from && name != "json" && name != "report" && name != "html" && name != "help")
        from->excludes(measuring);
    }
    app.add_option("--peer", bench_.peers, "join the rows of this file of bench/peers; once for each")
        ->allow_extra_args(false);
  }

  void add_profile(CLI::App& app) {
    add_target(app, profile_.target, true);
    app.add_option("--mode", profile_.mode, "eager, or eager beside default, reduce-overhead or max-autotune");
    app.add_option("--steps", profile_.steps, "steps that are traced")->check(CLI::PositiveNumber);
    app.add_option("--warmup", profile_.warmup, "steps before them")->check(CLI::NonNegativeNumber);
    app.add_flag("--deterministic", profile_.deterministic, "use deterministic algorithms where LibTorch has them");
    app.add_option("--json", profile_.json, "write everything as JSON to this file");
    app.add_option("--trace", profile_.trace, "write a trace for ui.perfetto.dev to this file");
    app.add_option("--html", profile_.html, "write a page with plots to this file");
  }

  void add_compile_times(CLI::App& app) {
    add_target(app, compile_times_.target, false);
    app.add_option("--mode", compile_times_.modes, "default and reduce-overhead unless named; once for each")
        ->allow_extra_args(false);
    app.add_option("--budget", compile_times_.budget, "seconds of timing per measure")->check(CLI::PositiveNumber);
    auto* from = app.add_option("--from", compile_times_.from,
                                "join what processes wrote, a file or a folder of files; once for each");
    from->allow_extra_args(false);
    for (CLI::Option* measuring : app.get_options()) {
      if (measuring != from && measuring->get_single_name() != "help") from->excludes(measuring);
    }
    app.add_option("--json", compile_times_.json, "write what is joined as JSON to this file");
    app.add_option("--trace", compile_times_.trace, "write a trace for ui.perfetto.dev to this file");
    app.add_option("--html", compile_times_.html, "write a page with plots to this file");
  }

  void add_check_files(CLI::App& app) {
    app.add_option("folder", check_files_.folder, "folder of .pt2 files")->required();
    app.add_option("--only", check_files_.only, "files whose name holds this text");
    app.add_option("--device", check_files_.target.device, "cpu, cuda or cuda:1 (a GPU if there is one)");
    app.add_option("--mode", check_files_.target.mode, "default, reduce-overhead or max-autotune");
    app.add_option("--numerics", check_files_.target.numerics, "fast or eager: where half values are rounded");
    app.add_option("--calls", check_files_.calls, "how often to call each")->check(CLI::PositiveNumber);
    app.add_option("--jobs", check_files_.jobs, "processes at a time")->check(CLI::PositiveNumber);
    app.add_option("--timeout", check_files_.timeout, "seconds for one file")->check(CLI::PositiveNumber);
    app.add_option("--report", check_files_.report, "write counts and reasons as JSON to this file");
    app.add_flag("--progress", check_files_.progress, "say on standard error how far it is");
  }

  void add_child(CLI::App& app) {
    add_target(app, child_target_, true);
    app.add_option("--mode", child_target_.mode);
    app.add_option("--kind", child_.kind);
    app.add_option("--budget", child_.budget);
    app.add_option("--losses", child_.losses);
    app.add_option("--out", child_file_);
  }

  CLI::App app_{"torch.compile for LibTorch C++", "sinter"};
  RunOptions run_;
  BenchOptions bench_;
  DumpOptions dump_;
  ProfileCommand profile_;
  CompileTimesOptions compile_times_;
  OptOptions opt_;
  OpsOptions ops_;
  CheckFilesOptions check_files_;
  std::string files_list_;
  TargetOptions child_target_;
  ChildOptions child_;
  std::string child_file_;
};

}  // namespace
}  // namespace sinter::command

int main(int argc, char** argv) {
  using sinter::first_line;
  try {
    return sinter::command::Program().main(argc, argv);
  } catch (const sinter::command::AlreadySaid&) {
    return 2;
  } catch (const sinter::UserError& error) {
    fmt::print(stderr, "sinter: {}\n", first_line(error.what()));
    return 2;
  } catch (const sinter::InternalError& error) {
    fmt::print(stderr, "sinter: internal error: {}{}\n", first_line(error.what()), sinter::frontend::saved_text(error));
    return 1;
  } catch (const c10::Error& error) {
    fmt::print(stderr, "sinter: the model refused its input: {}\n", first_line(error.what()));
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sinter: {}\n", first_line(error.what()));
    return 2;
  }
}
