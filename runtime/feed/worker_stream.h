#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "runtime/feed/data_connections.h"
#include "runtime/feed/region_socket.h"
#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/wire.h"

namespace hetero::feed {

// Totals over all streams of a server.
struct AtomicCounters {
  std::atomic<int64_t> batches{0};
  std::atomic<int64_t> samples{0};
  std::atomic<int64_t> bytes{0};
};

// How batches may go, other than over the stream.
struct WaysBeside {
  RegionReceiver* regions = nullptr;       // null: nothing is shared
  DataConnections* connections = nullptr;  // null: there are none
};

// A worker's end of one trainer's stream: submits the trainer's tickets to the executor and sends
// its frames, one at a time. Owns itself until gRPC is done with it; when the stream ends, its
// tickets that have not started are cancelled. Thread-safe. Executor, counters and what is in
// `ways` outlive the gRPC server, which outlives every stream.
class WorkerStream : public grpc::ServerGenericBidiReactor {
 public:
  // Starts to read; the pointer is valid until gRPC has been told so by OnDone.
  static WorkerStream* Open(TicketExecutor* executor, AtomicCounters* counters, WaysBeside ways);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  WorkerStream(TicketExecutor* executor, AtomicCounters* counters, WaysBeside ways)
      : executor_(*executor), counters_(*counters), ways_(ways) {}
  void ExpectData(const DataOffer& offer);
  void OnData(std::shared_ptr<DataConnection> data);
  void Submit(const Ticket& ticket);
  void CancelTicket(int64_t id);
  void CancelAll();
  Slab SlabFor(int64_t bytes);
  void SendStarted(const Ticket& ticket);
  void SendResult(const Ticket& ticket, absl::StatusOr<std::unique_ptr<Batch>> batch);
  void Send(grpc::ByteBuffer frame);
  void WriteNext();  // with mutex_ held, while nothing is being written
  void End(const grpc::Status& status);

  TicketExecutor& executor_;
  AtomicCounters& counters_;
  const WaysBeside ways_;
  std::shared_ptr<WorkerStream> self_;  // dropped in OnDone
  grpc::ByteBuffer request_;            // gRPC writes it between StartRead and OnReadDone

  std::mutex mutex_;                     // guards all below
  std::deque<grpc::ByteBuffer> frames_;  // not handed to gRPC yet
  grpc::ByteBuffer message_;             // being written
  bool writing_ = false;
  bool ended_ = false;         // Finish was called: nothing may be written any more
  bool brisk_ = false;         // the latest ticket took next to no time
  uint64_t region_token_ = 0;  // of a region that has not been found yet
  std::shared_ptr<WorkerRegion> region_;
  uint64_t data_id_ = 0;                  // of the connection that was offered; 0: none
  std::shared_ptr<DataConnection> data_;  // where frames go once it is there
  std::unordered_map<int64_t, TicketExecutor::Handle> queued_;  // by ticket id; not started
};

}  // namespace hetero::feed
