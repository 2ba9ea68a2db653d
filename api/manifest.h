#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/hetero_training_job.h"

// Reading and writing the manifest. Pure functions, safe from any thread. yaml-cpp and
// nlohmann/json stay inside the .cpp.
namespace hetero::api {

// One thing wrong with a manifest: where (`spec.roles[1].replicas`) and why, with the remedy.
struct FieldError {
  std::string path;
  std::string reason;
  int line = 0;  // in the text given, from 1; 0 when the text is a single line, as JSON often is
  bool operator==(const FieldError&) const = default;
};

struct ManifestResult {
  HeteroTrainingJob job;           // defaults filled in; meaningful only when errors is empty
  std::vector<FieldError> errors;  // every error found, in manifest order
};

// Parses YAML (or JSON, its subset), applies `overrides` ("path=value", grammar in overrides.h),
// fills defaults and validates. Unknown fields, wrong types and broken rules are all reported
// together. A YAML syntax error is one FieldError with path "line L, column C"; trouble with the
// document as a whole has the path "manifest". `status` is ignored.
ManifestResult ParseManifest(std::string_view yaml, const std::vector<std::string>& overrides = {});

// The job as JSON (camelCase, Kubernetes layout); ParseManifest(ToJson(job)) gives the same job.
std::string ToJson(const HeteroTrainingJob& job);

// "field: reason (line L)" lines, one per error, for a person; the line only of texts of several
// lines.
std::string FormatErrors(const std::vector<FieldError>& errors);

}  // namespace hetero::api
