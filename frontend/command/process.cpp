#include "frontend/command/process.h"

#include <ftw.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/support/errors.h"

namespace sinter::command {

int run_self(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> owned = arguments;
  std::vector<char*> argv{self.data()};
  for (std::string& argument : owned) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<std::string> settings = environment;
  std::vector<char*> envp;
  for (std::string& setting : settings) envp.push_back(setting.data());
  for (char** inherited = environ; *inherited != nullptr; ++inherited) envp.push_back(*inherited);
  envp.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, self.c_str(), nullptr, nullptr, argv.data(), envp.data());
  if (error != 0) throw UserError(self + ": cannot be started again: " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TemporaryFile::TemporaryFile() : path_((std::filesystem::temp_directory_path() / "sinter-bench-XXXXXX").string()) {
  const int file = mkstemp(path_.data());
  if (file < 0) throw UserError(path_ + ": cannot be created: " + std::strerror(errno));
  close(file);
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

TemporaryFolder::TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "sinter-bench-XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) throw UserError(path_ + ": cannot be created: " + std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  // Not std::filesystem's directory iteration: LibTorch exports one of another standard library.
  const auto remove = [](const char* path, const struct stat*, int, FTW*) { return ::remove(path); };
  ::nftw(path_.c_str(), remove, 8, FTW_DEPTH | FTW_PHYS);
}

std::string TemporaryFile::read() const {
  std::ostringstream text;
  text << std::ifstream(path_).rdbuf();
  return text.str();
}

}  // namespace sinter::command
