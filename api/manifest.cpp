#include "api/manifest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/decode.h"
#include "api/defaults.h"
#include "api/encode.h"
#include "api/findings.h"
#include "api/job_resource.h"
#include "api/overrides.h"
#include "api/suggest.h"
#include "api/validate.h"
#include "api/yaml_document.h"

namespace hetero::api {
namespace {

using nlohmann::json;

// Text that is not UTF-8 must not make nlohmann throw.
std::string Compact(const json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

void CheckConstant(const json& root, const char* key, const char* wanted, Findings& findings) {
  const auto found = root.find(key);
  if (found == root.end() || found->is_null()) {
    findings.Add(key, absl::StrCat("is required; write ", key, ": ", wanted));
  } else if (*found != wanted) {
    const std::string given = found->is_string() ? found->get<std::string>() : Compact(*found);
    findings.Add(key, absl::StrCat("must be ", wanted, ", got ", given));
  }
}

// With `unknown`, keys that nobody knows go there.
void CheckTopLevel(const json& root, Findings& findings,
                   std::vector<std::string>* unknown = nullptr) {
  static const auto& names =
      *new std::vector<std::string>{"apiVersion", "kind", "metadata", "spec", "status"};
  CheckConstant(root, "apiVersion", kApiVersion, findings);
  CheckConstant(root, "kind", kKind, findings);
  for (const auto& [key, unused] : root.items()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    if (unknown != nullptr) {
      unknown->push_back(key);
      continue;
    }
    const std::string nearest = Nearest(key, names);
    findings.Add(key, nearest.empty() ? "unknown field; known are " + Join(names)
                                      : "unknown field; did you mean " + nearest + "?");
  }
}

// The value of `key`, or null after reporting that it is missing.
const json* Section(const json& root, const char* key, Findings& findings) {
  const auto found = root.find(key);
  if (found != root.end() && !found->is_null()) return &*found;
  findings.AddBroken(key, "is required");
  return nullptr;
}

// Where `path` is in the text, or where the nearest thing around it is.
Position Locate(const YamlDocument& document, std::string path) {
  while (true) {
    const auto found = document.positions.find(path);
    if (found != document.positions.end()) return found->second;
    const size_t cut = path.find_last_of(".[");
    if (cut == std::string::npos) return {};
    path.resize(cut);
  }
}

void PutInManifestOrder(const YamlDocument& document, std::vector<FieldError>& errors) {
  std::vector<std::pair<int, FieldError>> placed;
  for (FieldError& error : errors) {
    const Position position = Locate(document, error.path);
    error.line = position.line;
    placed.emplace_back(position.order, std::move(error));
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  errors.clear();
  for (auto& [order, error] : placed) errors.push_back(std::move(error));
}

ManifestResult ParseTextOf(Author author, std::string_view yaml,
                           const std::vector<std::string>& overrides) {
  ManifestResult result;
  YamlDocument document = ReadYaml(yaml);
  if (!document.errors.empty()) {
    result.errors = std::move(document.errors);
    return result;
  }
  Findings findings;
  CheckTopLevel(document.root, findings);
  for (const std::string& text : overrides) ApplyOverride(document.root, text, findings);
  if (const json* metadata = Section(document.root, "metadata", findings)) {
    DecodeMetadata(*metadata, result.job.metadata, findings);
  }
  if (const json* spec = Section(document.root, "spec", findings)) {
    DecodeSpec(*spec, result.job.spec, findings, /*unknown=*/nullptr, author);
    Validate(result.job, findings);
  }
  Default(result.job);
  result.errors = std::move(findings.errors());
  PutInManifestOrder(document, result.errors);
  const bool one_line = yaml.find('\n') >= yaml.size() - 1;
  if (one_line) {
    for (FieldError& error : result.errors) error.line = 0;
  }
  return result;
}

}  // namespace

ManifestResult ParseManifest(std::string_view yaml, const std::vector<std::string>& overrides) {
  return ParseTextOf(Author::kPerson, yaml, overrides);
}

ManifestResult ParseJobDocument(std::string_view text) {
  return ParseTextOf(Author::kOperator, text, /*overrides=*/{});
}

StoredJob ReadStoredJob(std::string_view text) {
  StoredJob stored;
  YamlDocument document = ReadYaml(text);
  if (!document.errors.empty()) {
    stored.errors = std::move(document.errors);
    stored.pods_known = false;
    return stored;
  }
  Findings findings;
  CheckTopLevel(document.root, findings, &stored.unknown_fields);
  if (const json* metadata = Section(document.root, "metadata", findings)) {
    DecodeMetadata(*metadata, stored.job.metadata, findings);
  }
  if (const json* spec = Section(document.root, "spec", findings)) {
    DecodeSpec(*spec, stored.job.spec, findings, &stored.unknown_fields);
    Validate(stored.job, findings);
  }
  Default(stored.job);
  for (const char* part : {"spec.roles", "spec.runPolicy", "spec.network", "metadata"}) {
    stored.pods_known = stored.pods_known && !findings.Broken(part);
  }
  stored.pods_known = stored.pods_known && !stored.job.spec.roles.empty();
  stored.errors = std::move(findings.errors());
  return stored;
}

std::string ToJson(const HeteroTrainingJob& job) {
  const json root = {{"apiVersion", kApiVersion},
                     {"kind", kKind},
                     {"metadata", EncodeObject(job.metadata)},
                     {"spec", EncodeObject(job.spec)}};
  return Compact(root);
}

std::string FormatErrors(const std::vector<FieldError>& errors) {
  std::string text;
  for (const FieldError& error : errors) {
    absl::StrAppend(&text, error.path, ": ", error.reason);
    if (error.line > 0 && !error.path.starts_with("line ")) {
      absl::StrAppend(&text, " (line ", error.line, ")");
    }
    text += '\n';
  }
  return text;
}

}  // namespace hetero::api
