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

// Reads the job that an operator gives to its programs, or a head to its members: as ParseManifest,
// but spec.storage may have the operator's own entries besides (storage_defaults.h).
ManifestResult ParseJobDocument(std::string_view text);

// A job as an API server keeps it.
struct StoredJob {
  HeteroTrainingJob job;           // defaults filled in; what could not be read is left at them
  std::vector<FieldError> errors;  // every error but unknown fields
  std::vector<std::string> unknown_fields;  // paths, passed over
  // Roles, runPolicy, network and metadata could be read: it is known which pods the job has,
  // whatever else is wrong.
  bool pods_known = true;
};

// Reads an object that an API server has accepted, perhaps by a newer definition than this
// program's: fields that it does not know are no error. Otherwise as ParseManifest.
StoredJob ReadStoredJob(std::string_view json);

// The job as JSON (camelCase, Kubernetes layout); ParseManifest(ToJson(job)) gives the same job.
std::string ToJson(const HeteroTrainingJob& job);

// "field: reason (line L)" lines, one per error, for a person; the line only of texts of several
// lines.
std::string FormatErrors(const std::vector<FieldError>& errors);

}  // namespace hetero::api
