#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/feed/wire/batch.h"

namespace hetero::feed {

// Where a batch's memory comes from.
using SlabSource = std::function<Slab(int64_t bytes)>;
inline Slab NewSlab(int64_t bytes) { return Slab(bytes); }

// Turns tickets into batches, sample by sample. Implementations are safe from any thread.
class BatchProducer {
 public:
  virtual ~BatchProducer() = default;

  // Whether `ticket` can be served at all: its split exists, its slots are in range, its batch is
  // smaller than 2 GiB. kInvalidArgument otherwise. Tickets come from the network.
  virtual absl::Status Check(const Ticket& ticket) const = 0;
  // Sizes a batch for a checked `ticket`: a slab of `slabs`, labels, ids and checksums allocated,
  // nothing produced.
  virtual Batch Allocate(const Ticket& ticket, const SlabSource& slabs) const = 0;
  // Produces entry `index` of `batch`; entries may be filled from several threads at once, except
  // that a bad sample is returned in `*bad` (has_value) for the caller to append.
  virtual absl::Status Produce(Batch* batch, int64_t index,
                               std::optional<BadSample>* bad) const = 0;
  // What is kept as long as a ticket waits and is served.
  class Expected {
   public:
    virtual ~Expected() = default;
  };
  // The entries of `ticket`, which need not be checked, will be produced: what takes waiting may
  // begin. Null: nothing does. It ends before the producer does.
  virtual std::unique_ptr<Expected> Expect(const Ticket& /*ticket*/) const { return nullptr; }
  // Stored samples of a ticket that lie in memory.
  class Gathered {
   public:
    virtual ~Gathered() = default;
  };
  // Waits for the samples of a checked `ticket`, for threads that must not (IdleThreads): what
  // Expect() began, most often. Null: their reading takes no waiting, or `stop` was requested.
  virtual std::unique_ptr<Gathered> Gather(const Ticket& /*ticket*/,
                                           const std::stop_token& /*stop*/) const {
    return nullptr;
  }
  // Produce() of a batch of whose ticket `gathered` is; takes no lock that reading ahead takes.
  virtual absl::Status ProduceGathered(const Gathered& /*gathered*/, Batch* batch, int64_t index,
                                       std::optional<BadSample>* bad) const {
    return Produce(batch, index, bad);
  }
  // Bytes of the largest sample of any split.
  virtual int64_t sample_bytes() const = 0;
  // Bytes of the batch of a checked `ticket`.
  virtual int64_t batch_bytes(const Ticket& ticket) const {
    return ticket.slots.count * sample_bytes();
  }

  // Of samples that end the process which touches them (guarded_samples.h).

  // Produce(), with the id of each sample in `*touched` before it is touched. Takes no lock that
  // another thread of this process might hold: it is called in a child of fork().
  virtual absl::Status ProduceNoted(Batch* batch, int64_t index, std::optional<BadSample>* bad,
                                    std::atomic<int64_t>* /*touched*/) const {
    return Produce(batch, index, bad);
  }
  // From now on the sample is bad wherever it comes up, and is not touched any more.
  virtual void Avoid(const FatalSample& /*sample*/) const {}
  virtual std::vector<FatalSample> avoided() const { return {}; }
  // "train/cat/0004.jpg", for messages.
  virtual std::string DescribeSample(job::Split /*split*/, int64_t id) const {
    return "sample " + std::to_string(id);
  }
};

}  // namespace hetero::feed
