#include "frontend/model_file/archive.h"

#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/errors.h"
#include "compiler/support/first_line.h"
#include "frontend/model_file/zip_directory.h"

namespace sinter::frontend {
namespace {

/// The layout of torch.export.save before PyTorch 2.8.
bool is_old_export(const std::vector<ZipEntry>& entries) {
  return std::ranges::any_of(
      entries, [](const ZipEntry& entry) { return entry.name.ends_with("serialized_exported_program.json"); });
}

/// Names without the folder that all files of the archive lie in.
std::vector<std::string> names_inside(const std::string& path, const std::vector<ZipEntry>& entries) {
  const std::string& first = entries.front().name;
  const std::string folder = first.substr(0, first.find('/') + 1);
  std::vector<std::string> names;
  for (const ZipEntry& entry : entries) {
    if (folder.empty() || !entry.name.starts_with(folder)) {
      throw UserError(path + ": a zip archive, but no model that LibTorch wrote");
    }
    names.push_back(entry.name.substr(folder.size()));
  }
  return names;
}

}  // namespace

Archive::Archive(std::string path) : path_(std::move(path)) {
  const std::vector<ZipEntry> entries = read_zip_directory(path_);
  if (is_old_export(entries)) {
    throw UserError(path_ +
                    ": written by torch.export.save of a PyTorch before 2.8, which had another layout; load it there, "
                    "or export the model again, and save it with PyTorch 2.8 or newer");
  }
  names_ = names_inside(path_, entries);
  try {
    reader_ = std::make_unique<caffe2::serialize::PyTorchStreamReader>(path_);
  } catch (const c10::Error& error) {
    throw UserError(fmt::format("{}: not a model that LibTorch wrote: {}", path_, first_line(error.what())));
  }
}

Archive::~Archive() = default;

bool Archive::has(const std::string& name) const { return std::ranges::find(names_, name) != names_.end(); }

std::string Archive::text(const std::string& name) {
  const c10::Storage content = bytes(name);
  return {static_cast<const char*>(content.data()), content.nbytes()};
}

c10::Storage Archive::bytes(const std::string& name) {
  if (!has(name)) throw UserError(fmt::format("{}: damaged: '{}' is missing", path_, name));
  try {
    auto [data, size] = reader_->getRecord(name);
    return c10::Storage(c10::Storage::use_byte_size_t(), size, std::move(data));
  } catch (const c10::Error& error) {
    throw UserError(fmt::format("{}: damaged: '{}' cannot be read: {}", path_, name, first_line(error.what())));
  }
}

ArchiveKind kind_of(const Archive& archive) {
  const auto any = [&](auto&& test) { return std::ranges::any_of(archive.names(), test); };
  if (any([](const std::string& name) { return name.starts_with("models/") && name.ends_with(".json"); })) {
    return ArchiveKind::exported;
  }
  if (any([](const std::string& name) { return name.starts_with("code/"); }) && archive.has("data.pkl")) {
    return ArchiveKind::script;
  }
  return archive.has("data.pkl") ? ArchiveKind::pickle : ArchiveKind::other;
}

}  // namespace sinter::frontend
