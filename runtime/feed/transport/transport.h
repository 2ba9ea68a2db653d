#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/feed/transport/transports.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/feed/wire/messages.h"

// How batches get from a CPU worker to a trainer. Between the two there is one stream of gRPC,
// which always carries tickets (proto/hetero/v1/feed.proto). Batches go by transports, listed in
// order of preference in transports.h: the trainer offers over the stream what may be used beside
// it, the worker accepts what it finds, and the rest of the feed walks the list.
//
//   trainer, one BatchReceiver per stream     CPU worker, one BatchSender per stream
//     Offer(&request)                    ->     Accept(request)
//                                               Allocate(bytes)    memory for a batch
//     on_frame, or Open(header, bytes)   <-     Send(&frames)
//     End()                                     End()
//
// A transport may carry frames (data_transport.cpp), or leave that to the stream and decide where
// the batches lie that the frames name (shared_memory_transport.cpp), or both. What goes wrong with
// it must end the stream or be found by a frame's checksums: tickets are then issued again.
namespace hetero::feed {

class SocketThreads;

// The trainer's end of a transport at one stream. Thread-safe.
class BatchReceiver {
 public:
  // On the receiver's own threads, with no lock held.
  struct Callbacks {
    // The worker uses it, or need not say so. May be called by Offer().
    std::function<void()> on_accepted;
    std::function<void(Frame)> on_frame;
    // What was on its way nobody can tell any more: the stream has to end.
    std::function<void(const absl::Status&)> on_broken;
    OpenMemory open_memory;  // for ReadFrame()
  };
  virtual ~BatchReceiver() = default;  // after End(), where Offer() was successful

  // Once, when the worker has answered: makes ready what is this side's and puts what the worker
  // has to know into `request`. After an error, which says why, the other transports do without
  // this one, and `request` is as it was.
  virtual absl::Status Offer(v1::TicketRequest* request) = 0;

  // Whether `header` names a batch in this transport's memory.
  virtual bool Holds(const v1::FrameHeader&) const { return false; }
  // That batch. kDataLoss when there is none of `bytes` bytes at that place.
  virtual absl::StatusOr<Slab> Open(const v1::FrameHeader&, int64_t /*bytes*/) const {
    return absl::DataLossError("this transport has no memory of its own");
  }

  // The stream is over: calls nobody any more when it returns. Not called from a callback.
  virtual void End() {}
};

// What senders ask of their stream.
class SenderStream {
 public:
  virtual ~SenderStream() = default;
  // Sends a message of the stream itself, whose frames the trainer takes for the last transport's.
  // Only from inside Send(), once; the stream calls Send() again when it is written.
  virtual void Write(const grpc::ByteBuffer& message) = 0;
  // Send() would take frames from now on. With no lock held.
  virtual void OnReady() = 0;
  // Ends the stream. With no lock held.
  virtual void Break(const absl::Status& reason) = 0;
};

// The worker's end of a transport at one stream. Thread-safe.
class BatchSender {
 public:
  virtual ~BatchSender() = default;
  // Takes up the trainer's offer, where `request` has one of this transport.
  virtual void Accept(const v1::TicketRequest&) {}
  // Memory for a batch, when it should lie in this transport's. Its owner names it in the frame
  // (SlabOwner::HandOver). Absent: any memory will do.
  virtual std::optional<Slab> Allocate(int64_t /*bytes*/) { return std::nullopt; }
  // Takes frames from the front of `frames`, at least one, and sends them in order; their memory is
  // let go of once they are sent. False, and none is taken, while it cannot carry frames. Called
  // with the stream's lock held.
  virtual bool Send(std::deque<grpc::ByteBuffer>* /*frames*/) { return false; }
  // The stream is over: drops what was not sent. With the stream's lock held.
  virtual void End() {}
};

// A worker's part of a transport that its streams share. Outlives them. Thread-safe.
class TransportServer {
 public:
  virtual ~TransportServer() = default;
  virtual std::shared_ptr<BatchSender> NewSender(std::weak_ptr<SenderStream> stream) = 0;
  // What a connection to the feed's TCP port begins with that is this transport's
  // (FeedListener::kPreambleBytes of it); empty: none is.
  virtual std::string_view preamble() const { return {}; }
  // Takes such a connection over; nothing of it was read.
  virtual void TakeConnection(int /*fd*/) {}
};

struct ReceiverContext {
  std::string address;      // the worker's in the roster: "unix:/run/cpu-0", "cpu-0:7080"
  std::string peer;         // the same as gRPC found it: "ipv4:10.0.0.7:7080"
  bool secured = true;      // whether the stream is under TLS
  int64_t byte_budget = 0;  // of the trainer's window
  int64_t batch_bytes = 0;  // of the largest batch as it is sent; 0: not known
  // For connections beside the stream; outlive it.
  SocketThreads* threads = nullptr;
};

struct ServerContext {
  std::string listen_address;
  base::Clock& clock;
};

// An entry of the list. All are constants.
struct Transport {
  std::string_view name;  // of counters and logs
  // Whether it is for workers at `address`, of the roster or listened on.
  bool (*fits)(const std::string& address);
  std::unique_ptr<BatchReceiver> (*receive)(ReceiverContext context,
                                            BatchReceiver::Callbacks callbacks);
  // Null, and a line in the log, where the system refuses what it needs.
  std::unique_ptr<TransportServer> (*serve)(const ServerContext& context);
};

}  // namespace hetero::feed
