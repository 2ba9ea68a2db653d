#include "tests/unit/api/crd.h"

#include "api/yaml_document.h"
#include "yaml-cpp/yaml.h"

namespace hetero::api {
namespace {

using nlohmann::json;

json ToPlainJson(const YAML::Node& node) {
  if (node.IsSequence()) {
    json list = json::array();
    for (const YAML::Node& element : node) list.push_back(ToPlainJson(element));
    return list;
  }
  if (node.IsMap()) {
    json object = json::object();
    for (const auto& entry : node) object[entry.first.Scalar()] = ToPlainJson(entry.second);
    return object;
  }
  if (!node.IsScalar()) return nullptr;
  return node.Tag() == "!" ? json(node.Scalar()) : ResolvePlainScalar(node.Scalar());
}

}  // namespace

const json& Crd() {
  static const json& crd = *new json(ToPlainJson(YAML::LoadFile(kCrdFile)));
  return crd;
}

const json& RootSchema() { return Crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]; }

}  // namespace hetero::api
