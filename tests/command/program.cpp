#include "tests/command/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sinter::test {

namespace {

/// The program beside this one, as in a packed folder, or where the build put it.
std::string program_path() {
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sinter";
  return std::filesystem::exists(beside) ? beside.string() : SINTER_PROGRAM;
}

}  // namespace

Ran sinter(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  const Folder folder;
  const std::string out = folder.path("out");
  const std::string err = folder.path("err");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);

  std::string program = program_path();
  std::vector<std::string> owned = arguments;
  std::vector<char*> argv{program.data()};
  for (std::string& argument : owned) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<std::string> settings = environment;
  settings.emplace_back("SINTER_CACHE=off");  // unless a test says otherwise: the first of equal names counts
  std::vector<char*> envp;
  for (std::string& setting : settings) envp.push_back(setting.data());
  for (char** inherited = environ; *inherited != nullptr; ++inherited) envp.push_back(*inherited);
  envp.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, program.c_str(), &files, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::runtime_error(program + " cannot be started");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, text_of(out), text_of(err)};
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "sinter-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + " cannot be made");
  folder_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Folder::file(const std::string& name, const std::string& text) const {
  std::ofstream(path(name)) << text;
  return path(name);
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace sinter::test
