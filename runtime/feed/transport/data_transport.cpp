#include "runtime/feed/transport/data_transport.h"

#include <limits>
#include <random>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/feed/transport/data_connections.h"
#include "runtime/feed/transport/data_receiver.h"

namespace hetero::feed {
namespace {

// What announces more than the largest batch and all that belongs to it is damaged.
size_t MostBytes(const ReceiverContext& context) {
  constexpr size_t kBeside = 64 << 20;
  if (context.batch_bytes == 0) return std::numeric_limits<size_t>::max();
  return static_cast<size_t>(context.batch_bytes) + kBeside;
}

class DataTransportReceiver : public BatchReceiver {
 public:
  DataTransportReceiver(ReceiverContext context, Callbacks callbacks)
      : context_(std::move(context)), callbacks_(std::move(callbacks)) {}

  absl::Status Offer(v1::TicketRequest* request) override {
    if (context_.threads == nullptr) return absl::UnavailableError("nothing reads connections");
    std::random_device random;
    const DataOffer offer{.id = uint64_t{random()} << 32 | random(),
                          .key = context_.secured ? NewDataKey() : ""};
    if (offer.id == 0 || (context_.secured && offer.key.empty())) {
      return absl::UnavailableError("the system has no random key");
    }
    HETERO_ASSIGN_OR_RETURN(
        connection_, DataReceiver::Start(context_.peer, offer,
                                         {.on_answer = callbacks_.on_accepted,
                                          .on_frame = callbacks_.on_frame,
                                          .on_end = [this](const absl::Status& status,
                                                           bool taken) { OnEnd(status, taken); },
                                          .open_memory = callbacks_.open_memory,
                                          .most_bytes = MostBytes(context_)},
                                         *context_.threads));
    request->mutable_data()->set_id(offer.id);
    request->mutable_data()->set_key(offer.key);
    return absl::OkStatus();
  }
  void End() override { connection_.reset(); }

 private:
  void OnEnd(const absl::Status& status, bool taken) const {
    // What was lost nobody can say.
    if (taken) return callbacks_.on_broken(status);
    log::Info("no data connection to a CPU worker",
              {{"reason", status.message()}, {"peer", context_.peer}});
  }

  const ReceiverContext context_;
  const Callbacks callbacks_;
  std::unique_ptr<DataReceiver> connection_;  // from Offer() on; its thread uses all above
};

class DataSender : public BatchSender, public std::enable_shared_from_this<DataSender> {
 public:
  DataSender(DataConnections& connections, std::weak_ptr<SenderStream> stream)
      : connections_(connections), stream_(std::move(stream)) {}

  void Accept(const v1::TicketRequest& request) override {
    if (request.data().id() == 0) return;  // none is offered
    {
      const base::MutexLock lock(mutex_);
      if (ended_ || id_ != 0) return;  // once for each stream
      id_ = request.data().id();
    }
    connections_.Expect(
        {.id = request.data().id(), .key = request.data().key()},
        {.on_open =
             [self = shared_from_this()](std::shared_ptr<DataConnection> connection) {
               self->OnOpen(std::move(connection));
             },
         .on_broken =
             [stream = stream_](const absl::Status& status) {
               if (const auto held = stream.lock()) held->Break(status);
             }});
  }
  bool Send(std::deque<grpc::ByteBuffer>* frames) override {
    const base::MutexLock lock(mutex_);
    if (connection_ == nullptr) return false;
    connection_->Send(frames);
    return true;
  }
  void End() override {
    const base::MutexLock lock(mutex_);
    ended_ = true;
    if (id_ != 0) connections_.Forget(id_);
    if (connection_ != nullptr) connection_->Close();
  }

 private:
  void OnOpen(std::shared_ptr<DataConnection> connection) {
    {
      const base::MutexLock lock(mutex_);
      if (ended_) return connection->Close();
      connection_ = std::move(connection);
    }
    if (const auto stream = stream_.lock()) stream->OnReady();
  }

  DataConnections& connections_;
  const std::weak_ptr<SenderStream> stream_;
  base::Mutex mutex_;
  uint64_t id_ ABSL_GUARDED_BY(mutex_) = 0;  // of the connection that was offered; 0: none
  std::shared_ptr<DataConnection> connection_ ABSL_GUARDED_BY(mutex_);  // once it is there
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class DataTransportServer : public TransportServer {
 public:
  explicit DataTransportServer(base::Clock& clock) : connections_(clock) {}
  std::shared_ptr<BatchSender> NewSender(std::weak_ptr<SenderStream> stream) override {
    return std::make_shared<DataSender>(connections_, std::move(stream));
  }
  std::string_view preamble() const override { return {kDataMagic.data(), kDataMagic.size()}; }
  void TakeConnection(int fd) override { connections_.Accept(fd); }

 private:
  DataConnections connections_;
};

}  // namespace

constinit const Transport kDataTransport = {
    .name = "data_connection",
    .fits = [](const std::string& address) { return !address.starts_with("unix:"); },
    .receive = [](ReceiverContext context,
                  BatchReceiver::Callbacks callbacks) -> std::unique_ptr<BatchReceiver> {
      return std::make_unique<DataTransportReceiver>(std::move(context), std::move(callbacks));
    },
    .serve = [](const ServerContext& context) -> std::unique_ptr<TransportServer> {
      return std::make_unique<DataTransportServer>(context.clock);
    },
};

}  // namespace hetero::feed
