#pragma once

#include <string>
#include <vector>

#include "api/field_table.h"
#include "nlohmann/json.hpp"

// The tables of fields.h as one tree of plain values: what overrides walk, and what the test
// compares with crds/. Internal to api.
namespace hetero::api {

struct SchemaNode {
  enum class Kind { kBoolean, kInteger, kNumber, kString, kObject, kList, kStringMap, kOpenObject };

  std::string name;
  Kind kind = Kind::kObject;
  std::string format;               // int32, int64, double; empty otherwise
  std::vector<std::string> values;  // allowed strings of an enum
  nlohmann::json default_value;     // null: none
  Limits limits;
  std::vector<SchemaNode> fields;   // kObject
  std::vector<SchemaNode> element;  // kList: exactly one

  // The field of that name, null if there is none.
  const SchemaNode* Find(std::string_view field) const;
  std::vector<std::string> FieldNames() const;
};

// Root with the fields metadata and spec. Built once, never destroyed.
const SchemaNode& JobSchema();

// Every leaf and object below spec, sorted: "spec.roles[].replicas".
std::vector<std::string> KnownFieldPaths();

}  // namespace hetero::api
