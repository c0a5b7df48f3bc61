#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/model_file/cases.h"

namespace sinter::test {
namespace {

using Json = nlohmann::json;

/// A folder of this process, removed at the end.
class BadFile : public ::testing::Test {
 protected:
  BadFile() { std::filesystem::create_directories(folder_); }
  ~BadFile() override {  // not remove_all: LibTorch exports one that does not work
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) unlink(entry.path().c_str());
    rmdir(folder_.c_str());
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  [[nodiscard]] std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  /// A file as LibTorch writes it, with these records.
  [[nodiscard]] std::string archive(const std::string& name, const std::map<std::string, std::string>& records) const {
    caffe2::serialize::PyTorchStreamWriter writer(path(name));
    for (const auto& [record, bytes] : records) writer.writeRecord(record, bytes.data(), bytes.size());
    writer.writeEndOfFile();
    return path(name);
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("sinter_bad_file_" + std::to_string(getpid()));
};

std::string bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// The records of a file under data/, but for those that the writer adds itself.
std::map<std::string, std::string> records_of(const std::string& name) {
  caffe2::serialize::PyTorchStreamReader reader(data_file(name));
  std::map<std::string, std::string> records;
  for (const std::string& record : reader.getAllRecords()) {
    if (record.starts_with(".data/") || record == "version" || record == "byteorder") continue;
    const auto [data, size] = reader.getRecord(record);
    records[record] = std::string(static_cast<const char*>(data.get()), size);
  }
  return records;
}

/// Loading throws a UserError of one line that names the file and says all of `parts`.
void expect_refused(const std::string& path, const std::vector<std::string>& parts,
                    const std::function<void(const std::string&)>& load) {
  try {
    load(path);
    FAIL() << path << " was not refused";
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_EQ(text.rfind(path, 0), 0U) << text;
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << ": " << text;
  }
}

void load_model(const std::string& path) { (void)Model(std::filesystem::path(path)); }
void load_tensors(const std::string& path) { (void)read_saved(path); }

void expect_refused(const std::string& path, const std::vector<std::string>& parts) {
  expect_refused(path, parts, load_model);
}

/// One entry of a zip directory, and an archive that consists of a directory alone.
struct Entry {
  std::string name;
  uint32_t packed = 0, size = 0;
};
std::string directory(const std::vector<Entry>& entries, size_t padding = 0) {
  const auto number = [](uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  std::string body;
  for (const Entry& entry : entries) {
    body += "PK\x01\x02" + number(0, 16) + number(entry.packed, 4) + number(entry.size, 4) +
            number(entry.name.size(), 2) + number(0, 16) + entry.name;
  }
  const std::string start(padding, 'x');
  return start + body + "PK\x05\x06" + number(0, 4) + number(entries.size(), 2) + number(entries.size(), 2) +
         number(body.size(), 4) + number(padding, 4) + number(0, 2);
}

TEST_F(BadFile, that_is_missing_a_folder_or_empty) {
  for (const auto& load : {load_model, load_tensors}) {
    expect_refused(path("absent.pt2"), {"no such file"}, load);
    expect_refused(std::filesystem::temp_directory_path().string(), {"not a file"}, load);
    expect_refused(file("empty.pt", ""), {"the file is empty"}, load);
  }
}

TEST_F(BadFile, that_holds_zeros_or_text) {
  for (const auto& load : {load_model, load_tensors}) {
    expect_refused(file("zeros.pt2", std::string(4096, '\0')), {"not a model file"}, load);
    expect_refused(file("text.pt", "import torch\n"), {"not a model file"}, load);
  }
}

TEST_F(BadFile, that_is_cut_off_anywhere) {
  for (const char* name : {"convnet.pt2", "traced.pt"}) {
    const std::string whole = bytes_of(data_file(name));
    for (size_t size = 1; size < whole.size(); size += whole.size() / 40) {
      expect_refused(file("cut.pt2", whole.substr(0, size)), {"cut off"});
    }
    expect_refused(file("cut.pt2", whole.substr(0, whole.size() - 1)), {});
  }
}

TEST_F(BadFile, that_is_a_zip_but_no_model) {
  expect_refused(file("no_folder.pt2", directory({{"readme.txt", 0, 0}})), {"no model that LibTorch wrote"});
  expect_refused(file("folder.pt2", directory({{"a/readme.txt", 0, 0}})), {"LibTorch wrote"});
  expect_refused(file("nothing.pt2", directory({})), {"the zip archive is empty"});
  expect_refused(archive("other.pt2", {{"notes/a.txt", "b"}}), {"neither torch.export.save nor torch.jit.save"});
  expect_refused(data_file("convnet.case.pt"), {"tensors that torch.save wrote, not a model"});
}

TEST_F(BadFile, that_would_unpack_to_far_more_than_it_is) {
  expect_refused(file("bomb.pt2", directory({{"m/data.pkl", 1000, 0xfffffff0}}, 2000)),
                 {"refused", "claims 4294967280 bytes"});
  const std::vector<Entry> overlapping(64, {"m/data.pkl", 1000, 1000});
  expect_refused(file("overlap.pt2", directory(overlapping, 2000)), {"refused", "overlap"});
}

TEST_F(BadFile, whose_paths_climb_out_of_it) {
  for (const char* name : {"m/../../etc/passwd", "/etc/passwd", "..", "m\\..\\x", "m/a/.."}) {
    expect_refused(file("climb.pt2", directory({{"m/version", 0, 0}, {name, 0, 0}})),
                   {"refused", "outside the archive"});
  }
}

TEST_F(BadFile, of_another_schema) {
  for (const auto& [major, advice] : std::map<int, std::string>{{9, "use a newer Sinter"}, {7, "export it again"}}) {
    auto records = records_of("convnet.pt2");
    Json model = Json::parse(records.at("models/model.json"));
    model["schema_version"]["major"] = major;
    records["models/model.json"] = model.dump();
    expect_refused(archive("schema.pt2", records), {"schema has version " + std::to_string(major), advice});
  }
}

TEST_F(BadFile, whose_graph_is_not_what_torch_export_writes) {
  auto records = records_of("convnet.pt2");
  const Json good = Json::parse(records.at("models/model.json"));
  const auto refused = [&](const std::function<void(Json&)>& edit, const std::vector<std::string>& parts) {
    Json model = good;
    edit(model);
    records["models/model.json"] = model.dump();
    expect_refused(archive("graph.pt2", records), parts);
  };
  const auto graph = [](Json& model) -> Json& { return model["graph_module"]["graph"]; };
  refused([&](Json& model) { graph(model).erase("nodes"); }, {"not what torch.export writes"});
  refused([&](Json& model) { graph(model)["nodes"] = 3; }, {"not what torch.export writes"});
  refused([&](Json& model) { graph(model)["nodes"].erase(0); }, {"used before it is made"});
  refused([&](Json& model) { graph(model)["nodes"][0]["target"] = "torch.ops.mylib.fancy.default"; },
          {"cannot be run here", "torch.ops.mylib.fancy.default", "unknown to this LibTorch"});
  refused([&](Json& model) { graph(model)["nodes"][0]["target"] = "torch.ops.higher_order.scan"; },
          {"cannot be run here", "higher_order.scan"});
  refused([&](Json& model) { graph(model)["nodes"][0]["inputs"][0]["name"] = "bogus"; }, {"is missing"});
  refused([&](Json& model) { model["graph_module"]["signature"]["input_specs"].erase(0); }, {"does not match"});
  records["models/model.json"] = "{\"schema_version\": ";
  expect_refused(archive("graph.pt2", records), {"not what torch.export writes"});
}

TEST_F(BadFile, whose_weights_are_missing_or_of_another_shape) {
  const std::string config = "data/weights/model_weights_config.json";
  const auto refused = [&](const std::function<void(Json&)>& edit, const std::vector<std::string>& parts) {
    auto records = records_of("convnet.pt2");
    Json weights = Json::parse(records.at(config));
    edit(weights["config"]["fc.weight"]);
    records[config] = weights.dump();
    expect_refused(archive("weights.pt2", records), parts);
  };
  const auto meta = [](Json& weight) -> Json& { return weight["tensor_meta"]; };
  refused([&](Json& weight) { meta(weight)["sizes"] = Json::parse(R"([{"as_int": 2}, {"as_int": 8}])"); },
          {"'fc.weight' is Float 2x8, the graph expects Float 4x8"});
  refused([&](Json& weight) { meta(weight)["sizes"][0]["as_int"] = 4000; }, {"'fc.weight' does not fit"});
  refused([&](Json& weight) { meta(weight)["sizes"][0]["as_int"] = -4; }, {"'fc.weight' does not fit"});
  refused([&](Json& weight) { meta(weight)["storage_offset"]["as_int"] = INT64_MAX; }, {"'fc.weight' does not fit"});
  refused([&](Json& weight) { meta(weight)["strides"][0]["as_int"] = INT64_MAX; }, {"'fc.weight' does not fit"});
  refused([&](Json& weight) { meta(weight)["dtype"] = 99; }, {"the list of its weights"});
  refused([&](Json& weight) { weight["path_name"] = "weight_99"; }, {"'data/weights/weight_99' is missing"});
  refused([&](Json& weight) { weight["path_name"] = "../../secret"; }, {"is missing"});
  auto records = records_of("convnet.pt2");
  Json weights = Json::parse(records.at(config));
  weights["config"].erase("fc.weight");
  records[config] = weights.dump();
  expect_refused(archive("weights.pt2", records), {"the tensor 'fc.weight' is missing"});
}

TEST_F(BadFile, with_code_in_a_pickle_is_refused_and_runs_nothing) {
  const std::string witness = path("witness");
  const std::string pickle =
      "\x80\x02"
      "cposix\nsystem\nX" +
      std::string(1, static_cast<char>(witness.size() + 6)) + std::string(3, '\0') + "touch " + witness + "\x85R.";
  const std::string saved = archive("evil.pt", {{"data.pkl", pickle}});
  expect_refused(saved, {"not tensors and containers of them"}, load_tensors);
  expect_refused(archive("script.pt", {{"data.pkl", pickle}, {"constants.pkl", pickle}, {"code/a.py", ""}}),
                 {"not a TorchScript model"});
  auto records = records_of("convnet.pt2");
  records["data/sample_inputs/model.pt"] = bytes_of(saved);
  (void)Model(std::filesystem::path(archive("sample.pt2", records)));  // the example is left out
  EXPECT_FALSE(std::filesystem::exists(witness));
}

TEST_F(BadFile, inside_a_model_is_refused_like_one_of_its_own) {
  const std::string witness = path("witness");
  const std::string code =
      "\x80\x02"
      "cposix\nsystem\nX" +
      std::string(1, static_cast<char>(witness.size() + 6)) + std::string(3, '\0') + "touch " + witness + "\x85R.";
  const std::string evil = bytes_of(archive("evil.pt", {{"data.pkl", code}}));
  const std::string bomb = directory({{"m/data.pkl", 1000, 0xfffffff0}}, 2000);
  const std::string climbs = directory({{"m/data.pkl", 0, 0}, {"m/../../x", 0, 0}});
  const std::map<std::string, std::string> hostile{
      {evil, "not tensors"}, {bomb, "claims 4294967280 bytes"}, {climbs, "outside the archive"}, {code, "zip"}};
  for (const auto& [bytes, reason] : hostile) {
    auto records = records_of("convnet.pt2");
    records["data/weights/model.pt"] = bytes;  // where PyTorch 2.8 kept them
    expect_refused(archive("weights.pt2", records), {"data/weights/model.pt", reason});
    records = records_of("convnet.pt2");
    Json weights = Json::parse(records.at("data/weights/model_weights_config.json"));
    weights["config"]["fc.weight"]["use_pickle"] = true;
    records["data/weights/model_weights_config.json"] = weights.dump();
    records["data/weights/" + weights["config"]["fc.weight"]["path_name"].get<std::string>()] = bytes;
    expect_refused(archive("tensor.pt2", records), {"'fc.weight'", reason});
    records = records_of("convnet.pt2");
    records["data/sample_inputs/model.pt"] = bytes;
    EXPECT_NO_THROW(Model(std::filesystem::path(archive("sample.pt2", records))));  // the example is left out
  }
  EXPECT_FALSE(std::filesystem::exists(witness));
}

TEST_F(BadFile, with_an_ordered_dict_of_an_argument_says_what_to_save_instead) {
  const std::string pickle(
      "\x80\x02"
      "ccollections\nOrderedDict\n]\x85RX\x01\0\0\0aK\x01s.",
      40);
  expect_refused(archive("ordered.pt", {{"data.pkl", pickle}}), {"OrderedDict", "save dict(...)"}, load_tensors);
}

TEST_F(BadFile, with_code_beside_an_ordered_dict_is_refused_and_runs_nothing) {
  const std::string witness = path("witness");
  const std::string call = "cposix\nsystem\nX" + std::string(1, static_cast<char>(witness.size() + 6)) +
                           std::string(3, '\0') + "touch " + witness + "\x85R";
  const std::string dict =
      "\x80\x02"
      "ccollections\nOrderedDict\n)R";
  for (const std::string& pickle : {dict + call + "b.", dict + "}" + call + "bb.", dict + call + "\x86."}) {
    expect_refused(archive("evil.pt", {{"data.pkl", pickle}}), {"not tensors and containers of them"}, load_tensors);
  }
  EXPECT_FALSE(std::filesystem::exists(witness));
}

TEST_F(BadFile, of_a_torch_export_before_the_present_layout) {
  const std::string old = directory({{"version", 0, 0},
                                     {"serialized_exported_program.json", 0, 0},
                                     {"serialized_state_dict.pt", 0, 0},
                                     {"serialized_constants.pt", 0, 0}});
  expect_refused(file("old.pt2", old), {"PyTorch before 2.8", "export the model again"});
}

TEST_F(BadFile, with_damage_at_any_byte_is_read_or_refused) {
  const auto is_saved = [](const std::string& name) { return name.ends_with("case.pt") || name == "state.pt"; };
  std::mt19937 random(11);
  for (const char* name : {"nested.pt2", "traced.pt", "nested.case.pt", "state.pt"}) {
    const std::string whole = bytes_of(data_file(name));
    for (int attempt = 0; attempt < 60; ++attempt) {
      std::string damaged = whole;
      for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
      const std::string where = file("damaged.pt2", damaged);
      try {
        is_saved(name) ? load_tensors(where) : load_model(where);
      } catch (const UserError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace sinter::test
