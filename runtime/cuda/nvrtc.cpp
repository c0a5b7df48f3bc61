#include "runtime/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <nvrtc.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "compiler/support/cuda_options.h"
#include "compiler/support/dump.h"
#include "compiler/support/errors.h"
#include "runtime/build_id.h"

namespace sinter::runtime::nvrtc {
namespace {

constexpr const char* library_name = "libnvrtc.so.13";
constexpr int log_lines_in_message = 6;

/// Every line of `text` as a comment, lines that are one already unchanged. Ends with a newline unless empty.
std::string commented(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.starts_with("//")) result += line.empty() ? "//" : "// ";
    result.append(line).append("\n");
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return result;
}

std::string first_lines(std::string_view text, int count) {
  size_t end = 0;
  for (int line = 0; line < count && end != std::string_view::npos; ++line) end = text.find('\n', end + 1);
  return std::string(text.substr(0, end));
}

/// Folders of libraries of LibTorch and CUDA that this process has loaded, and where NVRTC's wheel lies from there.
std::vector<std::filesystem::path> neighbours() {
  std::vector<std::filesystem::path> folders;
  const auto visit = [](dl_phdr_info* info, size_t, void* data) {
    const std::filesystem::path path(info->dlpi_name);
    const std::string name = path.filename().string();
    if (name.starts_with("libcudart.so") || name.starts_with("libtorch") || name.starts_with("libc10")) {
      auto& found = *static_cast<std::vector<std::filesystem::path>*>(data);
      found.push_back(path.parent_path());
      found.push_back(path.parent_path() / "../../nvidia/cu13/lib");
    }
    return 0;
  };
  dl_iterate_phdr(visit, &folders);
  if (const char* libtorch = std::getenv("SINTER_LIBTORCH")) {
    folders.push_back(std::filesystem::path(libtorch) / "nvidia/cu13/lib");
  }
  return folders;
}

void* open_library() {
  if (void* loaded = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD)) return loaded;
  // Beside LibTorch first: that is the one whose build ID is found without loading it.
  for (const auto& folder : neighbours()) {
    if (void* found = dlopen((folder / library_name).c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
  }
  return dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
}

/// The file NVRTC is loaded from; empty when it has not been.
std::filesystem::path loaded_file() {
  void* library = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return {};
  link_map* map = nullptr;
  const bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0;
  dlclose(library);
  return known ? map->l_name : "";
}

/// The file that NVRTC is or would be loaded from, as far as that is known without loading it.
std::filesystem::path library_file() {
  if (auto file = loaded_file(); !file.empty()) return file;
  for (const auto& folder : neighbours()) {
    std::error_code error;
    if (auto file = folder / library_name; std::filesystem::exists(file, error)) return file;
  }
  return {};
}

struct Api {
  decltype(&::nvrtcVersion) version = nullptr;
  decltype(&::nvrtcGetErrorString) error_string = nullptr;
  decltype(&::nvrtcCreateProgram) create = nullptr;
  decltype(&::nvrtcDestroyProgram) destroy = nullptr;
  decltype(&::nvrtcCompileProgram) compile = nullptr;
  decltype(&::nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&::nvrtcGetProgramLog) log = nullptr;
  decltype(&::nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&::nvrtcGetCUBIN) cubin = nullptr;
  std::string problem;

  Api() {
    void* library = open_library();
    if (library == nullptr) {
      problem = fmt::format("{} is neither on the library path nor beside LibTorch", library_name);
      return;
    }
    const auto resolve = [&](auto& slot, const char* name) {
      slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(library, name));
      if (slot == nullptr) problem = fmt::format("{} has no {}", library_name, name);
    };
    resolve(version, "nvrtcVersion");
    resolve(error_string, "nvrtcGetErrorString");
    resolve(create, "nvrtcCreateProgram");
    resolve(destroy, "nvrtcDestroyProgram");
    resolve(compile, "nvrtcCompileProgram");
    resolve(log_size, "nvrtcGetProgramLogSize");
    resolve(log, "nvrtcGetProgramLog");
    resolve(cubin_size, "nvrtcGetCUBINSize");
    resolve(cubin, "nvrtcGetCUBIN");
  }
};

const Api& find_api() {
  static const Api api;
  return api;
}

const Api& api() {
  const Api& found = find_api();
  if (!found.problem.empty()) throw InternalError("nvrtc", found.problem);
  return found;
}

void check(nvrtcResult result, const char* what) {
  if (result != NVRTC_SUCCESS) throw InternalError("nvrtc", fmt::format("{}: {}", what, api().error_string(result)));
}

/// One nvrtcProgram.
class Program {
 public:
  Program(const std::string& text, const std::string& name) {
    const std::string file = name + ".cu";
    check(api().create(&program_, text.c_str(), file.c_str(), 0, nullptr, nullptr), "nvrtcCreateProgram");
  }
  ~Program() { api().destroy(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return api().compile(program_, static_cast<int>(pointers.size()), pointers.data());
  }
  [[nodiscard]] std::string log() const {
    size_t size = 0;
    check(api().log_size(program_, &size), "nvrtcGetProgramLogSize");
    std::string text(size, '\0');
    check(api().log(program_, text.data()), "nvrtcGetProgramLog");
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
  }
  [[nodiscard]] std::vector<char> cubin() const {
    size_t size = 0;
    check(api().cubin_size(program_, &size), "nvrtcGetCUBINSize");
    std::vector<char> image(size);
    check(api().cubin(program_, image.data()), "nvrtcGetCUBIN");
    return image;
  }

 private:
  nvrtcProgram program_ = nullptr;
};

std::vector<std::string> option_list(int sm) {
  std::vector<std::string> all{fmt::format("--gpu-architecture=sm_{}", sm)};
  all.insert(all.end(), cuda_options.begin(), cuda_options.end());
  return all;
}

[[noreturn]] void refuse(const KernelSource& source, int sm, nvrtcResult result, const std::string& log) {
  std::string file = commented(source.comment);
  file += fmt::format("// NVRTC {}: {}\n", version(), options(sm));
  file += source.text + "\n" + commented(log);
  const std::string summary = log.empty() ? api().error_string(result) : first_lines(log, log_lines_in_message);
  throw InternalError("nvrtc", fmt::format("kernel {}: {}", source.name, summary),
                      save_artifact(source.name, "cu", file));
}

/// The thread of prewarm(), joined before the process ends.
class Prewarming {
 public:
  explicit Prewarming(int sm) : thread_([sm] { run(sm); }) {}
  ~Prewarming() { thread_.join(); }
  Prewarming(const Prewarming&) = delete;
  Prewarming& operator=(const Prewarming&) = delete;

