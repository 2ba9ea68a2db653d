#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "runtime/feed/batch_producer.h"
#include "runtime/feed/cut_pipeline.h"
#include "runtime/feed/fatal_samples.h"
#include "runtime/feed/read_ahead.h"
#include "runtime/feed/sample_masks.h"
#include "runtime/feed/view_groups.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/job/field_set.h"
#include "runtime/job/permutation.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/source/dataset.h"

namespace hetero::feed {

// Dataset, pipeline and sample order of one job: turns (split, epoch, slot) into sample bytes. The
// same object stands behind a CPU worker and a trainer's own cores. Safe from any thread.
class SampleProducer : public BatchProducer {
 public:
  static constexpr int32_t kMaxCandidates = 1000;  // to replace one bad sample

  // Opens the datasets of `job` and builds the pipelines. Errors as OpenDataset and
  // Pipeline::Create. `clock` paces the retries of storage errors. Without `python`, which outlives
  // the producer, that of a job with Python operators makes no samples, but knows what they are.
  static absl::StatusOr<std::unique_ptr<SampleProducer>> Create(
      const api::HeteroTrainingJob& job, base::Clock& clock = base::Clock::Real(),
      const pipeline::PythonFunctions* python = nullptr);
  // The same over datasets that are open already; `validation` may be null.
  static absl::StatusOr<std::unique_ptr<SampleProducer>> Create(
      const api::HeteroTrainingJob& job, std::unique_ptr<source::Dataset> train,
      std::unique_ptr<source::Dataset> validation, base::Clock& clock = base::Clock::Real(),
      const pipeline::PythonFunctions* python = nullptr);

  absl::Status Check(const Ticket& ticket) const override;
  Batch Allocate(const Ticket& ticket, const SlabSource& slabs) const override;
  // Storage errors are retried three times and then returned. A bad sample is replaced
  // (job/replacement.h); kDataLoss only when 1,000 candidates in a row are bad.
  // kResourceExhausted naming a sample for which there was no memory, kInternal naming one of which
  // something was thrown.
  absl::Status Produce(Batch* batch, int64_t index, std::optional<BadSample>* bad) const override;
  int64_t sample_bytes() const override;
  int64_t batch_bytes(const Ticket& ticket) const override;
  // Where the data is behind a network: its samples are read ahead.
  std::unique_ptr<Expected> Expect(const Ticket& ticket) const override;
  // The first kMostGatheredBytes of them; the rest is read when it is produced.
  static constexpr int64_t kMostGatheredBytes = 64 << 20;
  std::unique_ptr<Gathered> Gather(const Ticket& ticket,
                                   const std::stop_token& stop) const override;
  absl::Status ProduceGathered(const Gathered& gathered, Batch* batch, int64_t index,
                               std::optional<BadSample>* bad) const override;

  absl::Status ProduceNoted(Batch* batch, int64_t index, std::optional<BadSample>* bad,
                            std::atomic<int64_t>* touched) const override;
  void Avoid(const FatalSample& sample) const override { fatal_.Add(sample); }
  std::vector<FatalSample> avoided() const override { return fatal_.All(); }
  std::string DescribeSample(job::Split split, int64_t id) const override {
    return dataset(split).Describe(id);
  }

  // Validation only when has_validation().
  const source::Dataset& dataset(job::Split split) const;
  bool has_validation() const { return validation_ != nullptr; }
  const pipeline::Pipeline& pipeline(job::Split split) const { return cut(split).whole(); }
  const CutPipeline& cut(job::Split split) const;
  // What a sample has beside its image.
  const job::FieldSet& fields(job::Split split) const {
    return split == job::Split::kTrain ? fields_ : validation_fields_;
  }
  // By entry of spec.pipeline, what it has cost here for the training samples that were measured.
  std::vector<pipeline::OperatorCost> costs() const;
  // Views beside the image, of training samples.
  const ViewGroups& view_groups() const { return groups_; }
  // What decides the pixels besides the job and the data: versions of the libraries that decode,
  // and the checksums of plugins. Where it differs, batches may.
  const std::map<std::string, std::string>& environment() const { return environment_; }

  // Whether a batch that somebody else made of `batch.ticket`, which is one of this job's, can be
  // what this producer would have made: the samples of its slots in the job's order, or what
  // replaces bad ones; its shape, its fields and its labels. kFailedPrecondition says what differs.
  // It looks at no pixel.
  absl::Status CheckBatch(const Batch& batch) const;

  // Shape of a sample whose last `left` entries are still to be done; cut(split).CanLeave(left).
  api::ImageShape FrontOutput(job::Split split, int32_t left) const;
  // Does what the worker of `half` left undone for entry `index`, into the same entry of `*batch`.
  absl::Status FinishSample(const Batch& half, int64_t index, Batch* batch) const;

 private:
  explicit SampleProducer(base::Clock& clock) : clock_(clock) {}
  job::Permutation OrderOf(const Ticket& ticket) const;
  int64_t ReplacementOf(const Ticket& ticket, int64_t slot, int32_t attempt) const;
  absl::Status CheckClass(int64_t label) const;
  absl::Status CheckSample(const Batch& batch, int64_t index, int64_t own) const;
  class GatheredSamples;
  // Where samples come from besides the dataset.
  struct Reading {
    // Not from what is read ahead: in a child of fork(), where nobody does, and on threads that may
    // not take its lock.
    bool alone = false;
    const GatheredSamples* gathered = nullptr;
    std::atomic<int64_t>* touched = nullptr;  // as ProduceNoted() has it
  };
  absl::Status ProduceBy(const Reading& reading, Batch* batch, int64_t index,
                         std::optional<BadSample>* bad) const;
  absl::Status ReadWithRetries(job::Split split, int64_t id, bool alone,
                               source::RawSample* sample) const;
  absl::Status ProduceFrom(const Reading& reading, Batch* batch, int64_t index, int64_t id) const;
  absl::Status ReadAndTransform(const Reading& reading, Batch* batch, int64_t index,
                                int64_t id) const;

  // Of what a sample has beside its image.
  int64_t fields_bytes(job::Split split) const;

  base::Clock& clock_;
  uint64_t seed_ = 0;
  bool labels_are_classes_ = true;
  job::FieldSet fields_;
  job::FieldSet validation_fields_;
  ViewGroups groups_;
  SampleMasks masks_;
  std::map<std::string, std::string> environment_;
  api::Shuffle shuffle_;
  std::unique_ptr<source::Dataset> train_;
  std::unique_ptr<source::Dataset> validation_;
  std::unique_ptr<CutPipeline> train_pipeline_;
  std::unique_ptr<CutPipeline> validation_pipeline_;
  // What has been found out about the job's data, not what the job is.
  mutable FatalSamples fatal_;
  std::unique_ptr<ReadAhead> ahead_;  // null: reads do not wait
};

}  // namespace hetero::feed
