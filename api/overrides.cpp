#include "api/overrides.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/schema.h"
#include "api/suggest.h"
#include "api/yaml_document.h"

namespace hetero::api {
namespace {

using nlohmann::json;
using Kind = SchemaNode::Kind;

// Takes "a.b[0].c" apart from the left.
class PathReader {
 public:
  explicit PathReader(std::string_view path) : rest_(path) {}

  bool done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  std::string Next() {
    if (rest_.starts_with('[')) {
      const size_t close = std::min(rest_.find(']'), rest_.size());
      std::string token(rest_.substr(1, close - 1));
      rest_.remove_prefix(std::min(close + 1, rest_.size()));
      if (rest_.starts_with('.')) rest_.remove_prefix(1);
      return token;
    }
    const size_t end = std::min(rest_.find_first_of(".["), rest_.size());
    std::string token(rest_.substr(0, end));
    rest_.remove_prefix(end);
    if (rest_.starts_with('.')) rest_.remove_prefix(1);
    return token;
  }

 private:
  std::string_view rest_;
};

std::optional<size_t> Index(std::string_view token) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return index;
}

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kBoolean:
      return "true or false";
    case Kind::kInteger:
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kObject:
    case Kind::kOpenObject:
    case Kind::kStringMap:
      return "a map";
    case Kind::kList:
      return "a list";
  }
  return "";
}

class Setter {
 public:
  Setter(std::string_view path, std::string_view value_text, Findings& findings)
      : path_(path), reader_(path), value_text_(value_text), findings_(findings) {}

  void Set(json& root) { Descend(root, JobSchema(), ""); }

 private:
  // `here` is the path of `at` in the manifest.
  void Descend(json& at, const SchemaNode& node, const std::string& here) {
    if (reader_.done()) return Assign(at, node);
    switch (node.kind) {
      case Kind::kObject:
        return Member(at, node, here);
      case Kind::kList:
        return Entry(at, node, here);
      case Kind::kStringMap:
        if (!MakeObject(at, here)) return;
        at[std::string(reader_.rest())] = std::string(value_text_);
        return;
      case Kind::kOpenObject:
        return Open(at, here);
      default:
        Fail(absl::StrCat(here, " is ", KindName(node.kind), " and has no field '",
                          std::string(reader_.rest()), "'"));
    }
  }

  void Member(json& at, const SchemaNode& node, const std::string& here) {
    const std::string name = reader_.Next();
    const SchemaNode* field = node.Find(name);
    if (field == nullptr) {
      const std::string nearest = Nearest(name, node.FieldNames());
      Fail(absl::StrCat(
          here, " has no field '", name, "'; ",
          nearest.empty() ? "it has " + Join(node.FieldNames()) : "did you mean " + nearest + "?"));
      return;
    }
    if (!MakeObject(at, here)) return;
    if (reader_.done() && value_text_.empty()) {
      at.erase(name);
    } else {
      Descend(at[name], *field, Child(here, name));
    }
  }

  void Entry(json& at, const SchemaNode& node, const std::string& here) {
    const std::string token = reader_.Next();
    const size_t size = at.is_array() ? at.size() : 0;
    if (const std::optional<size_t> index = Index(token)) {
      if (*index < size) return Descend(at[*index], node.element[0], Element(here, *index));
      Fail(absl::StrCat(here, " has ", size, " entries, counted from 0"));
      return;
    }
    std::vector<std::string> names;
    for (size_t i = 0; i < size; ++i) {
      const json& entry = at[i];
      if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) continue;
      names.push_back(entry["name"].get<std::string>());
      if (names.back() == token) return Descend(at[i], node.element[0], Element(here, i));
    }
    if (names.empty()) {
      Fail(absl::StrCat("'", token, "' is no index into ", here, ", which has ", size,
                        " entries, counted from 0"));
      return;
    }
    Fail(absl::StrCat(here, " has no entry named '", token, "'; it has ", Join(names)));
  }

  // Inside a pod template, whose fields we do not know.
  void Open(json& at, const std::string& here) {
    json* current = &at;
    std::string path = here;
    while (!reader_.done()) {
      const std::string token = reader_.Next();
      if (current->is_array()) {
        const std::optional<size_t> index = Index(token);
        if (!index.has_value() || *index >= current->size()) {
          Fail(absl::StrCat("'", token, "' is no index into ", path, ", which has ",
                            current->size(), " entries, counted from 0"));
          return;
        }
        current = &(*current)[*index];
        path = Element(path, *index);
      } else {
        if (!MakeObject(*current, path)) return;
        current = &(*current)[token];
        path = Child(path, token);
      }
    }
    if (std::optional<json> value = Value()) *current = *std::move(value);
  }

  void Assign(json& at, const SchemaNode& node) {
    std::optional<json> value = Value();
    if (!value.has_value()) return;
    const bool as_text = node.kind == Kind::kString && !value->is_string() && !value->is_null();
    at = as_text ? json(std::string(value_text_)) : *std::move(value);
  }

  std::optional<json> Value() {
    YamlDocument document = ReadYamlValue(value_text_);
    if (document.errors.empty()) return std::move(document.root);
    Fail(absl::StrCat("the value '", std::string(value_text_), "' is ", document.errors[0].reason));
    return std::nullopt;
  }

  bool MakeObject(json& at, const std::string& here) {
    if (at.is_null()) at = json::object();
    if (at.is_object()) return true;
    Fail(absl::StrCat(here, " is not a map in this manifest"));
    return false;
  }

  void Fail(std::string reason) { findings_.AddBroken(path_, "override: " + std::move(reason)); }

  std::string path_;
  PathReader reader_;
  std::string_view value_text_;
  Findings& findings_;
};

}  // namespace

void ApplyOverride(json& root, std::string_view text, Findings& findings) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    findings.AddBroken(text.empty() ? "override" : std::string(text),
                       "override: write it as path=value, for example roles.cpu.replicas=3");
    return;
  }
  std::string path(text.substr(0, equals));
  if (!path.starts_with("spec.") && !path.starts_with("metadata.")) path = "spec." + path;
  Setter(path, text.substr(equals + 1), findings).Set(root);
}

}  // namespace hetero::api
