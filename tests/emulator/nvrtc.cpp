#include "tests/emulator/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "compiler/support/cuda_options.h"

namespace sinter::test {

/// NVRTC's C functions; a program is an opaque pointer and 0 is success.
struct Nvrtc::Functions {
  int (*create)(void** program, const char* text, const char* name, int headers, const char* const*,
                const char* const*);
  int (*compile)(void* program, int options, const char* const* option);
  int (*log_size)(void* program, size_t* size);
  int (*log)(void* program, char* text);
  int (*ptx_size)(void* program, size_t* size);
  int (*ptx)(void* program, char* text);
  int (*destroy)(void** program);
};

namespace {

template <class F>
bool find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  return function != nullptr;
}

/// NVRTC and its builtins of a folder; null where it is not there. NVRTC finds the builtins in its own folder by
/// itself, but not where a sanitizer opens them in its place.
void* open_in(const std::string& folder) {
  void* library = dlopen((folder + "/libnvrtc.so.13").c_str(), RTLD_NOW);
  if (library == nullptr) return nullptr;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().filename().string().starts_with("libnvrtc-builtins.so.")) dlopen(file.path().c_str(), RTLD_NOW);
  }
  return library;
}

}  // namespace

std::optional<Nvrtc> Nvrtc::open() {
  const char* now = std::getenv("SINTER_LIBTORCH");
  const std::string root = now != nullptr ? now : SINTER_LIBTORCH_FOLDER;
  if (root.empty()) return std::nullopt;
  void* library = nullptr;
  for (const char* folder : {"/nvidia/cu13/lib", "/../nvidia/cu13/lib"}) {
    if (library == nullptr) library = open_in(root + folder);
  }
  if (library == nullptr) throw std::runtime_error("no NVRTC in " + root);
  Functions functions{};
  const bool complete =
      find(library, "nvrtcCreateProgram", functions.create) &&
      find(library, "nvrtcCompileProgram", functions.compile) &&
      find(library, "nvrtcGetProgramLogSize", functions.log_size) &&
      find(library, "nvrtcGetProgramLog", functions.log) && find(library, "nvrtcGetPTXSize", functions.ptx_size) &&
      find(library, "nvrtcGetPTX", functions.ptx) && find(library, "nvrtcDestroyProgram", functions.destroy);
  if (!complete) throw std::runtime_error("NVRTC in " + root + " lacks functions");
  Nvrtc nvrtc;
  nvrtc.functions_ = std::make_shared<const Functions>(functions);
  return nvrtc;
}

Nvrtc::Compiled Nvrtc::compile(std::span<const KernelSource> kernels, const char* architecture) const {
  std::string text;
  for (size_t i = 0; i < kernels.size(); ++i) {
    text += fmt::format("#define {0} kernel{1}\nnamespace scope{1} {{\n{2}\n}}\n#undef {0}\n", kernels[i].name, i,
                        kernels[i].text);
  }
  void* program = nullptr;
  functions_->create(&program, text.c_str(), "kernels.cu", 0, nullptr, nullptr);
  std::vector<std::string> options{fmt::format("--gpu-architecture={}", architecture), "--minimal"};
  options.insert(options.end(), cuda_options.begin(), cuda_options.end());
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const int failed = functions_->compile(program, static_cast<int>(pointers.size()), pointers.data());
  const auto text_of = [&](auto size_of, auto read) {
    size_t size = 0;
    size_of(program, &size);
    std::string result(size, '\0');
    read(program, result.data());
    return result;
  };
  Compiled compiled;
  if (failed != 0) compiled.log = text_of(functions_->log_size, functions_->log);
  if (failed == 0) compiled.ptx = text_of(functions_->ptx_size, functions_->ptx);
  functions_->destroy(&program);
  return compiled;
}

}  // namespace sinter::test
