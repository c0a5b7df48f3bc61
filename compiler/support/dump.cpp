#include "compiler/support/dump.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace sinter {
namespace {

struct Row {
  std::string_view item;
  std::string_view shows;
};

constexpr std::array rows = {
    Row{"after:capture", "the graph as it was captured"},
    Row{"after:PASS", "the graph after a pass; sinter opt --list names them"},
    Row{"kernel", "the loop form of every generated kernel"},
    Row{"cuda", "CUDA C++ of every generated kernel"},
    Row{"llvm", "LLVM IR of every generated kernel"},
    Row{"plan", "the plan: buffers, calls and steps"},
    Row{"all", "all of the above"},
    Row{"help", "this table"},
};

bool known(std::string_view item) {
  if (item.starts_with("after:")) return true;
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.item == item; });
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// Letters, digits and a few marks only, so that a name is a file name everywhere.
std::string file_name(std::string_view text) {
  std::string name(text.substr(0, 120));
  for (char& c : name) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return name;
}

/// Every file of a process has its own number.
int next_number() {
  static std::atomic<int> number{0};
  return number.fetch_add(1);
}

bool write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  return file.good();
}

}  // namespace

Dump::Dump(std::string_view items, std::filesystem::path folder) : folder_(std::move(folder)) {
  while (!items.empty()) {
    const size_t comma = std::min(items.find(','), items.size());
    if (comma > 0) items_.emplace(items.substr(0, comma));
    items.remove_prefix(std::min(comma + 1, items.size()));
  }
}

const Dump& Dump::environment() {
  static const Dump dump = [] {
    Dump made(variable("SINTER_DUMP"), variable("SINTER_DUMP_DIR"));
    for (const std::string& item : made.items_) {
      if (!known(item)) std::fprintf(stderr, "sinter: SINTER_DUMP: unknown item '%s'\n", item.c_str());
      if (!known(item) || item == "help") std::fputs(help().c_str(), stderr);
    }
    return made;
  }();
  return dump;
}

bool Dump::wants(std::string_view item) const { return items_.contains(item) || items_.contains("all"); }

void Dump::write(std::string_view item, std::string_view stem, std::string_view text) const {
  if (!wants(item)) return;
  if (!folder_.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(folder_, ignored);
    char number[16];
    std::snprintf(number, sizeof number, "%03d-", next_number());
    if (write_file(folder_ / (number + file_name(stem) + "." + file_name(item)), text)) return;
  }
  const std::string heading = "// ---- " + std::string(stem) + " " + std::string(item) + " ----\n";
  std::fwrite(heading.data(), 1, heading.size(), stderr);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string Dump::help() {
  std::string text = "SINTER_DUMP=ITEM[,ITEM...] writes to standard error, or to files under SINTER_DUMP_DIR:\n";
  for (const Row& row : rows) {
    text += "  " + std::string(row.item) + std::string(16 - row.item.size(), ' ') + std::string(row.shows) + "\n";
  }
  return text;
}

std::string save_artifact(std::string_view stem, std::string_view extension, std::string_view text) {
  std::error_code error;
  std::filesystem::path folder = variable("SINTER_DUMP_DIR");
  if (folder.empty()) folder = std::filesystem::temp_directory_path(error);
  if (error) return {};
  std::filesystem::create_directories(folder, error);
  const std::string name = "sinter-" + file_name(stem) + "-" + std::to_string(getpid()) + "-" +
                           std::to_string(next_number()) + "." + file_name(extension);
  return write_file(folder / name, text) ? (folder / name).string() : std::string();
}

}  // namespace sinter
