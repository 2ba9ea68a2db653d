#include "runtime/feed/transport/shared_memory_transport.h"

#include <utility>

#include "base/mutex.h"
#include "base/status_macros.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/feed/transport/region_socket.h"
#include "runtime/feed/transport/shared_region.h"

namespace hetero::feed {
namespace {

constexpr int64_t kWorthSharing = 16 << 10;  // bytes; smaller batches travel with their frames

class SharedMemoryReceiver : public BatchReceiver {
 public:
  SharedMemoryReceiver(ReceiverContext context, Callbacks callbacks)
      : context_(std::move(context)), callbacks_(std::move(callbacks)) {}

  absl::Status Offer(v1::TicketRequest* request) override {
    HETERO_ASSIGN_OR_RETURN(region_,
                            TrainerRegion::Create(context_.byte_budget + context_.byte_budget / 4));
    HETERO_RETURN_IF_ERROR(SendRegion(RegionSocketPath(context_.address), *region_));
    request->set_region_token(region_->token());
    // A worker that leaves it unused has spoilt nothing: its frames bring the bytes.
    callbacks_.on_accepted();
    return absl::OkStatus();
  }
  bool Holds(const v1::FrameHeader& header) const override { return header.has_shared(); }
  absl::StatusOr<Slab> Open(const v1::FrameHeader& header, int64_t bytes) const override {
    return region_->Open({header.shared().flag(), header.shared().offset()}, bytes);
  }

 private:
  const ReceiverContext context_;
  const Callbacks callbacks_;
  std::shared_ptr<TrainerRegion> region_;  // from Offer() on
};

class SharedMemorySender : public BatchSender {
 public:
  explicit SharedMemorySender(RegionReceiver& regions) : regions_(regions) {}

  void Accept(const v1::TicketRequest& request) override {
    if (request.region_token() == 0) return;
    const base::MutexLock lock(mutex_);
    token_ = request.region_token();
  }
  std::optional<Slab> Allocate(int64_t bytes) override {
    if (bytes < kWorthSharing) return std::nullopt;
    const std::shared_ptr<WorkerRegion> region = Region();
    return region != nullptr ? region->Allocate(bytes) : std::nullopt;
  }

 private:
  std::shared_ptr<WorkerRegion> Region() {
    const base::MutexLock lock(mutex_);
    if (token_ != 0) {
      // The region takes another way than the word of it, and may come later.
      region_ = regions_.Take(token_);
      if (region_ != nullptr) token_ = 0;
    }
    return region_;
  }

  RegionReceiver& regions_;
  base::Mutex mutex_;
  uint64_t token_ ABSL_GUARDED_BY(mutex_) = 0;  // of a region that has not been found yet
  std::shared_ptr<WorkerRegion> region_ ABSL_GUARDED_BY(mutex_);
};

class SharedMemoryServer : public TransportServer {
 public:
  explicit SharedMemoryServer(std::unique_ptr<RegionReceiver> regions)
      : regions_(std::move(regions)) {}
  std::shared_ptr<BatchSender> NewSender(std::weak_ptr<SenderStream>) override {
    return std::make_shared<SharedMemorySender>(*regions_);
  }

 private:
  const std::unique_ptr<RegionReceiver> regions_;
};

}  // namespace

constinit const Transport kSharedMemoryTransport = {
    .name = "shared_memory",
    .fits = [](const std::string& address) { return !RegionSocketPath(address).empty(); },
    .receive = [](ReceiverContext context,
                  BatchReceiver::Callbacks callbacks) -> std::unique_ptr<BatchReceiver> {
      return std::make_unique<SharedMemoryReceiver>(std::move(context), std::move(callbacks));
    },
    .serve = [](const ServerContext& context) -> std::unique_ptr<TransportServer> {
      auto regions = RegionReceiver::Start(RegionSocketPath(context.listen_address), context.clock);
      if (regions == nullptr) return nullptr;
      return std::make_unique<SharedMemoryServer>(std::move(regions));
    },
};

}  // namespace hetero::feed
