#include "tests/emulator/kernel_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <future>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace sinter::test {
namespace {

constexpr size_t kernels_per_file = 64;

struct Options {
  std::string_view name;
  std::string_view compile;
  std::string_view link;
};

/// Where accesses are traced, cuda_traced.h takes the thread sanitizer's place.
Options options_of(Build build) {
  if (build == Build::traced) return {"traced", "-DSINTER_TRACED -fsanitize=thread", ""};
  return {"kernels", "-fsanitize=address,alignment -fno-sanitize-recover=alignment", "-fsanitize=address,alignment"};
}

/// `extern __shared__ float a[];` becomes a pointer, because its size is known only at the launch.
std::string with_dynamic_shared(const std::string& text) {
  static const std::regex declaration(
      R"(extern\s+__shared__\s+((?:__align__|alignas)\s*\([^)]*\)\s*)?(\w[\w\s:]*?)\s*(\w+)\s*\[\s*\]\s*;)");
  return std::regex_replace(text, declaration, "$2* const $3 = dynamic_shared<$2>();");
}

/// Kernels stand in namespaces of their own, and a macro keeps their C names apart. Errors name lines of the text.
std::string wrapped(const KernelSource& kernel, size_t number) {
  constexpr std::string_view form = R"(
extern "C" __attribute__((weak)) char __start_shared_{1}[], __stop_shared_{1}[];
#define {0} {1}
#undef __shared__
#define __shared__ SINTER_SHARED("shared_{1}")
namespace {1}_scope {{ namespace {{
#line 1 "{0}"
{2}
}} }}
#undef {0}
extern "C" void launch_{1}(void** args, const sinter::test::Geometry& geometry, sinter::test::Machine* machine) {{
  run_grid(&{1}_scope::{1}, args, geometry, machine, __start_shared_{1}, __stop_shared_{1});
}}
)";
  return fmt::format(form, kernel.name, fmt::format("kernel{}", number), with_dynamic_shared(kernel.text));
}

/// One file for kernels[numbers[0]], kernels[numbers[1]], ...
std::string file_of(std::span<const KernelSource> kernels, std::span<const size_t> numbers) {
  std::string text = "#include \"cuda_on_cpu.h\"\n";
  for (const size_t number : numbers) text += wrapped(kernels[number], number);
  return text;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Compiles one file to a shared object and opens it. Compiling names no folder, so that a compiler cache knows the
/// text again.
void* open(const std::filesystem::path& directory, const std::string& text, const Options& options, size_t number) {
  const std::string name = fmt::format("{}{}", options.name, number);
  const std::string path = (directory / name).string();
  std::ofstream(path + ".cpp") << text;
  const std::string command = fmt::format(
      "cd {0} && exec > {1}.log 2>&1 && "
      "{2} {3} -std=c++17 -O1 -w -fPIC -fwrapv -fno-strict-aliasing -ffp-contract=off {4} -c {1}.cpp -o {1}.o && "
      "{3} -shared {5} {1}.o -o {1}.so",
      directory.string(), name, SINTER_COMPILER_LAUNCHER, SINTER_COMPILER, options.compile, options.link);
  if (system(command.c_str()) != 0) {
    throw std::runtime_error(fmt::format("emulator: {}.cpp does not compile\n{}", path, read(path + ".log")));
  }
  void* library = dlopen((path + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(fmt::format("emulator: {}", dlerror()));
  return library;
}

}  // namespace

bool cooperates(const KernelSource& kernel) {
  constexpr std::array<std::string_view, 6> signs{"__shared__", "__sync", "__shfl_", "__ballot_", "__any_", "__all_"};
  return std::ranges::any_of(signs, [&](std::string_view sign) { return kernel.text.find(sign) != std::string::npos; });
}

std::vector<KernelLaunch> build_kernels(const std::filesystem::path& directory, std::span<const KernelSource> kernels,
                                        std::span<const size_t> numbers, Build build) {
  std::vector<std::future<void*>> libraries;
  for (size_t first = 0; first < numbers.size(); first += kernels_per_file) {
    const auto part = numbers.subspan(first, std::min(kernels_per_file, numbers.size() - first));
    const size_t number = libraries.size();
    // Two compilers at a time.
    if (number >= 2) libraries[number - 2].wait();
    libraries.push_back(
        std::async(std::launch::async, open, directory, file_of(kernels, part), options_of(build), number));
  }
  std::vector<void*> opened;
  for (auto& library : libraries) opened.push_back(library.get());
  std::vector<KernelLaunch> launches;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::string symbol = fmt::format("launch_kernel{}", numbers[i]);
    launches.push_back(reinterpret_cast<KernelLaunch>(dlsym(opened[i / kernels_per_file], symbol.c_str())));
  }
  return launches;
}

}  // namespace sinter::test
