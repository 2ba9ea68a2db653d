#include "runtime/local/index.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "runtime/insight/figures.h"
#include "runtime/source/dataset.h"
#include "runtime/source/index_place.h"
#include "runtime/source/sample_finder.h"

namespace hetero::local {
namespace {

constexpr auto kBetweenTold = std::chrono::milliseconds(250);

// A store whose reads are watched, and end when that is asked for.
class WatchedStore : public storage::Store {
 public:
  using Tell = std::function<void(const IndexProgress& progress)>;

  // All outlive it.
  WatchedStore(const storage::Store& store, int64_t all_bytes, const IndexOptions& options)
      : store_(store), options_(options), progress_{.all_bytes = all_bytes} {}

  const std::string& uri() const override { return store_.uri(); }
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view prefix) const override {
    return store_.List(prefix);
  }
  absl::StatusOr<storage::Object> Head(std::string_view name) const override {
    return store_.Head(name);
  }
  absl::Status Read(const storage::Object& object, int64_t offset,
                    absl::Span<uint8_t> out) const override {
    if (options_.stop.stop_requested()) {
      return absl::CancelledError(absl::StrCat(store_.uri(), ": stopped, and no index is written"));
    }
    HETERO_RETURN_IF_ERROR(store_.Read(object, offset, out));
    const base::MutexLock lock(mutex_);
    int64_t& reached = reached_[object.name];
    const int64_t end = std::max(reached, offset + static_cast<int64_t>(out.size()));
    progress_.bytes += end - reached;
    reached = end;
    const Clock::time_point now = Clock::now();
    if (options_.on_progress == nullptr || now - told_ < kBetweenTold) return absl::OkStatus();
    told_ = now;
    options_.on_progress(progress_);
    return absl::OkStatus();
  }

 private:
  using Clock = std::chrono::steady_clock;

  const storage::Store& store_;
  const IndexOptions& options_;
  mutable base::Mutex mutex_;
  mutable IndexProgress progress_ ABSL_GUARDED_BY(mutex_);
  mutable std::map<std::string, int64_t> reached_ ABSL_GUARDED_BY(mutex_);
  mutable Clock::time_point told_ ABSL_GUARDED_BY(mutex_);
};

class IndexWriter : public source::SampleFinder {
 public:
  explicit IndexWriter(const IndexOptions& options) : options_(options), stores_(options.storage) {}

  absl::StatusOr<source::SampleTable> Find(const source::SampleSearch& search) const override {
    HETERO_RETURN_IF_ERROR(source::CheckIndexUri(options_.source, options_.destination));
    HETERO_ASSIGN_OR_RETURN(std::optional<source::SampleTable> there, There(search));
    if (there) return *std::move(there);
    HETERO_RETURN_IF_ERROR(source::CheckIndexOutput(options_.destination, stores_));
    int64_t bytes = 0;
    for (const storage::Object& shard : search.shards.shards) bytes += shard.size;
    const WatchedStore store(search.store, bytes, options_);
    HETERO_ASSIGN_OR_RETURN(
        std::vector<source::SampleLocation> samples,
        source::ScanShards(store, search.shards.shards, search.scan(/*count_classes=*/true)));
    // What is no dataset, has no index; whoever opens it says so.
    const auto labelled = [](const source::SampleLocation& sample) { return sample.label >= 0; };
    if (search.count_classes ? std::any_of(samples.begin(), samples.end(), labelled)
                             : !samples.empty()) {
      // Only now: who is killed while it reads leaves nothing.
      HETERO_ASSIGN_OR_RETURN(source::IndexOutput output,
                              source::IndexOutput::Create(options_.destination, stores_));
      HETERO_RETURN_IF_ERROR(output.Write(search.shards, samples));
    }
    if (options_.on_progress != nullptr) options_.on_progress({bytes, bytes});
    return source::SampleTable(std::move(samples));
  }

  bool was_there() const { return was_there_; }

 private:
  // The index that is there already; none where it is to be made.
  absl::StatusOr<std::optional<source::SampleTable>> There(
      const source::SampleSearch& search) const {
    absl::StatusOr<storage::FileDescriptor> file = source::OpenIndex(options_.destination, stores_);
    if (absl::IsNotFound(file.status())) return std::nullopt;
    absl::StatusOr<source::SampleTable> table =
        file.ok() ? source::ReadIndex(*std::move(file), options_.destination, "this command",
                                      search.store.uri(), search.shards)
                  : file.status();
    if (table.ok()) {
      was_there_ = true;
      return *std::move(table);
    }
    if (absl::IsFailedPrecondition(table.status()) || absl::IsDataLoss(table.status())) {
      return std::nullopt;
    }
    if (!absl::IsInvalidArgument(table.status())) return table.status();
    return absl::InvalidArgumentError(
        absl::StrCat(options_.destination,
                     ": is something else than an index; choose another name "
                     "for the index, or remove this"));
  }

  const IndexOptions& options_;
  const storage::Stores stores_;
  mutable bool was_there_ = false;
};

}  // namespace

std::string ProgressText(const IndexProgress& progress, double seconds) {
  std::string text =
      absl::StrCat("indexed ", insight::BytesText(static_cast<double>(progress.bytes)), " of ",
                   insight::BytesText(static_cast<double>(progress.all_bytes)));
  if (progress.bytes <= 0 || seconds <= 1) return text;
  const double rate = static_cast<double>(progress.bytes) / seconds;
  absl::StrAppend(&text, ", ", insight::BytesText(rate), "/s");
  if (progress.bytes == progress.all_bytes) return text;
  const auto left = static_cast<double>(progress.all_bytes - progress.bytes);
  return absl::StrCat(text, ", ", insight::DurationText(left / rate), " left");
}

std::string SummaryText(const Indexed& indexed) {
  return absl::StrCat(insight::CountText(*indexed.source.samples), " samples in ",
                      insight::CountText(indexed.shards),
                      indexed.shards == 1 ? " shard" : " shards",
                      indexed.was_there ? "; the index was there already" : "");
}

absl::StatusOr<Indexed> IndexDataset(const IndexOptions& options) {
  Indexed indexed{.source = options.source, .label = options.label};
  indexed.source.index = api::DatasetIndex{.uri = options.destination};
  HETERO_ASSIGN_OR_RETURN(indexed.source.format,
                          source::DetectFormat(options.source, options.storage));
  auto writer = std::make_shared<const IndexWriter>(options);
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<source::Dataset> dataset,
                          source::OpenDataset(indexed.source, job::Split::kTrain, /*seed=*/0,
                                              options.label, options.storage, writer));
  indexed.shards = dataset->shards();
  indexed.was_there = writer->was_there();
  indexed.source.samples = dataset->size();
  if (dataset->classes() > 0) indexed.source.classes = dataset->classes();
  return indexed;
}

}  // namespace hetero::local
