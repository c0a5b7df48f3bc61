#include "tests/emulator/emulator.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <sstream>
#include <stdexcept>

/// Libraries of kernels stay open: what they hold at exit is no leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT(bugprone-reserved-identifier)

namespace sinter::test {
namespace {

constexpr size_t kernels_per_file = 64;

std::filesystem::path scratch_directory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "sinter-emulator-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("emulator: no scratch directory");
  return pattern;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Kernels of one file stand in namespaces of their own; a macro keeps their C names apart.
std::string source_of(std::span<const KernelSource> kernels, size_t first) {
  std::string text = "#include \"cuda_on_cpu.h\"\n";
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto& kernel = kernels[i];
    const std::string symbol = fmt::format("kernel{}", first + i);
    text +=
        fmt::format("#define {0} {1}\nnamespace {1}_scope {{\n{2}\n}}\n#undef {0}\n", kernel.name, symbol, kernel.text);
    text += fmt::format(
        "extern \"C\" void launch_{0}(void** args, unsigned grid, unsigned block) {{\n"
        "  run_grid(&{0}_scope::{0}, args, grid, block);\n}}\n",
        symbol);
  }
  return text;
}

/// Compiles one file to a shared object and opens it. Compiling names no folder, so that a compiler cache knows the
/// text again.
void* build(const std::filesystem::path& directory, const std::string& text, size_t number) {
  const std::string name = fmt::format("kernels{}", number);
  const std::string path = (directory / name).string();
  std::ofstream(path + ".cpp") << text;
  const std::string command = fmt::format(
      "cd {0} && exec > {1}.log 2>&1 && "
      "{2} {3} -std=c++17 -O1 -w -fPIC -fwrapv -fno-strict-aliasing -ffp-contract=off -fsanitize=address,alignment "
      "-fno-sanitize-recover=alignment -c {1}.cpp -o {1}.o && "
      "{3} -shared -fsanitize=address,alignment {1}.o -o {1}.so",
      directory.string(), name, SINTER_COMPILER_LAUNCHER, SINTER_COMPILER);
  if (system(command.c_str()) != 0) {
    throw std::runtime_error(fmt::format("emulator: {}.cpp does not compile\n{}", path, read(path + ".log")));
  }
  void* library = dlopen((path + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(fmt::format("emulator: {}", dlerror()));
  return library;
}

}  // namespace

Emulator::Emulator(std::span<const KernelSource> kernels) : directory_(scratch_directory()) {
  std::filesystem::copy(std::filesystem::path(SINTER_SOURCE_DIR) / "tests/emulator/cuda_on_cpu.h", directory_);
  std::vector<std::future<void*>> libraries;
  for (size_t first = 0; first < kernels.size(); first += kernels_per_file) {
    const auto part = kernels.subspan(first, std::min(kernels_per_file, kernels.size() - first));
    const auto text = source_of(part, first);
    const size_t number = libraries.size();
    // Two compilers at a time.
    if (number >= 2) libraries[number - 2].wait();
    libraries.push_back(std::async(std::launch::async, build, directory_, text, number));
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (i % kernels_per_file != 0) continue;
    void* library = libraries[i / kernels_per_file].get();
    for (size_t k = i; k < std::min(i + kernels_per_file, kernels.size()); ++k) {
      const auto launch = reinterpret_cast<Launch>(dlsym(library, fmt::format("launch_kernel{}", k).c_str()));
      entries_.push_back({.launch = launch, .grid = kernels[k].grid[0], .block = kernels[k].block[0]});
    }
  }
}

Emulator::~Emulator() { std::filesystem::remove_all(directory_); }

void Emulator::run(size_t index, std::span<const EmulatedArg> args) const {
  std::vector<EmulatedArg> values(args.begin(), args.end());
  std::vector<void*> pointers;
  for (auto& value : values) {
    pointers.push_back(std::visit([](auto& held) { return static_cast<void*>(&held); }, value));
  }
  const Entry& entry = entries_.at(index);
  entry.launch(pointers.data(), entry.grid, entry.block);
}

}  // namespace sinter::test