 private:
  static void run(int sm) {
    try {
      KernelSource source;
      source.name = "prewarm";
      source.text = "extern \"C\" __global__ void prewarm(float* p) { p[threadIdx.x] = erff(p[threadIdx.x]); }";
      (void)compile(source, sm);
    } catch (const std::exception&) {
      // The compilation that needs the library reports what is wrong with it.
    }
  }

  std::thread thread_;
};

}  // namespace

std::string version() {
  int major = 0;
  int minor = 0;
  check(api().version(&major, &minor), "nvrtcVersion");
  return fmt::format("{}.{}", major, minor);
}

std::string identity() {
  static const std::string known = [] {
    std::filesystem::path file = library_file();
    if (file.empty()) {
      (void)api();  // not beside LibTorch: the loader finds it, or its absence is an error
      file = loaded_file();
    }
    if (const std::string id = build_id(file); !id.empty()) return fmt::format("{} build {}", library_name, id);
    std::error_code error;
    return fmt::format("{} {} of {} bytes", library_name, version(), std::filesystem::file_size(file, error));
  }();
  return known;
}

std::string options(int sm) { return fmt::format("{}", fmt::join(option_list(sm), " ")); }

std::vector<char> compile(const KernelSource& source, int sm) {
  Program program(source.text, source.name);
  const nvrtcResult result = program.compile(option_list(sm));
  if (result != NVRTC_SUCCESS) refuse(source, sm, result, program.log());
  return program.cubin();
}

std::optional<std::vector<char>> try_compile(const std::string& text, int sm) {
  Program program(text, "kernels");
  return program.compile(option_list(sm)) == NVRTC_SUCCESS ? std::optional(program.cubin()) : std::nullopt;
}

void prewarm(int sm) {
  // The library is opened first, on this thread: its own clean-up at exit then runs after the join below.
  if (!find_api().problem.empty()) return;
  try {
    static Prewarming once(sm);
  } catch (const std::system_error&) {
    // No thread to be had: the first compilation pays instead.
  }
}

}  // namespace sinter::runtime::nvrtc
