#include "frontend/model_file/exported_tensors.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/support/errors.h"
#include "compiler/support/first_line.h"
#include "frontend/model_file/exported_graph.h"
#include "frontend/model_file/pickle_dicts.h"
#include "frontend/model_file/zip_directory.h"

namespace sinter::frontend {
namespace {

using Json = nlohmann::json;
using Tensors = std::map<std::string, at::Tensor>;

/// Elements from the first to the last that a layout reaches; nothing where sizes are negative or too large.
std::optional<int64_t> reach(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t offset) {
  if (sizes.size() != strides.size() || offset < 0) return std::nullopt;
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t step = 0;
    if (sizes[i] < 0 || strides[i] < 0) return std::nullopt;
    if (sizes[i] == 0) return 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last)) {
      return std::nullopt;
    }
  }
  return last + 1;
}

/// Reads tensors of one folder of an archive.
class TensorReader {
 public:
  TensorReader(Archive& archive, std::string folder) : archive_(archive), folder_(std::move(folder)) {}

  Tensors read(const std::string& config) {
    Tensors tensors;
    const Json document = Json::parse(archive_.text(folder_ + config));
    for (const auto& [name, entry] : document.at("config").items()) {
      if (auto tensor = stored(name, entry); tensor.defined()) tensors.emplace(name, std::move(tensor));
    }
    return tensors;
  }

 private:
  at::Tensor stored(const std::string& name, const Json& entry) {
    const auto file = folder_ + entry.at("path_name").get<std::string>();
    const Json& meta = entry.at("tensor_meta");
    if (meta.is_null()) return {};  // an object that is no tensor: an error where a node uses it
    if (entry.at("use_pickle").get<bool>()) {
      const c10::IValue value = read_pickle(archive_.path() + ": '" + name + "'", archive_.text(file));
      if (!value.isTensor()) throw misfit(name);
      return value.toTensor();
    }
    return strided(name, bytes(file), meta);
  }

  [[nodiscard]] UserError misfit(const std::string& name) const {
    return UserError(fmt::format("{}: damaged: tensor '{}' does not fit into its bytes", archive_.path(), name));
  }

  at::Tensor strided(const std::string& name, const c10::Storage& storage, const Json& meta) const {
    const auto sizes = parse_static(meta.at("sizes"));
    const auto strides = parse_static(meta.at("strides"));
    const int64_t offset = parse_static(Json::array({meta.at("storage_offset")})).front();
    at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(exported_dtype(meta.at("dtype").get<int64_t>())));
    const auto elements = reach(sizes, strides, offset);
    const int64_t available = static_cast<int64_t>(storage.nbytes() / tensor.element_size());
    if (!elements || *elements > available) throw misfit(name);
    tensor.set_(storage, offset, sizes, strides);
    return tensor;
  }

  c10::Storage bytes(const std::string& file) {
    const auto known = storages_.find(file);
    if (known != storages_.end()) return known->second;
    return storages_.emplace(file, archive_.bytes(file)).first->second;
  }

  Archive& archive_;
  std::string folder_;
  std::map<std::string, c10::Storage> storages_;
};

/// A dict of tensors that torch.save wrote, as PyTorch 2.8 stores them.
Tensors read_state(Archive& archive, const std::string& file) {
  Tensors tensors;
  const c10::IValue value = read_pickle(archive.path() + ": " + file, archive.text(file));
  if (!value.isGenericDict()) throw UserError(archive.path() + ": damaged: " + file + " is no dict of tensors");
  for (const auto& item : value.toGenericDict()) {
    if (item.key().isString() && item.value().isTensor()) {
      tensors.emplace(item.key().toStringRef(), item.value().toTensor());
    }
  }
  return tensors;
}

Tensors read_folder(Archive& archive, const std::string& folder, const std::string& model, const std::string& kind) {
  if (archive.has(folder + model + ".pt")) return read_state(archive, folder + model + ".pt");
  try {
    return TensorReader(archive, folder).read(fmt::format("{}_{}_config.json", model, kind));
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {  // of the JSON library or of a table look-up
    throw UserError(fmt::format("{}: damaged: the list of its {}: {}", archive.path(), kind, first_line(error.what())));
  }
}

/// What torch::jit::pickle_load gives, but with OrderedDicts. Types by name are unknown to it, so that none is made.
c10::IValue unpickle(const std::string& bytes) {
  std::istringstream stream(bytes, std::ios::binary);
  caffe2::serialize::PyTorchStreamReader records(&stream);
  const auto [data, size] = records.getRecord("data.pkl");
  const std::string pickle = with_plain_dicts({static_cast<const char*>(data.get()), size});
  size_t next = 0;
  const auto read = [&](char* into, size_t count) {
    const size_t copied = pickle.copy(into, count, next);
    next += copied;
    return copied;
  };
  const auto storage = [&](const std::string& name) { return std::get<0>(records.getRecord("data/" + name)); };
  torch::jit::Unpickler unpickler(read, nullptr, nullptr, storage, std::nullopt);
  unpickler.set_version(records.version());
  return unpickler.parse_ivalue();
}

}  // namespace

c10::IValue read_pickle(const std::string& what, const std::string& bytes) {
  check_zip(what, bytes);
  try {
    return unpickle(bytes);
  } catch (const std::exception& error) {  // c10::Error, or what its pickle reader lets through
    const auto* known = dynamic_cast<const c10::Error*>(&error);
    const std::string reason = known != nullptr ? known->what_without_backtrace() : error.what();
    if (reason.starts_with("isGenericDict()")) {  // LibTorch's unpickler makes None of an OrderedDict with an argument
      throw UserError(what + ": it holds an OrderedDict in a form that LibTorch cannot read; save dict(...) of it");
    }
    throw UserError(
        fmt::format("{}: not tensors and containers of them that torch.save wrote: {}", what, first_line(reason)));
  }
}

ExportedTensors read_exported_tensors(Archive& archive, const std::string& model) {
  return {read_folder(archive, "data/weights/", model, "weights"),
          read_folder(archive, "data/constants/", model, "constants")};
}

}  // namespace sinter::frontend
