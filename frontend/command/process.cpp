#include "frontend/command/process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/support/errors.h"

namespace sinter::command {

int run_self(const std::vector<std::string>& arguments) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> owned = arguments;
  std::vector<char*> argv{self.data()};
  for (std::string& argument : owned) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, self.c_str(), nullptr, nullptr, argv.data(), environ);
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

std::string TemporaryFile::read() const {
  std::ostringstream text;
  text << std::ifstream(path_).rdbuf();
  return text.str();
}

}  // namespace sinter::command
