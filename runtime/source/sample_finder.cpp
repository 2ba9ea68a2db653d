#include "runtime/source/sample_finder.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/source/local_copy.h"
#include "runtime/storage/object_uri.h"
#include "runtime/storage/open_store.h"

namespace hetero::source {
namespace {

std::string Quoted(const std::string& text) { return absl::StrCat("'", text, "'"); }

// The command that makes the index of a dataset.
std::string IndexCommand(const api::DatasetSource& source, const std::string& dataset) {
  std::string command = absl::StrCat("hetero-runtime index ", source.uri, " ");
  absl::StrAppend(&command, source.index && !source.index->uri.empty()
                                ? source.index->uri
                                : absl::StrCat(dataset, "/_index.hetero"));
  const api::SampleFields& fields = source.fields;
  if (!fields.image.empty()) absl::StrAppend(&command, " --image ", Quoted(fields.image));
  if (!fields.label.field.empty()) {
    absl::StrAppend(&command, " --label ", Quoted(fields.label.field));
  }
  if (fields.label.offset) absl::StrAppend(&command, " --label-offset ", *fields.label.offset);
  return command;
}

class JobFinder : public SampleFinder {
 public:
  explicit JobFinder(const api::DatasetSource& source)
      : source_(source), index_(source.index.value_or(api::DatasetIndex())) {}

  absl::StatusOr<SampleTable> Find(const SampleSearch& search) const override {
    if (!index_.uri.empty()) {
      absl::StatusOr<storage::FileDescriptor> file = OpenLocally(index_.uri);
      if (file.ok()) {
        return ReadIndex(*std::move(file), index_.uri, search.store.uri(), search.shards);
      }
      if (!absl::IsNotFound(file.status())) return file.status();
    }
    HETERO_RETURN_IF_ERROR(CheckMayScan(search));
    // An index has what any job wants to know, so that it is the same whoever makes it.
    const bool count = search.count_classes || !index_.uri.empty();
    HETERO_ASSIGN_OR_RETURN(std::vector<SampleLocation> samples,
                            ScanShards(search.store, search.shards.shards, search.scan(count)));
    if (!index_.uri.empty()) Keep(search.shards, samples);
    return SampleTable(std::move(samples));
  }

 private:
  absl::Status CheckMayScan(const SampleSearch& search) const {
    if (index_.build == api::IndexBuild::kAlways) return absl::OkStatus();
    const bool never = index_.build == api::IndexBuild::kNever;
    int64_t bytes = 0;
    for (const storage::Object& shard : search.shards.shards) bytes += shard.size;
    if (!never && bytes <= kMostUnindexedBytes) return absl::OkStatus();
    const std::string missing =
        index_.uri.empty() ? "no dataset.index.uri is given" : absl::StrCat("no ", index_.uri);
    const std::string why =
        never
            ? "dataset.index.build is Never"
            : absl::StrCat("each process would go through ", bytes, " bytes to find the samples (",
                           kMostUnindexedBytes, " at most with dataset.index.build: Auto)");
    return absl::InvalidArgumentError(
        absl::StrCat("dataset ", search.store.uri(), ": has no index (", missing, "), and ", why,
                     "; make one with `", IndexCommand(source_, search.store.uri()),
                     "` and name it in dataset.index.uri, or set dataset.index.build to Always"));
  }

  // A job goes on without.
  void Keep(const IndexedShards& shards, absl::Span<const SampleLocation> samples) const {
    const absl::Status kept = StoreIndex(index_.uri, shards, samples);
    if (kept.ok()) {
      log::Info("index written",
                {{"uri", index_.uri}, {"samples", static_cast<int64_t>(samples.size())}});
      return;
    }
    log::Warning("the index that was made could not be written; the next job makes it again",
                 {{"uri", index_.uri}, {"error", kept.message()}});
  }

  const api::DatasetSource source_;
  const api::DatasetIndex index_;
};

}  // namespace

absl::StatusOr<SampleTable> FindSamples(const ShardSource& shards, const SampleSearch& search) {
  if (shards.finder != nullptr) return shards.finder->Find(search);
  HETERO_ASSIGN_OR_RETURN(
      std::vector<SampleLocation> samples,
      ScanShards(search.store, search.shards.shards, search.scan(search.count_classes)));
  return SampleTable(std::move(samples));
}

std::unique_ptr<const SampleFinder> FinderOf(const api::DatasetSource& source) {
  return std::make_unique<JobFinder>(source);
}

absl::Status StoreIndex(const std::string& uri, const IndexedShards& shards,
                        absl::Span<const SampleLocation> samples) {
  HETERO_ASSIGN_OR_RETURN(const storage::ObjectUri named, storage::ParseObjectUri(uri));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::WritableStore> store,
                          storage::OpenWritableStore(named.root));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectWriter> out,
                          store->Create(named.name));
  HETERO_RETURN_IF_ERROR(WriteIndex(shards, samples, *out));
  return out->Close().status();
}

}  // namespace hetero::source
