#include "runtime/source/sample_finder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/source/index_place.h"

namespace hetero::source {
namespace {

absl::StatusOr<SampleTable> ScanFor(const SampleSearch& search) {
  HETERO_ASSIGN_OR_RETURN(
      std::vector<SampleLocation> samples,
      ScanShards(search.store, search.shards.shards, search.scan(search.count_classes)));
  return SampleTable(std::move(samples));
}

class Scanner : public SampleFinder {
 public:
  absl::StatusOr<SampleTable> Find(const SampleSearch& search) const override {
    return ScanFor(search);
  }
};

class JobFinder : public SampleFinder {
 public:
  JobFinder(const api::DatasetSource& source, const api::Label& label,
            const storage::Stores& stores)
      : source_(source),
        label_(label),
        stores_(stores),
        index_(source.index.value_or(api::DatasetIndex())) {}

  absl::StatusOr<SampleTable> Find(const SampleSearch& search) const override {
    if (index_.uri.empty()) {
      HETERO_RETURN_IF_ERROR(CheckMayScan(search));
      return ScanFor(search);
    }
    HETERO_RETURN_IF_ERROR(CheckIndexUri(source_, index_.uri));
    absl::StatusOr<storage::FileDescriptor> file = OpenIndex(index_.uri, stores_);
    if (file.ok()) {
      return ReadIndex(*std::move(file), index_.uri, Command(), search.store.uri(), search.shards);
    }
    if (!absl::IsNotFound(file.status())) return file.status();
    HETERO_RETURN_IF_ERROR(CheckMayScan(search));
    // An index has what any job wants to know, so that it is the same whoever makes it.
    HETERO_ASSIGN_OR_RETURN(
        std::vector<SampleLocation> samples,
        ScanShards(search.store, search.shards.shards, search.scan(/*count_classes=*/true)));
    if (!samples.empty()) Keep(search.shards, samples);
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
                     "; make one with `", Command(),
                     "` and name it in dataset.index.uri, or set dataset.index.build to Always"));
  }

  std::string Command() const {
    return IndexCommand(source_, label_, index_.uri, !stores_.empty());
  }

  // A job goes on without.
  void Keep(const IndexedShards& shards, absl::Span<const SampleLocation> samples) const {
    absl::StatusOr<IndexOutput> output = IndexOutput::Create(index_.uri, stores_);
    const absl::Status kept = output.ok() ? output->Write(shards, samples) : output.status();
    if (kept.ok()) {
      log::Info("index written",
                {{"uri", index_.uri}, {"samples", static_cast<int64_t>(samples.size())}});
      return;
    }
    log::Warning("the index that was made could not be written; the next job makes it again",
                 {{"uri", index_.uri}, {"error", kept.message()}});
  }

  const api::DatasetSource source_;
  const api::Label label_;
  const storage::Stores stores_;
  const api::DatasetIndex index_;
};

}  // namespace

absl::StatusOr<SampleTable> FindSamples(const ShardSource& shards, const SampleSearch& search) {
  return shards.finder != nullptr ? shards.finder->Find(search) : ScanFor(search);
}

std::unique_ptr<const SampleFinder> FinderOf(const api::DatasetSource& source,
                                             const api::Label& label,
                                             const storage::Stores& stores) {
  return std::make_unique<JobFinder>(source, label, stores);
}

std::unique_ptr<const SampleFinder> ScanningFinder() { return std::make_unique<Scanner>(); }

}  // namespace hetero::source
