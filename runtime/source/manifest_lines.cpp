#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "runtime/job/field_set.h"
#include "runtime/source/json_numbers.h"
#include "runtime/source/manifest_entry.h"
#include "runtime/source/shard_source.h"

namespace hetero::source {
namespace {

using nlohmann::json;

std::string NamesIn(const json& line) {
  std::vector<std::string> names;
  for (const auto& [name, value] : line.items()) names.push_back(name);
  return SummaryOf(names);
}

// An attribute, or what a path leads to: "class-metadata/class-name".
const json* FindAttribute(const json& line, const std::string& name) {
  const auto found = line.find(name);
  if (found != line.end()) return &*found;
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return nullptr;
  const auto outer = line.find(name.substr(0, slash));
  if (outer == line.end() || !outer->is_object()) return nullptr;
  return FindAttribute(*outer, name.substr(slash + 1));
}

class LineTaker {
 public:
  LineTaker(const SampleRule& rule, const ManifestSink& sink)
      : rule_(rule), sink_(sink), labels_(rule.label) {
    if (rule.kind.numbers()) {
      entry_.numbers.resize(static_cast<size_t>(job::FieldsOf(rule.kind)->front().bytes()));
    }
  }

  absl::Status Take(const std::string& text, int64_t number) {
    const absl::StatusOr<json> parsed = ParseShallowJson(text);
    if (!parsed.ok() || !parsed->is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat(parsed.ok() ? "is no JSON object" : parsed.status().message(),
                       R"(; write {"source-ref": "s3://bucket/a.jpg", "class": 3} on each line)"));
    }
    const json& line = *parsed;
    const json* path = First(line, rule_.image);
    if (path == nullptr || !path->is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has no text in ", absl::StrJoin(rule_.image, ", "), "; has ", NamesIn(line),
                       "; name what holds the picture's path in dataset.fields.image"));
    }
    entry_.path = path->get_ref<const std::string&>();
    // A sample without a mask is a bad one when it is read.
    const json* mask = First(line, rule_.mask);
    entry_.mask = mask != nullptr && mask->is_string() ? mask->get<std::string>() : "";
    if (rule_.kind.type != api::LabelType::kNone) HETERO_RETURN_IF_ERROR(TakeLabel(line));
    entry_.line = number;
    return sink_(entry_);
  }

 private:
  static const json* First(const json& line, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (const json* found = FindAttribute(line, name)) return found;
    }
    return nullptr;
  }

  // The first line says for all which attribute is the label.
  absl::Status FindName(const json& line) {
    std::vector<std::string> names;
    for (const auto& [name, value] : line.items()) {
      const auto is_one_of = [&name = name](const std::vector<std::string>& parts) {
        return std::find(parts.begin(), parts.end(), name) != parts.end();
      };
      if (!is_one_of(rule_.image) && !is_one_of(rule_.mask) && !absl::EndsWith(name, "-ref") &&
          !absl::EndsWith(name, "-metadata")) {
        names.push_back(name);
      }
    }
    if (names.size() == 1) {
      labels_ = std::move(names);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(names.empty() ? absl::StrCat("has no label, only ", NamesIn(line))
                                   : absl::StrCat("has several labels: ", SummaryOf(names)),
                     "; name one in dataset.fields.label.field, such as ",
                     names.empty() ? "class-metadata/class-name" : names.front(),
                     ", or set dataset.label.type: None"));
  }

  absl::Status TakeLabel(const json& line) {
    if (labels_.empty()) HETERO_RETURN_IF_ERROR(FindName(line));
    const json* found = First(line, labels_);
    const std::string name = absl::StrJoin(labels_, ", ");
    if (found == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("has no label in ", name, "; has ", NamesIn(line),
                       "; add it, or name another one in dataset.fields.label.field"));
    }
    if (rule_.kind.numbers()) {
      const absl::Status status = FlattenNumbers(*found, rule_.kind, entry_.numbers.data());
      if (status.ok()) return status;
      return absl::InvalidArgumentError(
          absl::StrCat(name, " ", status.message(), ", as dataset.label says"));
    }
    if (found->is_string()) {
      entry_.label = found->get_ref<const std::string&>();
    } else if (found->is_number_integer()) {
      entry_.label = found->dump();
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is a value of type ", found->type_name(),
                       ", and a class is a whole number or a name; name another attribute in "
                       "dataset.fields.label.field, or say in dataset.label what it is"));
    }
    return absl::OkStatus();
  }

  const SampleRule& rule_;
  const ManifestSink& sink_;
  std::vector<std::string> labels_;
  ManifestEntry entry_;
};

// False at the end.
absl::StatusOr<bool> NextLine(ByteStream& text, std::string* line) {
  line->clear();
  if (text.Peek() == ByteStream::kEnd) return false;
  for (int byte = text.Next(); byte != ByteStream::kEnd && byte != '\n'; byte = text.Next()) {
    if (line->size() == kMostEntryBytes) {
      return absl::InvalidArgumentError(absl::StrCat("has more than ", kMostEntryBytes,
                                                     " bytes; each sample has a line of its own"));
    }
    line->push_back(static_cast<char>(byte));
  }
  return true;
}

}  // namespace

absl::Status ReadManifestLines(ByteStream& text, const SampleRule& rule, const ManifestSink& sink) {
  LineTaker taker(rule, sink);
  std::string line;
  while (true) {
    const int64_t number = text.line();
    const absl::StatusOr<bool> found = NextLine(text, &line);
    if (!text.status().ok()) return text.status();
    absl::Status status = found.status();
    if (status.ok()) {
      if (!*found) return status;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      status = taker.Take(line, number);
    }
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat(text.where(), ": line ", number, ": ", status.message()));
    }
  }
}

}  // namespace hetero::source
