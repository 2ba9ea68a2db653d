#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/encode.h"
#include "api/operators.h"
#include "api/schema.h"
#include "tests/support/paths.h"
#include "tests/unit/api/crd.h"

// The parts of crds/ and docs/manifest.md that list operators and their parameters: between two
// marked lines stands exactly what follows from the operators' rows and the field table.
// HETERO_WRITE_GOLDEN=1 writes them.
namespace hetero::api {
namespace {

const std::string kManifestDocs = testing::SourceDir() + "/docs/manifest.md";

// Expects `wanted`, whole lines, in `file` between the line that has "begin: NAME" and the next one
// that has "end: NAME".
void ExpectListing(const std::string& file, const std::string& name, const std::string& wanted) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const size_t marker = text.find("begin: " + name);
  ASSERT_NE(marker, std::string::npos) << file << " has no listing " << name;
  const size_t begin = text.find('\n', marker) + 1;
  const size_t end = text.rfind('\n', text.find("end: " + name, begin)) + 1;
  ASSERT_LE(begin, end) << file << " has no end of listing " << name;
  const std::string found = text.substr(begin, end - begin);
  if (std::getenv("HETERO_WRITE_GOLDEN") != nullptr && found != wanted) {
    std::ofstream(file) << text.substr(0, begin) << wanted << text.substr(end);
    return;
  }
  EXPECT_EQ(found, wanted) << file << ", listing " << name
                           << "; HETERO_WRITE_GOLDEN=1 writes what follows from the rows";
}

const SchemaNode& Entry() { return JobSchema().Find("spec")->Find("pipeline")->element[0]; }

// The fields of an entry that belong to some operator, in the order of the table.
std::vector<const SchemaNode*> Parameters() {
  const std::set<std::string> everybodys = {"op", "repeat", "placement", "views"};
  std::vector<const SchemaNode*> nodes;
  for (const SchemaNode& node : Entry().fields) {
    if (!everybodys.contains(node.name)) nodes.push_back(&node);
  }
  return nodes;
}

// Names of the operators that take each parameter, in the order of the rows.
std::map<std::string, std::vector<std::string>> Takers() {
  std::map<std::string, std::vector<std::string>> takers;
  for (const OperatorRow& row : Operators()) {
    for (const char* name : row.required) takers[name].emplace_back(row.name);
    for (const char* name : row.optional) takers[name].emplace_back(row.name);
  }
  return takers;
}

// A CEL rule of the resource definition at its place.
std::string Rule(const std::string& rule, const std::string& message, const std::string& field) {
  const std::string indent(18, ' ');
  return absl::StrCat(indent, "- rule: \"", rule, "\"\n", indent, "  message: ", message, "\n",
                      indent, "  fieldPath: .", field, "\n");
}

std::string Quoted(const std::string& name) { return absl::StrCat("'", name, "'"); }

std::string RulesOfNames() {
  std::string rules;
  const auto takers = Takers();
  for (const SchemaNode* parameter : Parameters()) {
    const std::string& name = parameter->name;
    std::vector<std::string> quoted;
    for (const std::string& op : takers.at(name)) quoted.push_back(Quoted(op));
    absl::StrAppend(
        &rules,
        Rule(
            absl::StrCat("!has(self.", name, ") || self.op in [", absl::StrJoin(quoted, ", "), "]"),
            absl::StrCat(name, " is taken only by ", absl::StrJoin(takers.at(name), ", ")), name));
  }
  for (const OperatorRow& row : Operators()) {
    for (const char* name : row.required) {
      absl::StrAppend(
          &rules, Rule(absl::StrCat("self.op != ", Quoted(row.name), " || has(self.", name, ")"),
                       absl::StrCat(row.name, " requires ", name), name));
    }
  }
  return rules;
}

// The allowed values of `op`, in lines of at most 120 characters.
std::string EnumOfOperators() {
  const std::string first = std::string(22, ' ') + "enum: [";
  std::string lines;
  std::string line = first;
  for (const OperatorRow& row : Operators()) {
    const std::string word = absl::StrCat(row.name, &row == &Operators().back() ? "]" : ",");
    if (line.size() + 1 + word.size() > 120) {
      absl::StrAppend(&lines, line, "\n");
      line = std::string(first.size(), ' ');
    } else if (line.back() == ',') {
      line += ' ';
    }
    line += word;
  }
  return absl::StrCat(lines, line, "\n");
}

std::string Number(double value) { return absl::StrCat(std::round(value * 1000) / 1000); }

// A default as the manifest would have it: {0.08, 1}, 0.5, Bilinear.
std::string ValueText(const nlohmann::json& value) {
  if (value.is_object()) {
    return absl::StrCat("{", Number(value["min"]), ", ", Number(value["max"]), "}");
  }
  return value.is_string() ? value.get<std::string>() : Number(value);
}

std::string RowOfDocs(const OperatorRow& row) {
  std::vector<std::string> parameters;
  for (const char* name : row.required) parameters.push_back(absl::StrCat("**`", name, "`**"));
  OperatorSpec spec{.op = row.kind};
  FillDefaults(spec);
  const nlohmann::json defaults = EncodeObject(spec);
  for (const char* name : row.optional) {
    parameters.push_back(absl::StrCat(
        "`", name, "`", defaults.contains(name) ? " " + ValueText(defaults[name]) : ""));
  }
  const std::string list = absl::StrJoin(parameters, ", ");
  return absl::StrCat("| `", row.name, "` |", list.empty() ? "" : " " + list, " | ", row.meaning,
                      " |\n");
}

std::string Interval(const Limits& limits) {
  std::string text;
  if (std::isfinite(limits.min)) {
    absl::StrAppend(&text, limits.above_min ? "above " : "at least ", limits.min);
  }
  if (std::isfinite(limits.max)) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "at most ", limits.max);
  }
  return text;
}

