#pragma once

#include <string>
#include <vector>

#include "api/findings.h"
#include "api/hetero_training_job.h"

// The operators of spec.pipeline: which there are, what each takes, and what an absent parameter
// means. One row per operator serves decoding, validation, defaults and messages; the limits of a
// parameter are its row in fields.h, the same for every operator that takes it. The listings in
// crds/ and docs/manifest.md are written from both by tests/unit/api/operator_listings_test.cpp.
// What an operator does with a picture is runtime/pipeline's.
namespace hetero::api {

struct OperatorRow {
  OperatorKind kind;
  const char* name;  // as `op` in the manifest
  // Parameters by their names in the manifest; op, repeat and placement are everybody's.
  std::vector<const char*> required;
  std::vector<const char*> optional;
  // Values of absent parameters; those that are absent here too have none.
  OperatorSpec defaults;
  // Fills what depends on another parameter, once `defaults` are in place. Null: nothing.
  void (*complete)(OperatorSpec& spec) = nullptr;
  // Adds what is wrong with several parameters together, under `path`. Null: nothing can be.
  void (*check)(const OperatorSpec& spec, const std::string& path, Findings& findings) = nullptr;
  const char* meaning;  // one line of Markdown
};

// All rows, in the order of OperatorKind. Built once, never destroyed.
const std::vector<OperatorRow>& Operators();
const OperatorRow& RowOf(OperatorKind kind);

// The manifest's name of an operator ("RandomResizedCrop").
const char* OperatorName(OperatorKind kind);

// Whether one of them is a Python operator, which CPU workers alone run.
bool HasPython(const std::vector<OperatorSpec>& operators);

// What an operator does to where pixels are, for what goes with the picture.
enum class Geometry {
  kStays,    // colours alone change
  kMoves,    // in a way that `also` repeats for a mask
  kUnknown,  // in a way that nothing repeats
};
Geometry GeometryOf(OperatorKind kind);

// Gives absent parameters their values. Given values stay. Idempotent.
void FillDefaults(OperatorSpec& spec);

// Everything that is wrong with one entry of spec.pipeline by itself, as ParseManifest() would say
// it, in no particular order: values beyond their limits, parameters that the operator does not
// take or lacks. Paths begin at the entry: "sigma.min". For entries that were not parsed.
std::vector<FieldError> CheckOperator(const OperatorSpec& spec);

// Smallest and largest number that the manifest takes for `parameter`, a number or range of
// OperatorSpec by its name in the manifest. Infinite where there is no limit.
Range LimitsOfParameter(const std::string& parameter);

}  // namespace hetero::api
