#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/tls.h"
#include "runtime/feed/batch_producer.h"
#include "runtime/feed/batch_stream.h"
#include "runtime/feed/distrusted_workers.h"
#include "runtime/feed/local_share.h"
#include "runtime/feed/placement_probe.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/transport/transports.h"
#include "runtime/feed/worker_address.h"
#include "runtime/job/schedule.h"

namespace hetero::feed {

// What a rank has to say of a CPU worker, for the report: that it is in quarantine, and the same
// again with the time that this took once it delivers.
struct WorkerFault {
  base::WallTime time;
  std::string what;
  std::optional<double> recovery_seconds;
};

// A trainer's side of the tickets: asks CPU workers (and its own cores) for the batches of its
// Schedule, keeps a bounded window of them, hands them out in order. Decisions are Window's
// (window.h). Thread-safe except Next(), which one thread calls.
class TicketClient : public BatchStream {
 public:
  struct Options {
    int32_t rank = 0;
    int64_t generation = 1;
    int64_t first_batch = 0;  // of the schedule; earlier ones are done
    // Batch of the schedule that a process which ended before this one may have come to: of those
    // up to a window after it the own cores produce the samples in child processes. Absent: none
    // ended.
    std::optional<int64_t> suspect_batch;
    int64_t byte_budget = int64_t{512} << 20;  // of the window, at least two batches
    int64_t max_window = 1024;                 // batches
    int local_threads = 1;                     // of this host's own cores; 0: they serve nothing
    LocalShare local_share = LocalShare::kLastResort;
    // Which operators are the trainer's: what is known before a worker was measured, and who does
    // them, on finisher_threads. Without cuts the workers do all. The producer outlives the client.
    PlacementInput placement;
    const SampleProducer* finisher = nullptr;
    // What workers' batches are held to (SampleProducer::CheckBatch); null: they are believed. It
    // outlives the client.
    const SampleProducer* expected = nullptr;
    // Those that were found to be held to it in vain; streams with the same options share it.
    std::shared_ptr<DistrustedWorkers> distrusted = std::make_shared<DistrustedWorkers>();
    int finisher_threads = 1;
    base::TlsOptions tls;
    Transports transports = EveryTransport();  // those that fit a worker are offered to it
    // Where batches come to lie; absent: on the heap. What a worker has put into shared memory
    // stays there, unless `moves_shared`.
    SlabSource slabs = nullptr;
    bool moves_shared = false;
  };
  // `producer` serves tickets on this host's own cores as `local_share` says, and may be null
  // when this host cannot read the dataset. `schedule` decides the tickets. Both outlive the
  // client. Without readable TLS files no worker can be reached: Next() then returns that error.
  static std::unique_ptr<TicketClient> Start(Options options, const job::Schedule* schedule,
                                             const BatchProducer* producer, base::Clock& clock);

  // The CPU workers alive now; at first there are none. Tickets of vanished ones are issued again
  // elsewhere.
  virtual void SetRoster(const std::vector<WorkerAddress>& workers) = 0;
  virtual PlacementState placement() const = 0;
  // What is new since the last call; of very many the first.
  virtual std::vector<WorkerFault> TakeFaults() = 0;
  // Batches from CPU workers that were taken as they came, by Transport::name.
  virtual std::map<std::string_view, int64_t> batches_by_transport() const = 0;
};

}  // namespace hetero::feed
