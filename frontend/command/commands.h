#pragma once

#include <exception>
#include <string>
#include <vector>

#include "frontend/command/target.h"

/// The subcommands of the `sinter` program. Each returns the exit code: 0, or 1 for a check that failed. Misuse is a
/// UserError, which main turns into exit code 2.
namespace sinter::command {

/// Misuse that a child process has already written to standard error.
class AlreadySaid : public std::exception {};

struct RunOptions {
  TargetOptions target;
  std::string json;      ///< report file; empty: none
  std::string expected;  ///< file with the results there should be; empty: none
  std::string out;       ///< file for the results of the last call; empty: none
  int64_t calls = 3;
};
/// Compiles, calls, compares every result with eager and prints the report.
int run(const RunOptions& options);

/// Compares a result with the one that torch.save wrote into a file, by the benchmark's rule, and prints the largest
/// error, its place and eager's error. Throws UserError for a file that does not fit the result.
int check_against(const std::string& file, const Target& target, const c10::IValue& result, const Tensors& inputs);

/// Like run, but prints what broke, what was guarded and what was fused instead of the whole report.
int explain(const RunOptions& options);

struct DumpOptions {
  TargetOptions target;
  std::vector<std::string> items;  ///< of SINTER_DUMP: "after:fuse", "cuda", "plan"
};
/// Compiles and prints the named items to standard error (or SINTER_DUMP_DIR).
int dump(const DumpOptions& options);

struct OptOptions {
  std::vector<std::string> passes;
  std::string file;  ///< "-": standard input
  bool list = false;
  bool freeze = false;   ///< state never changes
  bool kernels = false;  ///< all passes, then the plan and the text of its kernels
};
/// Runs passes over a graph in text form and prints the result.
int opt(const OptOptions& options);

int list_models();

struct OpsOptions {
  std::string pattern;  ///< part of the names to list; empty: all
  std::string how;      ///< "fused", "called", ...; empty: all
};
/// Lists ATen's operators and what becomes of each when it is captured.
int ops(const OpsOptions& options);

struct BenchOptions {
  TargetOptions target;  ///< model empty: the standard set for the device
  std::vector<std::string> modes{"default", "reduce-overhead"};
  std::string json;
  std::string text;                ///< the table and reports, also to this file
  std::string html;                ///< the joined rows as a page with plots, to this file
  std::string from;                ///< own rows come from this file: nothing is measured
  std::vector<std::string> peers;  ///< files of rows that others measured, joined with the own rows
  double budget = 1.0;             ///< seconds of timing per measure
  int64_t starts = 3;              ///< fresh processes for each first call, whose median counts
  bool kernels = false;            ///< also every GPU kernel of one call, and whose it is
  int64_t losses = 0;              ///< training steps whose losses are compared with eager's
};
/// Measures models and modes, each in a fresh process, and prints one row each.
int bench(const BenchOptions& options);

/// Joins rows that files hold: options.from and options.peers. Prints and writes what bench would.
int compare(const BenchOptions& options);

/// GELU MLP and ResNet-50 in both modes, with a report file.
int demo(const BenchOptions& options);

struct ProfileCommand {
  TargetOptions target;
  std::string mode = "eager";  ///< else the mode that is profiled beside eager
  int64_t steps = 3;
  int64_t warmup = 3;
  bool deterministic = false;  ///< LibTorch's deterministic algorithms, where it has them
  std::string json;            ///< file; empty: none
  std::string trace;           ///< file for Perfetto; empty: none
  std::string html;            ///< file; empty: none
};
/// Where a model's steps spend time and memory, by phase, module, operator and line.
int profile(const ProfileCommand& options);

struct CompileTimesOptions {
  TargetOptions target;
  std::vector<std::string> modes{"default", "reduce-overhead"};
  std::vector<std::string> from;  ///< files of sinter::CompileTimes::json(), or folders of them: nothing is measured
  double budget = 1.0;            ///< seconds of timing per measure
  std::string json;               ///< file; empty: none
  std::string trace;              ///< file for Perfetto; empty: none
  std::string html;               ///< file; empty: none
};
/// Where compile time goes in several processes: those that files tell of, or a fresh one for each mode of a model.
int show_compile_times(const CompileTimesOptions& options);

/// A line that says after how many calls compiling has paid.
[[nodiscard]] std::string pays_line(double compile_seconds, double eager_ms, double compiled_ms);

struct CheckFilesOptions {
  TargetOptions target;  ///< device, mode and numerics
  std::string folder;    ///< of .pt2 files, with the index.json of tests/conformance/export_samples.py or without
  std::string only;      ///< files whose name holds this; empty: all
  std::string report;    ///< JSON file; empty: none
  int64_t calls = 6;
  int64_t jobs = 2;      ///< processes at a time
  int64_t timeout = 60;  ///< seconds for one file
  bool progress = false;
};
/// Runs every file eager and compiled on the same inputs and prints, for each dtype, how many agree, ran eager, were
/// refused or differ, and why. 1 where one differs or ends its process.
int check_files(const CheckFilesOptions& options);

/// The files named in `list`, in this process; one line of JSON each in `out`.
int check_files_child(const CheckFilesOptions& options, const std::string& list, const std::string& out);

/// One measurement of `bench`, which has a process of its own.
struct ChildOptions {
  std::string kind;     ///< "eager", "start", "compiled", "kernels", "losses" or "compile"
  double budget = 1.0;  ///< seconds of timing per measure
  int64_t losses = 0;   ///< training steps whose losses are compared with eager's
};
/// Measures in this process; prints its JSON to `file`.
int bench_child(const TargetOptions& target, const ChildOptions& child, const std::string& file);

}  // namespace sinter::command
