#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "api/hetero_training_job.h"
#include "runtime/job/schedule.h"

namespace hetero::source {

class SampleFinder;

enum class Encoding { kRaw, kJpeg, kPng };

// One stored sample. `bytes` is an encoded picture, or uint8 [height, width, channels] when kRaw
// (shape is then set). Reused between reads to spare allocations.
struct RawSample {
  Encoding encoding = Encoding::kRaw;
  api::ImageShape shape;
  std::vector<uint8_t> bytes;
  int32_t label = 0;
  // What the job's samples have in the place of a class (job::FieldsOf), one field's numbers behind
  // the other's, little-endian.
  std::vector<uint8_t> fields;
  // The mask's file, where dataset.fields.mask wants one.
  std::vector<uint8_t> mask;
};

// A finite set of pictures, most often labelled, with ids [0, size()). Read() may be called from
// any thread.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  // Files in which many samples lie; 0 where the format has no shards.
  virtual int64_t shards() const { return 0; }
  // 0 where labels are no classes, and nothing else says how many there are.
  virtual int32_t classes() const = 0;
  // The shape that every sample must have once decoded, before any operator: the manifest's
  // `image`, else the format's, else that of the first sample. Zero height means "any" (pictures of
  // varying size; the pipeline must then fix the size).
  virtual api::ImageShape image() const = 0;
  // Fills `*sample` with sample `id`. kDataLoss: the bytes were read in full but are bad (wrong
  // label or shape): a bad sample, replaced and counted. Any other error: storage failed; the
  // caller retries.
  virtual absl::Status Read(int64_t id, RawSample* sample) const = 0;
  // Whether Read() waits for a network, and many calls at a time are best.
  virtual bool is_remote() const { return false; }
  // Samples that ReadRun() reads at once.
  struct Run {
    std::vector<int64_t> ids;
    int64_t bytes = 0;  // that are read; 0: not known
  };
  // Parts of `ids`, in the order of their first samples in `ids`. Here each sample is by itself.
  virtual std::vector<Run> RunsOf(const std::vector<int64_t>& ids) const;
  // Fills `samples`, as many as there are `ids`, which are a run's. The statuses are those of
  // Read() of each; where the run could not be read they all say so.
  virtual std::vector<absl::Status> ReadRun(absl::Span<const int64_t> ids,
                                            absl::Span<RawSample> samples) const;
  // Where sample `id` is stored, for messages: a path, "file.gz: record 17".
  virtual std::string Describe(int64_t id) const = 0;
  // Class name for label in [0, classes()); the number as text when the format has no names.
  virtual std::string ClassName(int32_t label) const { return std::to_string(label); }
  // Hash of what identifies the data (names, sizes), 16 hex digits.
  virtual std::string fingerprint() const = 0;
  // Hash of where each sample lies, which may be read from an index instead of the data itself;
  // empty where the fingerprint says it all.
  virtual std::string places() const { return ""; }
  // Hash of the objects that the data lie in behind a network, by name, size and version, as this
  // process found them: one that was written over has another version. Empty of files of this
  // machine, and where a manifest lists the objects.
  virtual std::string versions() const { return ""; }
};

// Opens and checks a dataset: existence, headers, counts, `samples`/`classes`/`image` of the
// manifest. `split` chooses the files of a format that keeps both splits in one folder (IDX:
// train-* or t10k-*) and keeps Synthetic's validation samples apart from its training samples.
// `label` says what Read() is to find beside the pictures, `storage` how stores are reached
// (spec.storage). `finder` finds the samples of shards in the place of what dataset.index says.
// Errors name the path, what was looked for and the remedy.
absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(
    const api::DatasetSource& source, job::Split split, uint64_t seed, const api::Label& label = {},
    const std::vector<api::StorageAccess>& storage = {},
    std::shared_ptr<const SampleFinder> finder = {});

// The format that OpenDataset() reads: the manifest's, or for Auto what is found there.
absl::StatusOr<api::DatasetFormat> DetectFormat(
    const api::DatasetSource& source, const std::vector<api::StorageAccess>& storage = {});

}  // namespace hetero::source
