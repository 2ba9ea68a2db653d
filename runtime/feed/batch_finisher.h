#pragma once

#include <map>
#include <memory>

#include "base/mutex.h"
#include "runtime/feed/batch_producer.h"
#include "runtime/feed/sample_producer.h"

namespace hetero::feed {

// Finishes batches whose last operators a worker left to the trainer. A BatchProducer for a
// TicketExecutor: Add() the worker's batch, submit its ticket, and the finished batch comes back,
// with the whole pipeline's bytes and checksums and the worker's labels, ids and bad samples. Safe
// from any thread.
class BatchFinisher : public BatchProducer {
 public:
  // `producer` outlives this.
  explicit BatchFinisher(const SampleProducer& producer) : producer_(producer) {}

  // Keeps `half` until Take(). A second one of the same ticket takes the first one's place.
  void Add(std::shared_ptr<const Batch> half);
  // The worker's batch, when its ticket is done or given up; null if there is none.
  std::shared_ptr<const Batch> Take(int64_t ticket);

  absl::Status Check(const Ticket& ticket) const override;
  Batch Allocate(const Ticket& ticket, const SlabSource& slabs) const override;
  absl::Status Produce(Batch* batch, int64_t index, std::optional<BadSample>* bad) const override;
  int64_t sample_bytes() const override { return producer_.sample_bytes(); }
  std::string DescribeSample(job::Split split, int64_t id) const override {
    return producer_.DescribeSample(split, id);
  }

 private:
  std::shared_ptr<const Batch> Find(int64_t ticket) const;

  const SampleProducer& producer_;
  mutable base::Mutex mutex_;
  std::map<int64_t, std::shared_ptr<const Batch>> halves_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::feed
