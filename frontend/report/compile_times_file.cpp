#include "frontend/report/compile_times_file.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "frontend/report/compile_log.h"

namespace sinter::frontend {
namespace {

namespace fs = std::filesystem;

/// The folder that SINTER_COMPILE_TIMES names; empty: none.
std::string folder_for_compile_times() {
  const char* folder = std::getenv("SINTER_COMPILE_TIMES");
  return folder == nullptr ? std::string() : folder;
}

/// Under another name first, so that a reader sees all of a file or none.
void write_whole(const fs::path& file, const std::string& text) {
  fs::path unfinished = file;
  unfinished += ".unfinished";
  std::ofstream out(unfinished, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(unfinished.string() + " cannot be written");
  fs::rename(unfinished, file);
}

void write_at_exit() noexcept {
  try {
    const CompileTimes times = CompileLog::of_process().snapshot();
    if (times.process != ::getpid()) return;
    const fs::path folder = folder_for_compile_times();
    fs::create_directories(folder);
    write_whole(folder / (times.program + "-" + std::to_string(times.process) + ".json"), times.json());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sinter: SINTER_COMPILE_TIMES: %s\n", error.what());
  }
}

}  // namespace

std::string program_name() {
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  return none ? "program" : program.filename().string();
}

bool write_compile_times_at_exit() { return !folder_for_compile_times().empty() && std::atexit(write_at_exit) == 0; }

}  // namespace sinter::frontend
