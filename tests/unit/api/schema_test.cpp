#include "api/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "tests/support/paths.h"
#include "tests/unit/api/crd.h"

// The hand-written CRD and the C++ tables must describe the same language.
namespace hetero::api {
namespace {

using nlohmann::json;
using Kind = SchemaNode::Kind;

std::vector<std::string> KeysOf(const json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, unused] : object.items()) keys.push_back(key);
  return keys;
}

const std::string kReleasedFields = testing::SourceDir() + "/tests/unit/api/released_fields.txt";

// What the resource definition of the oldest release that can be rolled back to has
// (docs/releases.md), as KnownFieldPaths() writes it.
const std::set<std::string>& ReleasedFields() {
  static const std::set<std::string>& fields = *[] {
    auto* read = new std::set<std::string>;
    std::ifstream file(kReleasedFields);
    for (std::string path; std::getline(file, path);) read->insert(path);
    return read;
  }();
  return fields;
}

// The API server puts what has a default into every job that it reads. A field that this release
// lacks has none there: its operator, which is not replaced yet or was rolled back to, would find
// it in jobs of people who never asked for it, and 0.1 fails them for it.
json DefaultInDefinition(const SchemaNode& node, const std::string& path) {
  return ReleasedFields().contains(path) ? node.default_value : json();
}

void ExpectNumbers(const SchemaNode& node, const json& schema, const std::string& path) {
  const auto bound = [&](const char* key, double limit) {
    if (std::isfinite(limit)) {
      ASSERT_TRUE(schema.contains(key)) << path << " lacks " << key;
      EXPECT_EQ(schema[key].get<double>(), limit) << path << "." << key;
    } else {
      EXPECT_FALSE(schema.contains(key)) << path << " has " << key;
    }
  };
  bound("minimum", node.limits.min);
  bound("maximum", node.limits.max);
  EXPECT_EQ(schema.value("exclusiveMinimum", false), node.limits.above_min) << path;
  EXPECT_EQ(schema.value("exclusiveMaximum", false), node.limits.below_max) << path;
  EXPECT_EQ(schema.value("format", ""), node.format) << path;
}

void ExpectString(const SchemaNode& node, const json& schema, const std::string& path) {
  EXPECT_EQ(schema.value("enum", std::vector<std::string>()), node.values) << path;
  if (!node.values.empty()) return;
  EXPECT_EQ(schema.value("maxLength", 0), node.limits.max_length) << path;
  const char* pattern = node.limits.pattern;
  EXPECT_EQ(schema.value("pattern", ""), pattern == nullptr ? "" : pattern) << path;
  EXPECT_NE(schema.contains("minLength") || schema.contains("pattern"), node.limits.may_be_empty)
      << path << ": the parser thinks otherwise about the empty string";
}

void ExpectSame(const SchemaNode& node, const json& schema, const std::string& path);

void ExpectFields(const SchemaNode& node, const json& schema, const std::string& path) {
  std::vector<std::string> names = node.FieldNames();
  EXPECT_THAT(KeysOf(schema["properties"]), ::testing::UnorderedElementsAreArray(names)) << path;
  std::vector<std::string> required;
  for (const SchemaNode& field : node.fields) {
    if (field.limits.presence == Presence::kRequired) required.push_back(field.name);
    const std::string child = Child(path, field.name);
    if (!schema["properties"].contains(field.name)) continue;
    ExpectSame(field, schema["properties"][field.name], child);
  }
  EXPECT_THAT(schema.value("required", std::vector<std::string>()),
              ::testing::UnorderedElementsAreArray(required))
      << path;
}

void ExpectSame(const SchemaNode& node, const json& schema, const std::string& path) {
  const std::map<Kind, std::string> kTypes = {
      {Kind::kBoolean, "boolean"},  {Kind::kInteger, "integer"},  {Kind::kNumber, "number"},
      {Kind::kString, "string"},    {Kind::kObject, "object"},    {Kind::kList, "array"},
      {Kind::kStringMap, "object"}, {Kind::kOpenObject, "object"}};
  ASSERT_EQ(schema.value("type", ""), kTypes.at(node.kind)) << path;
  EXPECT_EQ(schema.contains("default") ? schema["default"] : json(),
            DefaultInDefinition(node, path))
      << path;
  switch (node.kind) {
    case Kind::kBoolean:
      break;
    case Kind::kInteger:
    case Kind::kNumber:
      ExpectNumbers(node, schema, path);
      break;
    case Kind::kString:
      ExpectString(node, schema, path);
      break;
    case Kind::kObject:
      ExpectFields(node, schema, path);
      break;
    case Kind::kList:
      EXPECT_EQ(schema.value("minItems", 0), node.limits.min_items) << path;
      EXPECT_EQ(schema.value("maxItems", 0), node.limits.max_items) << path;
      ExpectSame(node.element[0], schema["items"], path + "[]");
      break;
    case Kind::kStringMap:
      EXPECT_EQ(schema.value("minProperties", 0), node.limits.min_items) << path;
      EXPECT_EQ(schema.value("maxProperties", 0), node.limits.max_items) << path;
      EXPECT_EQ(schema["additionalProperties"]["maxLength"], node.limits.max_length) << path;
      break;
    case Kind::kOpenObject:
      // The parser leaves a pod template's inside to the API server, whose own schema crds/ holds.
      EXPECT_TRUE(schema["properties"].contains("spec")) << path;
      break;
  }
}

