#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/source/byte_stream.h"

// Which of its ways a manifest is written in. Internal to manifest.
namespace hetero::source {

struct ManifestKind {
  enum Way { kList, kLines, kTable };
  Way way = kTable;
  char separator = ',';  // of a table
};

// By the first byte that is no space, but that names ending with .csv and .tsv are tables. Passes
// over spaces before it; the object's own error is returned.
absl::StatusOr<ManifestKind> FindKind(ByteStream& text, const std::string& name);

// Whether a manifest could have this name: .manifest, .json, .jsonl, .ndjson, .csv, .tsv.
bool IsManifestName(const std::string& name);

// Whether the text begins as a manifest does: with a list, with an object that names a picture, or
// with a table in whose first lines a picture stands. Errors are the store's.
absl::StatusOr<bool> BeginsManifest(ByteStream& text, const std::string& name,
                                    const api::SampleFields& fields);

}  // namespace hetero::source
