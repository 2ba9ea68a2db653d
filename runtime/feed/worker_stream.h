#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/feed/ticket_intake.h"
#include "runtime/feed/transport/transport.h"
#include "runtime/feed/wire/messages.h"

namespace hetero::feed {

// Totals over all streams of a server.
struct AtomicCounters {
  std::atomic<int64_t> batches{0};
  std::atomic<int64_t> samples{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<double> produce_seconds{0};
  std::atomic<double> read_seconds{0};
};

// A worker's parts of its transports, in order of preference.
using TransportServers = std::vector<std::unique_ptr<TransportServer>>;

// A worker's end of one trainer's stream: submits the trainer's tickets to the intake and sends
// its frames by the first transport that takes them. Owns itself until gRPC is done with it; when
// the stream ends, its tickets that have not started are cancelled. Thread-safe. Intake, counters
// and transports outlive the gRPC server, which outlives every stream.
class WorkerStream : public grpc::ServerGenericBidiReactor, public SenderStream {
 public:
  // Starts to read; the pointer is valid until gRPC has been told so by OnDone. `peer`: the trainer
  // as gRPC writes it ("ipv4:10.0.0.7:41234"), for messages.
  static WorkerStream* Open(std::string peer, TicketIntake* intake, AtomicCounters* counters,
                            const TransportServers& transports);

  // gRPC swallows what these throw, and would wait for the next step for ever: what nobody has
  // handled ends the process instead.
  void OnReadDone(bool ok) noexcept override;
  void OnWriteDone(bool ok) noexcept override;
  void OnDone() noexcept override;

  void Write(const grpc::ByteBuffer& message) override;
  void OnReady() override;
  void Break(const absl::Status& reason) override;

 private:
  WorkerStream(std::string peer, TicketIntake* intake, AtomicCounters* counters)
      : peer_(std::move(peer)), intake_(*intake), owner_(intake->Join()), counters_(*counters) {}
  void Submit(const Ticket& ticket);
  void CancelTicket(int64_t id);
  Slab SlabFor(int64_t bytes);
  void SendStarted(const Ticket& ticket);
  void SendResult(const Ticket& ticket, absl::StatusOr<std::unique_ptr<Batch>> batch);
  void Send(grpc::ByteBuffer frame);
  // While no message is being written.
  void SendQueued() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const grpc::Status& status);

  const std::string peer_;
  TicketIntake& intake_;
  const TicketGate::Owner owner_;
  AtomicCounters& counters_;
  std::vector<std::shared_ptr<BatchSender>> senders_;  // in order of preference; constant
  std::shared_ptr<WorkerStream> self_;                 // dropped in OnDone
  grpc::ByteBuffer request_;  // gRPC writes it between StartRead and OnReadDone

  base::Mutex mutex_;
  std::deque<grpc::ByteBuffer> frames_ ABSL_GUARDED_BY(mutex_);  // that no transport has taken yet
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mutex_);             // being written
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) =
      false;  // Finish was called: nothing may be written any more
  bool brisk_ ABSL_GUARDED_BY(mutex_) = false;  // the latest ticket took next to no time
  // By ticket id; not started.
  std::unordered_map<int64_t, TicketIntake::Handle> queued_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::feed
