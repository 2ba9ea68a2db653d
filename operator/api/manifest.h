#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/api/hetero_training_job.h"

// Reading and writing the manifest. Pure functions, safe from any thread. yaml-cpp and
// nlohmann/json stay inside the .cpp.
namespace hetero::api {

// One thing wrong with a manifest: where (`spec.roles[1].replicas`) and why, with the remedy.
struct FieldError {
  std::string path;
  std::string reason;
  bool operator==(const FieldError&) const = default;
};

struct ManifestResult {
  HeteroTrainingJob job;           // defaults filled in; meaningful only when errors is empty
  std::vector<FieldError> errors;  // every error found, in manifest order
};

// Parses YAML (or JSON, its subset), applies `overrides` ("path=value", see ApplyOverride), fills
// defaults and validates. Unknown fields, wrong types and broken rules are all reported together.
// A YAML syntax error is one FieldError with path "line L, column C".
ManifestResult ParseManifest(std::string_view yaml, const std::vector<std::string>& overrides = {});

// The job as JSON (camelCase, Kubernetes layout); ParseManifest(ToJson(job)) gives the same job.
std::string ToJson(const HeteroTrainingJob& job);

// "field: reason" lines, one per error, for a person.
std::string FormatErrors(const std::vector<FieldError>& errors);

}  // namespace hetero::api
