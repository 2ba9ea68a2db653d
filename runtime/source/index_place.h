#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/source/index_file.h"
#include "runtime/source/sample_table.h"
#include "runtime/storage/file_descriptor.h"
#include "runtime/storage/stores.h"
#include "runtime/storage/writable_store.h"

// Where the index of a dataset is: found, fetched, made.
namespace hetero::source {

// The command of a shell that makes the index of a dataset at `uri`, or at a place of its own where
// `uri` is empty. `with_storage`: the job has a spec.storage, which the command
// takes from its manifest, whose name is left to the user (JOB.yaml).
std::string IndexCommand(const api::DatasetSource& source, const api::Label& label,
                         const std::string& uri, bool with_storage);

// kInvalidArgument: nothing can be written at `uri`, by its scheme or its name; or it lies in the
// dataset's folder and would be taken for one of its files. Asks no store.
absl::Status CheckIndexUri(const api::DatasetSource& source, const std::string& uri);

// The index at `uri`, open to be read on this machine: of file:// the file itself, else a copy of
// one version of it in TMPDIR, which has no name and goes with the last descriptor. kNotFound:
// there is none; kInvalidArgument: it is no index, which is told before it is copied. Errors name
// the index, or TMPDIR.
absl::StatusOr<storage::FileDescriptor> OpenIndex(const std::string& uri,
                                                  const storage::Stores& stores);

// Whether something can be written beside `uri`, which is to show before hours of reading: a byte
// is written there, and removed. Errors are the store's.
absl::Status CheckIndexOutput(const std::string& uri, const storage::Stores& stores);

// An index on its way to its place.
class IndexOutput {
 public:
  // Errors are the store's: it cannot be written to.
  static absl::StatusOr<IndexOutput> Create(const std::string& uri, const storage::Stores& stores);
  // Whole or not at all, as the destructor without it. Once.
  absl::Status Write(const IndexedShards& shards, absl::Span<const SampleLocation> samples);

 private:
  std::unique_ptr<storage::WritableStore> store_;
  std::unique_ptr<storage::ObjectWriter> writer_;
};

}  // namespace hetero::source
