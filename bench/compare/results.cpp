#include "bench/compare/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/compare/costs.h"
#include "compiler/support/errors.h"

namespace sinter::bench {
namespace {

constexpr double least = 1e-30;  // no measurement lies outside of these
constexpr double most = 1e30;
constexpr int deepest = 32;  // a row's report is 8 levels deep

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw UserError(fmt::format("{}: {}. Write it with sinter bench --json, or a program of bench/peers", file, what));
}

/// Reads fields of one row and says which of them is wrong.
class Fields {
 public:
  Fields(const Json& row, size_t number, const std::string& file) : row_(row), number_(number), file_(file) {
    if (!row.is_object()) refuse(file, fmt::format("row {} is not an object", number));
  }

  [[nodiscard]] std::string text(const char* name) const {
    const Json& value = required(name);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) wrong(name, "a text");
    return printable(name, value.get<std::string>());
  }

  [[nodiscard]] std::string text_or_empty(const char* name) const {
    return row_.contains(name) && !row_.at(name).is_null() ? text(name) : "";
  }

  /// Texts in order; none where the field is missing or null.
  [[nodiscard]] std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> all;
    if (!row_.contains(name) || row_.at(name).is_null()) return all;
    if (!row_.at(name).is_array()) wrong(name, "a list of texts");
    for (const Json& value : row_.at(name)) {
      if (!value.is_string()) wrong(name, "a list of texts");
      all.push_back(printable(name, value.get<std::string>()));
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  /// Numbers of at least zero in order; none where the field is missing or null.
  [[nodiscard]] std::vector<double> numbers(const char* name) const {
    std::vector<double> all;
    if (!row_.contains(name) || row_.at(name).is_null()) return all;
    if (!row_.at(name).is_array()) wrong(name, "a list of numbers");
    for (const Json& value : row_.at(name)) {
      if (!is_number(value)) wrong(name, "a list of numbers");
      all.push_back(value.get<double>());
    }
    return all;
  }

  /// The sum of one field of a list of objects; nothing where the list is missing or null.
  [[nodiscard]] std::optional<double> sum(const char* name, const char* field) const {
    if (!row_.contains(name) || row_.at(name).is_null()) return std::nullopt;
    if (!row_.at(name).is_array()) wrong(name, "a list of objects");
    double all = 0;
    for (const Json& one : row_.at(name)) {
      if (!one.is_object()) wrong(name, "a list of objects");
      all += Fields(one, number_, file_).number(field).value_or(0);
    }
    return all;
  }

  /// A number in an object; nothing where either is missing or null.
  [[nodiscard]] std::optional<double> number_in(const char* name, const char* field) const {
    if (!row_.contains(name) || row_.at(name).is_null()) return std::nullopt;
    if (!row_.at(name).is_object()) wrong(name, "an object");
    return Fields(row_.at(name), number_, file_).number(field);
  }

  [[nodiscard]] bool flag(const char* name) const {
    if (!row_.contains(name)) return false;
    if (!row_.at(name).is_boolean()) wrong(name, "true or false");
    return row_.at(name).get<bool>();
  }

  /// A number above zero.
  [[nodiscard]] double positive(const char* name) const {
    (void)required(name);
    const auto value = number(name);
    if (!value || *value < least) wrong(name, "a number above zero");
    return *value;
  }

  /// Nothing where the field is missing or null.
  [[nodiscard]] std::optional<double> number(const char* name) const {
    if (!row_.contains(name) || row_.at(name).is_null()) return std::nullopt;
    const Json& value = row_.at(name);
    if (!is_number(value)) wrong(name, "a number of at least zero");
    return value.get<double>();
  }

 private:
  [[nodiscard]] static bool is_number(const Json& value) {
    return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0 &&
           value.get<double>() <= most;
  }

  [[nodiscard]] const Json& required(const char* name) const {
    if (!row_.contains(name)) refuse(file_, fmt::format("row {} has no '{}'", number_, name));
    return row_.at(name);
  }

  [[nodiscard]] std::string printable(const char* name, std::string value) const {
    const bool plain = std::none_of(value.begin(), value.end(), [](unsigned char c) { return c < ' ' || c == 127; });
    if (!plain) wrong(name, "a text without control characters");
    return value;
  }

  [[noreturn]] void wrong(const char* name, const char* expected) const {
    refuse(file_, fmt::format("row {}: '{}' is not {}", number_, name, expected));
  }

  const Json& row_;
  size_t number_;
  const std::string& file_;
};

std::optional<double> either(std::optional<double> first, std::optional<double> second) {
  return first ? first : second;
}

std::optional<double> in_milliseconds(std::optional<double> microseconds) {
  return microseconds ? std::optional(*microseconds / 1e3) : std::nullopt;
}

/// The calls after the first one. Files without first_calls_s have the second and the third under other names.
std::vector<double> later_calls(const Fields& fields) {
  std::vector<double> calls = fields.numbers("first_calls_s");
  if (!calls.empty()) {
    calls.erase(calls.begin());
    return calls;
  }
  const auto second = either(fields.number("second_call_s"), fields.number("verify_s"));
  if (!second) return calls;
  calls.push_back(*second);
  if (const auto third = fields.number("first_replay_s")) calls.push_back(*third);
  return calls;
}

Row parse_row(const Json& source, size_t number, const std::string& file, const std::string& default_peer) {
  const Fields fields(source, number, file);
  Row row;
  row.model = fields.text("model");
  row.device = fields.text("device");
  row.dtype = fields.text("dtype");
  row.shape = fields.text("shape");
  row.mode = fields.text("mode");
  row.peer = fields.text_or_empty("peer");
  if (row.peer.empty()) row.peer = default_peer;
  for (const std::string& setting : fields.texts("settings")) row.model += " " + setting;
  if (const std::string optimizer = fields.text_or_empty("train"); !optimizer.empty()) {
    row.model += " train=" + optimizer;
    row.trains = true;
  }
  if (const std::string amp = fields.text_or_empty("amp"); !amp.empty()) row.model += " amp=" + amp;
  if (fields.flag("freeze")) row.mode += " freeze";
  if (const std::string numerics = fields.text_or_empty("numerics"); !numerics.empty() && numerics != "fast")
    row.mode += " numerics=" + numerics;
  row.eager_ms = fields.positive("eager_ms");
  row.steady_ms = fields.positive("steady_ms");
  row.cold_s = fields.number("cold_s");
  row.warm_s = fields.number("warm_s");
  row.eager_cold_s = fields.number("eager_cold_s");
  row.later_calls_s = later_calls(fields);
  row.latency_ms = fields.number("latency_ms");
  row.eager_latency_ms = fields.number("eager_latency_ms");
  row.device_bytes = fields.number("device_bytes");
  row.eager_device_bytes = fields.number("eager_device_bytes");
  row.allocated_bytes = either(fields.number("allocated_bytes"), fields.number("peak_bytes"));
  row.eager_allocated_bytes = either(fields.number("eager_allocated_bytes"), fields.number("eager_peak_bytes"));
  row.reserved_bytes = fields.number("reserved_bytes");
  row.eager_reserved_bytes = fields.number("eager_reserved_bytes");
  row.kernels = fields.number("kernels");
  row.eager_kernels = fields.number("eager_kernels");
  row.max_error = fields.number("max_error");
  row.eager_max_error = fields.number("eager_max_error");
  row.break_even_calls = row.later_calls_s.size() > 2 ? break_even(row) : fields.number("break_even_calls");
  row.unsynchronised_ms = fields.number("unsynchronised_ms_wrong");
  row.device_ms = in_milliseconds(fields.sum("kernel_table", "us"));
  row.eager_device_ms = in_milliseconds(fields.sum("eager_kernel_table", "us"));
  row.loss_difference = fields.number_in("losses", "largest_difference");
  row.source = source;
  return row;
}

/// What the document says of one contender's machine: its own, or for a joined document the one listed under "peers".
Json environment_of(const Json& document, const std::string& peer, const std::string& default_peer) {
  if (peer != default_peer && document.contains("peers") && document.at("peers").is_array()) {
    for (const Json& listed : document.at("peers")) {
      if (listed.is_object() && listed.value("peer", Json()) == Json(peer))
        return listed.value("environment", Json::object());
    }
  }
  return document.value("environment", Json::object());
}

std::string read_text(const std::string& path) {
  std::error_code failed;
  const bool folder = std::filesystem::is_directory(path, failed);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!folder && file) text << file.rdbuf();
  if (folder || !file) throw UserError(path + ": cannot be read. Name a result file");
  return text.str();
}

