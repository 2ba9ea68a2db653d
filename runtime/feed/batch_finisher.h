#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "runtime/feed/batch_producer.h"
#include "runtime/feed/producer_state.h"
#include "runtime/feed/sample_producer.h"

namespace hetero::feed {

// Finishes batches whose last operators a worker left to the trainer. A BatchProducer for a
// TicketExecutor: Add() the worker's batch, submit its ticket, and the finished batch comes back,
// with the whole pipeline's bytes and checksums and the worker's labels, ids and bad samples. A
// ticket that was issued again may come from several workers at once: one batch of it is finished
// at a time. Safe from any thread.
class BatchFinisher : public BatchProducer {
 public:
  // `producer` outlives this.
  explicit BatchFinisher(const SampleProducer& producer) : producer_(producer) {}

  // A worker's batch, and whose it is.
  struct Half {
    ProducerId producer;
    std::shared_ptr<const Batch> batch;
  };
  // Keeps `half` until DropFirst() comes to it. Whether it is the first of its ticket, and may be
  // submitted; the others wait behind that one.
  bool Add(Half half);
  // The batch that is being finished; null: none of this ticket is kept.
  std::shared_ptr<const Batch> First(int64_t ticket) const;
  // Lets go of that one, when it is done or has failed. The next of the same ticket, which is then
  // the first; absent: there is none.
  std::optional<Half> DropFirst(int64_t ticket);

  absl::Status Check(const Ticket& ticket) const override;
  Batch Allocate(const Ticket& ticket, const SlabSource& slabs) const override;
  absl::Status Produce(Batch* batch, int64_t index, std::optional<BadSample>* bad) const override;
  int64_t sample_bytes() const override { return producer_.sample_bytes(); }
  std::string DescribeSample(job::Split split, int64_t id) const override {
    return producer_.DescribeSample(split, id);
  }

 private:
  const SampleProducer& producer_;
  mutable base::Mutex mutex_;
  std::map<int64_t, std::deque<Half>> halves_ ABSL_GUARDED_BY(mutex_);  // by ticket
};

}  // namespace hetero::feed
