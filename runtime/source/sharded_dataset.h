#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/source/dataset.h"
#include "runtime/source/sample_table.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// A dataset of shards: files in which many samples lie one behind the other. The samples' places
// are a table, and reading one is reading its bytes. What they mean is the format's.
class ShardedDataset : public Dataset {
 public:
  struct Contents {
    std::shared_ptr<const storage::Store> store;
    std::vector<storage::Object> shards;
    SampleTable samples;
    std::string rule;  // how the format finds a sample's parts: part of what the data is
  };
  // How many classes there are where the manifest does not say: one more than the highest label.
  static constexpr int32_t kCountClasses = -1;

  // Checks what the manifest declares, and takes it for what nothing else says. `classes` are the
  // format's own, 0 where labels are no classes, or kCountClasses.
  absl::Status Fill(std::string_view format, Contents contents, const api::DatasetSource& declared,
                    int32_t classes);

  int64_t size() const override { return contents_.samples.size(); }
  int64_t shards() const override { return static_cast<int64_t>(contents_.shards.size()); }
  int32_t classes() const override { return classes_; }
  api::ImageShape image() const override { return image_; }
  std::string fingerprint() const override { return fingerprint_; }
  std::string places() const override;
  std::string versions() const override;
  bool is_remote() const override { return contents_.store->is_remote(); }
  // "file:///data/a.tar: byte 1536"; it stands in the messages of Read().
  std::string Describe(int64_t id) const override;
  absl::Status Read(int64_t id, RawSample* sample) const override;
  // In a store behind a network, samples that lie behind each other in a shard are read by one
  // request of up to kMostRunBytes: neighbours, between which only heads of records lie, and others
  // where a sixteenth of what is wanted is read for nothing at most. Samples whose labels lie apart
  // are by themselves.
  static constexpr int64_t kMostRunBytes = 4 << 20;
  std::vector<Run> RunsOf(const std::vector<int64_t>& ids) const override;
  std::vector<absl::Status> ReadRun(absl::Span<const int64_t> ids,
                                    absl::Span<RawSample> samples) const override;

 protected:
  // Makes a sample of its bytes, which lie in `sample->bytes`; its label is the location's. A
  // kDataLoss needs no word about where.
  virtual absl::Status Unpack(const SampleLocation& location, RawSample* sample) const = 0;
  // Whether reading a sample takes more of its shard than `location`'s own bytes.
  virtual bool LiesApart(const SampleLocation& location) const {
    return location.label_length != 0;
  }
  // Labels that no class has are bad samples.
  virtual bool labels_are_classes() const = 0;

  // More bytes of a sample's shard.
  absl::Status ReadBytes(const SampleLocation& location, int64_t offset,
                         absl::Span<uint8_t> out) const;
  // Where a sample lies. kFailedPrecondition: in none of the shards.
  absl::StatusOr<SampleLocation> LocationOf(int64_t id) const;
  // The file that a sample lies in: "file:///data/a.tar". There is such a sample.
  std::string ShardOf(int64_t id) const;
  void SetImage(const api::ImageShape& image) { image_ = image; }

 private:
  absl::Status Finish(int64_t id, const SampleLocation& location, RawSample* sample) const;

  Contents contents_;
  int32_t classes_ = 0;
  api::ImageShape image_;
  std::string fingerprint_;
};

// kDataLoss for a label that is none of so many classes.
absl::Status CheckLabel(int64_t label, int32_t classes);

}  // namespace hetero::source