Json parse_json(const std::string& path) {
  const std::string text = read_text(path);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) refuse(path, "is empty");
  const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > deepest) refuse(path, fmt::format("is nested deeper than {} levels", deepest));
    return true;
  };
  try {
    return Json::parse(text, shallow);
  } catch (const Json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    const auto line = 1 + std::count(text.begin(), end, '\n');
    refuse(path, error.byte > text.size() ? fmt::format("ends inside its JSON (line {})", line)
                                          : fmt::format("is not JSON (line {})", line));
  } catch (const Json::exception&) {
    refuse(path, "has a number that is too large");
  }
}

std::vector<Results> parse(const Json& document, const std::string& file, const std::string& default_peer) {
  if (!document.is_object() || !document.contains("rows")) refuse(file, "has no 'rows'");
  const Json& rows = document.at("rows");
  if (!rows.is_array()) refuse(file, "'rows' is not a list");
  if (rows.empty()) refuse(file, "'rows' is empty");
  Json all = rows;
  if (const auto unmatched = document.find("unmatched"); unmatched != document.end() && unmatched->is_array())
    all.insert(all.end(), unmatched->begin(), unmatched->end());
  std::vector<Results> groups;
  for (size_t i = 0; i < all.size(); ++i) {
    Row row = parse_row(all.at(i), i + 1, file, default_peer);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Results& one) { return one.peer == row.peer; });
    if (group == groups.end()) {
      Json environment = environment_of(document, row.peer, default_peer);
      if (!environment.is_object()) refuse(file, "'environment' is not an object");
      groups.push_back({row.peer, file, std::move(environment), {}});
      group = groups.end() - 1;
    }
    group->rows.push_back(std::move(row));
  }
  return groups;
}

}  // namespace

std::vector<Results> parse_results(const Json& document, const std::string& file) { return parse(document, file, ""); }

std::vector<Results> read_results(const std::string& path) { return parse(parse_json(path), path, ""); }

std::vector<Results> read_peer(const std::string& path) {
  return parse(parse_json(path), path, std::filesystem::path(path).stem().string());
}

}  // namespace sinter::bench
