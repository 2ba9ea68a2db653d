#pragma once

#include <limits>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/tls.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/transport/transports.h"

namespace hetero::feed {

// Totals of a CPU worker since it started. Monotone.
struct WorkerCounters {
  int64_t batches = 0;
  int64_t samples = 0;
  int64_t bytes = 0;           // of tensors
  double busy_seconds = 0;     // with at least one ticket to serve
  double produce_seconds = 0;  // sum over the batches, from begun to made
  double read_seconds = 0;     // of it: waiting for storage
};

// A CPU worker's gRPC server: serves tickets of any trainer from `producer`. Stateless: a ticket
// and the job decide the answer. Thread-safe; the destructor cancels streams and joins its threads.
class WorkerServer {
 public:
  struct Options {
    std::string listen_address;  // "0.0.0.0:7080", "unix:/path"; port 0 allowed
    base::TlsOptions tls;
    std::string name;  // "cpu-0", for Batch::producer and logs
    int threads = 1;
    Transports transports = EveryTransport();  // those that fit the address are served
    // Of batches in work and on their way, but for one; what else is asked for waits.
    int64_t batch_memory_bytes = std::numeric_limits<int64_t>::max();
  };
  // Binds at once, so that the address is known before the job is; tickets wait until SetProducer.
  // kInvalidArgument: a unix path longer than the system allows; kUnavailable: the address cannot
  // be bound, for example because another process has the port.
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Start(Options options, base::Clock& clock);
  virtual ~WorkerServer() = default;

  virtual void SetProducer(const BatchProducer* producer) = 0;  // once; outlives the server's use
  // listen_address with the port that was bound.
  virtual std::string address() const = 0;
  virtual WorkerCounters counters() const = 0;
};

}  // namespace hetero::feed