// Type and limits of a parameter in words.
std::pair<std::string, std::string> TypeAndLimits(const SchemaNode& node) {
  using Kind = SchemaNode::Kind;
  switch (node.kind) {
    case Kind::kInteger:
    case Kind::kNumber:
      return {node.format, Interval(node.limits)};
    case Kind::kString:
      if (!node.values.empty()) {
        return {"enum", absl::StrCat("`", absl::StrJoin(node.values, "`, `"), "`")};
      }
      return {"string", absl::StrCat("at most ", node.limits.max_length, " characters")};
    case Kind::kObject:
      if (node.name == "outputs") {
        return {"{image}",
                "`image` is {`shape`: [height, width, channels], `type`: `Uint8`, and may be left "
                "out}"};
      }
      return {absl::StrCat("{", absl::StrJoin(node.FieldNames(), ", "), "}"),
              "each " + Interval(node.fields[0].limits)};
    case Kind::kList: {
      const auto [type, limits] = TypeAndLimits(node.element[0]);
      return {absl::StrCat("list of ", type == "string" ? "strings" : type),
              absl::StrCat(node.limits.min_items, " to ", node.limits.max_items, " entries, each ",
                           limits)};
    }
    case Kind::kStringMap:
      return {"map of strings",
              absl::StrCat(node.limits.min_items, " to ", node.limits.max_items,
                           " entries, values of at most ", node.limits.max_length, " characters")};
    case Kind::kBoolean:
    case Kind::kOpenObject:
      break;
  }
  ADD_FAILURE() << node.name << " has a type that the listing has no words for";
  return {};
}

TEST(OperatorListingsTest, RowsStandInTheOrderOfTheirKinds) {
  for (size_t i = 0; i < Operators().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(Operators()[i].kind), i) << Operators()[i].name;
  }
  EXPECT_EQ(Operators().back().kind, OperatorKind::kPython) << "a kind has no row";
}

TEST(OperatorListingsTest, RowsAndFieldTableNameTheSameParameters) {
  std::set<std::string> taken;
  for (const auto& [name, operators] : Takers()) taken.insert(name);
  std::set<std::string> known;
  for (const SchemaNode* parameter : Parameters()) known.insert(parameter->name);
  EXPECT_EQ(taken, known);
}

// What is filled in is taken by the operator, and passes its own check.
TEST(OperatorListingsTest, DefaultsAreOfParametersThatTheOperatorTakes) {
  for (const OperatorRow& row : Operators()) {
    const std::set<std::string> optional(row.optional.begin(), row.optional.end());
    OperatorSpec spec{.op = row.kind};
    FillDefaults(spec);
    const nlohmann::json filled = EncodeObject(spec);
    for (const auto& [name, unused] : filled.items()) {
      if (name == "op" || name == "repeat" || name == "placement" || name == "views") continue;
      EXPECT_TRUE(optional.contains(name)) << row.name << " " << name;
    }
    for (const FieldError& error : CheckOperator(spec)) {
      const bool of_defaults = optional.contains(error.path.substr(0, error.path.find('.')));
      EXPECT_FALSE(of_defaults) << row.name << " " << error.path << ": " << error.reason;
    }
  }
}

TEST(OperatorListingsTest, ResourceDefinitionHasTheRulesOfTheRows) {
  ExpectListing(kCrdFile, "rules of operators and parameters", RulesOfNames());
}

TEST(OperatorListingsTest, ResourceDefinitionHasTheNamesOfTheRows) {
  ExpectListing(kCrdFile, "names of operators", EnumOfOperators());
}

TEST(OperatorListingsTest, DocumentationHasTheRows) {
  std::string table = "| op | parameters | meaning |\n|---|---|---|\n";
  for (const OperatorRow& row : Operators()) table += RowOfDocs(row);
  ExpectListing(kManifestDocs, "operators", table);
}

TEST(OperatorListingsTest, DocumentationHasTheLimitsOfTheFieldTable) {
  std::string table = "| parameter | type | limits |\n|---|---|---|\n";
  for (const SchemaNode* parameter : Parameters()) {
    const auto [type, limits] = TypeAndLimits(*parameter);
    absl::StrAppend(&table, "| `", parameter->name, "` | ", type, " | ", limits, " |\n");
  }
  ExpectListing(kManifestDocs, "parameters", table);
}

}  // namespace
}  // namespace hetero::api
