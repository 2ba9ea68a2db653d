#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"

// What `hetero-runtime inspect` says about a dataset.
namespace hetero::local {

struct InspectOptions {
  api::DatasetSource source;
  api::Label label;
  std::vector<api::StorageAccess> storage;  // spec.storage, of all stores
  int64_t samples = 100;                    // to read and decode, evenly spread over the dataset
  std::string sheet;  // a file for a contact sheet of some of them; empty: none
};

struct Inspection {
  std::string uri;
  api::DatasetFormat format = api::DatasetFormat::kAuto;
  int64_t shards = 0;   // 0: each sample, or each part of all, has a file of its own
  int64_t samples = 0;  // of the dataset
  int32_t classes = 0;  // 0: labels are no classes
  std::string fingerprint;
  api::SampleFields fields;  // as given, as is the label
  api::Label label;

  int64_t looked_at = 0;  // samples that were read, good and bad; what follows is of the good ones
  std::map<std::string, int64_t> encodings;  // "JPEG", "PNG", "raw"
  std::map<int32_t, int64_t> labels;         // how many of each class
  std::map<int32_t, int64_t> mask_pixels;    // how many of each value, where there are masks
  std::vector<int64_t> bytes;                // of the stored picture; sorted, as are the next two
  std::vector<int64_t> heights;              // pixels
  std::vector<int64_t> widths;
  int64_t bad = 0;        // cannot be decoded, or have no proper label
  std::string first_bad;  // which, and why
};

// Opens the dataset and reads `options.samples` of its samples. Errors are those of OpenDataset(),
// of the store, and of writing the sheet. A bad sample is none. The label is one that a manifest
// could have.
absl::StatusOr<Inspection> InspectDataset(const InspectOptions& options);

// Several lines for a person, with a histogram of the pictures' sizes and the lines that go into
// the manifest.
std::string InspectionText(const Inspection& inspection);
// The same figures as one JSON object.
std::string InspectionJson(const Inspection& inspection);

}  // namespace hetero::local
