#include "tests/integration/operator/bad_manifests/bad_manifests.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "api/yaml_document.h"
#include "tests/support/paths.h"

namespace hetero::testing {
namespace {

using nlohmann::json;

const std::string kFolder = testing::SourceDir() + "/tests/integration/operator/bad_manifests/";

json ReadYamlFile(const std::string& name) {
  std::ifstream file(kFolder + name);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  api::YamlDocument document = api::ReadYamlValue(text);
  if (!document.errors.empty()) {
    throw std::runtime_error(name + ": " + document.errors[0].path + ": " +
                             document.errors[0].reason);
  }
  return std::move(document.root);
}

// Named after the case, unless the case is about the name.
json Patched(const json& row) {
  json manifest = BaseManifest().patch(row.at("patch"));
  json& name = manifest["metadata"]["name"];
  if (name == "base") name = row.at("name");
  return manifest;
}

}  // namespace

json BaseManifest() { return ReadYamlFile("base.yaml"); }

std::vector<BadManifest> BadManifests() {
  std::vector<BadManifest> cases;
  for (const json& row : ReadYamlFile("cases.yaml")) {
    BadManifest& entry = cases.emplace_back();
    entry.name = row.at("name");
    entry.refused_by = row.at("by");
    entry.manifest = Patched(row);
    entry.path = row.at("path");
    entry.server_path = row.value("serverPath", entry.path);
    entry.server_says = row.at("says");
    entry.parser_says = row.value("parser", "");
  }
  return cases;
}

std::vector<Change> Changes() {
  std::vector<Change> changes;
  for (const json& row : ReadYamlFile("changes.yaml")) {
    Change& entry = changes.emplace_back();
    entry.name = row.at("name");
    entry.suspended = row.value("suspended", false);
    entry.manifest = BaseManifest().patch(row.at("patch"));
    entry.path = row.value("path", "");
    entry.server_says = row.value("says", "");
  }
  return changes;
}

}  // namespace hetero::testing