// Every list and string of the schema has a bound, or the API server refuses the CEL rules. The pod
// template's are Kubernetes' own, and rules only compare it as a whole.
void ExpectBounded(const json& schema, const std::string& path) {
  if (path.ends_with("roles[].template")) return;
  const std::string type = schema.value("type", "");
  if (type == "array") {
    EXPECT_TRUE(schema.contains("maxItems")) << path;
    EXPECT_TRUE(schema.contains("x-kubernetes-list-type")) << path;
    ExpectBounded(schema["items"], path + "[]");
  } else if (type == "string") {
    EXPECT_TRUE(schema.contains("maxLength") || schema.contains("enum")) << path;
  } else if (type == "object" && schema.contains("properties")) {
    for (const auto& [key, value] : schema["properties"].items())
      ExpectBounded(value, Child(path, key));
  }
}

std::set<std::string> RulesAt(const json& schema) {
  std::set<std::string> rules;
  for (const json& rule : schema["x-kubernetes-validations"]) rules.insert(rule["rule"]);
  return rules;
}

TEST(SchemaTest, SpecHasTheSameFieldsTypesLimitsEnumsAndDefaultsOnBothSides) {
  ExpectSame(*JobSchema().Find("spec"), RootSchema()["properties"]["spec"], "spec");
}

// HETERO_WRITE_GOLDEN=1 takes what is there now for released.
TEST(ReleasedFieldsTest, NoneIsGone) {
  const std::vector<std::string> known = KnownFieldPaths();
  if (std::getenv("HETERO_WRITE_GOLDEN") != nullptr) {
    std::ofstream file(kReleasedFields);
    for (const std::string& path : known) file << path << "\n";
    return;
  }
  EXPECT_GE(ReleasedFields().size(), 145u) << "those of 0.1.1";
  EXPECT_THAT(known, ::testing::IsSupersetOf(ReleasedFields()));
}

TEST(SchemaTest, KnownFieldPathsReachTheLeaves) {
  const std::vector<std::string> paths = KnownFieldPaths();
  EXPECT_THAT(paths, ::testing::IsSupersetOf({"spec.dataset.validation.image.height",
                                              "spec.pipeline[].sigma.min", "spec.roles[].template",
                                              "spec.roles[].failureRules[].onExitCodes.values"}));
  EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()));
}

TEST(SchemaTest, EveryRangeChecksItsOrder) {
  const json& fields =
      RootSchema()["properties"]["spec"]["properties"]["pipeline"]["items"]["properties"];
  int ranges = 0;
  for (const auto& [name, schema] : fields.items()) {
    if (!schema.contains("properties") || !schema["properties"].contains("min")) continue;
    EXPECT_TRUE(RulesAt(schema).contains("self.min <= self.max")) << name;
    ++ranges;
  }
  EXPECT_EQ(ranges, 8);
}

TEST(SchemaTest, ListsAndStringsAreBounded) { ExpectBounded(RootSchema(), ""); }

// kubectl apply writes the whole definition, as JSON without blanks, into an annotation, and all
// annotations of an object have 262,144 bytes. Half of that leaves room for those of others.
TEST(SchemaTest, IsSmallEnoughForPlainApply) {
  constexpr size_t kMostBytes = 131'072;
  EXPECT_LT(std::filesystem::file_size(kCrdFile), kMostBytes);
  EXPECT_LT(Crd().dump().size(), kMostBytes);
}

TEST(SchemaTest, NameIsLimitedAsTheParserLimitsIt) {
  const json& name = RootSchema()["properties"]["metadata"]["properties"]["name"];
  const Limits& limits = JobSchema().Find("metadata")->Find("name")->limits;
  EXPECT_EQ(name["maxLength"], limits.max_length);
  EXPECT_EQ(name["pattern"], limits.pattern);
}

TEST(SchemaTest, PodTemplateIsClosedSoThatATypoIsRefused) {
  const json& role =
      RootSchema()["properties"]["spec"]["properties"]["roles"]["items"]["properties"];
  const json& pod = role["template"]["properties"]["spec"]["properties"];
  EXPECT_GT(pod.size(), 35);
  EXPECT_TRUE(pod["containers"]["items"]["properties"].contains("volumeMounts"));
  EXPECT_EQ(role["template"].dump().find("preserve-unknown"), std::string::npos);
  EXPECT_EQ(role["template"].dump().find("\"description\"", 200), std::string::npos);
}

TEST(SchemaTest, NamesOfTheResource) {
  const json& spec = Crd()["spec"];
  EXPECT_EQ(Crd()["metadata"]["name"], "heterotrainingjobs.training.hetero.dev");
  EXPECT_EQ(spec["group"], kGroup);
  EXPECT_EQ(spec["versions"][0]["name"], kVersion);
  EXPECT_EQ(absl::StrCat(kGroup, "/", kVersion), kApiVersion);
  EXPECT_EQ(spec["names"]["plural"], kPlural);
  EXPECT_EQ(spec["names"]["kind"], kKind);
  EXPECT_EQ(spec["names"]["shortNames"], json({"htj"}));
  EXPECT_EQ(spec["names"]["categories"], json({"training"}));
  EXPECT_EQ(spec["versions"][0]["subresources"], json({{"status", json::object()}}));
}

}  // namespace
}  // namespace hetero::api
