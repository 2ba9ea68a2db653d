#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "runtime/feed/data_receiver.h"
#include "runtime/feed/wire.h"

namespace hetero::feed {

// A trainer's end of one stream to one CPU worker, from dialling until it breaks. Thread-safe. gRPC
// keeps it, and with it the channel, until just before on_down, which is called exactly once and
// last. The channel's owner outlives that call: a last reference must not go on gRPC's own thread.
class TrainerStream : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // Called on gRPC's threads, with no lock held; never from inside Dial() or Send().
  struct Callbacks {
    std::function<void()> on_up;          // the worker answered
    std::function<void(Frame)> on_frame;  // decoded; batches are checked; from two threads at once
    std::function<void()> on_data;        // the worker took the data connection up
    std::function<void(absl::Status)> on_down;
  };
  static std::shared_ptr<TrainerStream> Dial(const std::shared_ptr<grpc::Channel>& channel,
                                             Callbacks callbacks);

  // From the next request on the worker may put its batches into `region`.
  void Share(std::shared_ptr<const TrainerRegion> region);
  // Opens a data connection beside the stream, on which the worker's frames come once it is there.
  // Where it cannot be made, they keep coming here. Only once the worker has answered.
  void OpenData(bool secured);
  // Queues the request; dropped when the stream is broken.
  void Send(const TicketRequest& request);
  // Breaks the stream.
  void Cancel();

  void OnReadInitialMetadataDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  explicit TrainerStream(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}
  void WriteNext();  // with mutex_ held, while nothing is being written
  // Gives the stream up; what comes first counts.
  void Break(const absl::Status& reason);
  void OnDataEnd(const absl::Status& status, bool dialled);

  const Callbacks callbacks_;
  grpc::ClientContext context_;
  std::shared_ptr<TrainerStream> self_;  // dropped in OnDone
  grpc::ByteBuffer frame_;               // gRPC writes it between StartRead and OnReadDone

  std::mutex mutex_;  // guards all below
  std::shared_ptr<const TrainerRegion> region_;
  std::unique_ptr<DataReceiver> data_;
  absl::Status broken_;       // why the trainer itself gave the stream up
  TicketRequest next_;        // not handed to gRPC yet
  grpc::ByteBuffer request_;  // being written
  bool writing_ = false;
  bool ended_ = false;  // nothing may be written any more
};

}  // namespace hetero::feed
