#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "runtime/feed/batch_producer.h"
#include "runtime/feed/transport/transport.h"
#include "runtime/feed/wire/messages.h"

namespace hetero::feed {

// A trainer's end of one stream to one CPU worker, from dialling until it breaks. Thread-safe. gRPC
// keeps it, and with it the channel, until just before on_down, which is called exactly once and
// last. The channel's owner outlives that call: a last reference must not go on gRPC's own thread.
class TrainerStream : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  struct Options {
    Transports transports;  // to be offered
    std::string address;    // ReceiverContext's
    bool secured = true;
    SlabSource slabs = nullptr;  // as in TicketClient::Options
    bool moves_shared = false;
    int64_t byte_budget = 0;
    int64_t batch_bytes = 0;
    SocketThreads* threads = nullptr;
  };
  // How it went, and what the worker made of the transports that were offered.
  struct Ending {
    absl::Status status;
    Transports accepted, unanswered;
  };
  // Called with no lock held, on gRPC's threads and the transports'; never from inside Dial() or
  // Send().
  struct Callbacks {
    std::function<void()> on_up;          // the worker answered
    std::function<void(Frame)> on_frame;  // decoded; batches are checked; from several threads
    std::function<void(const Ending&)> on_down;
  };
  static std::shared_ptr<TrainerStream> Dial(const std::shared_ptr<grpc::Channel>& channel,
                                             Options options, Callbacks callbacks);
  ~TrainerStream() override;

  // Queues the request; dropped when the stream is broken.
  void Send(const TicketRequest& request);
  // Breaks the stream.
  void Cancel();

  // gRPC swallows what these throw, and would wait for the next step for ever: what nobody has
  // handled ends the process instead.
  void OnReadInitialMetadataDone(bool ok) noexcept override;
  void OnReadDone(bool ok) noexcept override;
  void OnWriteDone(bool ok) noexcept override;
  void OnDone(const grpc::Status& status) noexcept override;

 private:
  struct Offered {
    const Transport* transport;
    std::unique_ptr<BatchReceiver> receiver;
  };

  TrainerStream(Options options, Callbacks callbacks);
  // Whether the worker that answered may work with this trainer.
  absl::Status CheckWorker() const;
  // Offers the transports to the worker.
  void Offer();
  BatchReceiver::Callbacks CallbacksOf(const Transport* transport);
  absl::StatusOr<NamedMemory> Open(const v1::FrameHeader& header, int64_t bytes);
  void OnFrame(const Transport& transport, Frame frame) const;
  // While nothing is being written.
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the stream up; what comes first counts.
  void Break(const absl::Status& reason);

  const Options options_;
  const Callbacks callbacks_;
  const OpenMemory open_memory_;
  grpc::ClientContext context_;
  std::shared_ptr<TrainerStream> self_;  // dropped in OnDone
  grpc::ByteBuffer frame_;               // gRPC writes it between StartRead and OnReadDone

  base::Mutex mutex_;
  std::unique_ptr<const std::vector<Offered>> offered_ ABSL_GUARDED_BY(mutex_);  // null: not yet
  Transports unanswered_ ABSL_GUARDED_BY(mutex_);
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);  // why the trainer itself gave the stream up
  std::unique_ptr<v1::TicketRequest> offers_ ABSL_GUARDED_BY(mutex_);  // not sent yet
  TicketRequest next_ ABSL_GUARDED_BY(mutex_);                         // not handed to gRPC yet
  grpc::ByteBuffer request_ ABSL_GUARDED_BY(mutex_);                   // being written
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // nothing may be written any more
};

}  // namespace hetero::feed
