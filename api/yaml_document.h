#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "api/manifest.h"
#include "nlohmann/json.hpp"

// YAML text as JSON, by the rules of YAML 1.2's core schema: plain scalars are null, booleans,
// numbers or strings, quoted ones always strings. One difference, because kubectl reads it so:
// 0644 is octal. Duplicate keys, several documents and unknown tags are errors.
namespace hetero::api {

struct Position {
  int order = 0;  // of appearance in the text
  int line = 0;   // from 1
};

struct YamlDocument {
  nlohmann::json root;
  std::unordered_map<std::string, Position> positions;  // by path, `spec.roles[1].replicas`
  std::vector<FieldError> errors;                       // root is meaningful only when empty
};

// A whole manifest: exactly one document, whose root is a map.
YamlDocument ReadYaml(std::string_view text);

// Any one value; empty text is null.
YamlDocument ReadYamlValue(std::string_view text);

// A plain scalar (no quotes) as the core schema reads it. Infinities and NaN stay strings, which no
// field of a number accepts, since JSON cannot say them.
nlohmann::json ResolvePlainScalar(const std::string& text);

}  // namespace hetero::api
