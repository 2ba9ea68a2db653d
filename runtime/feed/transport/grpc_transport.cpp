#include "runtime/feed/transport/grpc_transport.h"

#include <utility>

namespace hetero::feed {
namespace {

constexpr size_t kMessageBytes = 1 << 20;  // of frames that go together, at most

// The stream reads its messages itself.
class GrpcReceiver : public BatchReceiver {
 public:
  explicit GrpcReceiver(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}
  absl::Status Offer(v1::TicketRequest*) override {
    callbacks_.on_accepted();
    return absl::OkStatus();
  }

 private:
  const Callbacks callbacks_;
};

class GrpcSender : public BatchSender {
 public:
  explicit GrpcSender(std::weak_ptr<SenderStream> stream) : stream_(std::move(stream)) {}

  bool Send(std::deque<grpc::ByteBuffer>* frames) override {
    const std::shared_ptr<SenderStream> stream = stream_.lock();
    if (stream == nullptr) return false;
    std::vector<grpc::ByteBuffer> joined;
    size_t bytes = 0;
    do {
      bytes += frames->front().Length();
      joined.push_back(std::move(frames->front()));
      frames->pop_front();
    } while (!frames->empty() && bytes + frames->front().Length() <= kMessageBytes);
    stream->Write(joined.size() == 1 ? joined.front() : JoinFrames(joined));
    return true;
  }

 private:
  const std::weak_ptr<SenderStream> stream_;
};

class GrpcTransportServer : public TransportServer {
 public:
  std::shared_ptr<BatchSender> NewSender(std::weak_ptr<SenderStream> stream) override {
    return std::make_shared<GrpcSender>(std::move(stream));
  }
};

}  // namespace

constinit const Transport kGrpcTransport = {
    .name = "grpc",
    .fits = [](const std::string&) { return true; },
    .receive = [](ReceiverContext,
                  BatchReceiver::Callbacks callbacks) -> std::unique_ptr<BatchReceiver> {
      return std::make_unique<GrpcReceiver>(std::move(callbacks));
    },
    .serve = [](const ServerContext&) -> std::unique_ptr<TransportServer> {
      return std::make_unique<GrpcTransportServer>();
    },
};

}  // namespace hetero::feed
