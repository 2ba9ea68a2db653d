// The CPU workers and their streams: the connecting half of TicketClient.
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "runtime/feed/region_socket.h"
#include "runtime/feed/ticket_client_impl.h"

namespace hetero::feed {
namespace {

constexpr int kAnySize = -1;
constexpr int kFrameBytes = 4 << 20;      // of HTTP/2
constexpr int kMostUnanswered = 3;        // data connections, after which gRPC's has to do
constexpr int kLookaheadBytes = 8 << 20;  // that a worker may send before they are asked for

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kAnySize);
  arguments.SetMaxSendMessageSize(kAnySize);
  // The default of 16 KB a frame would cut a batch into hundreds of pieces.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadBytes);
  // gRPC's own pause before it connects again must not exceed ours.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A cut network closes no connection: pings find out.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // pods are neighbours
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace

void TicketClientImpl::SetRoster(const std::vector<WorkerAddress>& roster) {
  const std::lock_guard lock(mutex_);
  std::vector<ProducerId> gone;
  for (const auto& [id, worker] : workers_) {
    if (std::find(roster.begin(), roster.end(), worker.address) == roster.end()) gone.push_back(id);
  }
  for (const ProducerId id : gone) RemoveWorker(id);
  for (const WorkerAddress& address : roster) {
    const bool known = std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
      return entry.second.address == address;
    });
    if (known || !credentials_.ok()) continue;
    const ProducerId id = next_id_++;
    Worker& worker = workers_[id];
    worker.address = address;
    worker.channel = MakeChannel(address.address, *credentials_);
    worker.redial_at = clock_.Now();
    Apply(Window::WorkerAdded{id});
  }
  DialWhereDue();
}

void TicketClientImpl::RemoveWorker(ProducerId id) {
  Worker& worker = workers_.at(id);
  log::Info("CPU worker left", {{"worker", worker.address.name}});
  if (worker.stream != nullptr) {
    worker.stream->Cancel();
    ending_[id] = worker.channel;
  }
  workers_.erase(id);
  Apply(Window::WorkerRemoved{id});
}

void TicketClientImpl::DialWhereDue() {
  const base::Instant now = clock_.Now();
  for (auto& [id, worker] : workers_) {
    if (worker.stream == nullptr && worker.redial_at <= now) Dial(id, &worker);
  }
}

void TicketClientImpl::Dial(ProducerId id, Worker* worker) {
  ++live_streams_;
  TrainerStream::Callbacks callbacks;
  callbacks.on_up = [this, id] { OnUp(id); };
  callbacks.on_frame = [this, id](Frame frame) { OnFrame(id, std::move(frame)); };
  callbacks.on_data = [this, id] { OnData(id); };
  callbacks.on_down = [this, id](const absl::Status& status) { OnDown(id, status); };
  worker->stream = TrainerStream::Dial(worker->channel, std::move(callbacks));
}

void TicketClientImpl::ShareMemory(const Worker& worker) {
  const std::string path = RegionSocketPath(worker.address.address);
  if (path.empty() || worker.stream == nullptr) return;
  const absl::StatusOr<std::shared_ptr<TrainerRegion>> region =
      TrainerRegion::Create(options_.byte_budget + options_.byte_budget / 4);
  const absl::Status sent = region.ok() ? SendRegion(path, **region) : region.status();
  if (sent.ok()) return worker.stream->Share(*region);
  log::Info("batches are sent, not shared",
            {{"worker", worker.address.name}, {"reason", sent.message()}});
}

void TicketClientImpl::OpenData(Worker* worker) {
  if (!options_.data_connections || worker->stream == nullptr ||
      worker->address.address.starts_with("unix:")) {
    return;
  }
  if (worker->data_unanswered >= kMostUnanswered) {
    log::Info("batches come over gRPC", {{"worker", worker->address.name},
                                         {"reason", "it answered none of the data connections"},
                                         {"tried", worker->data_unanswered}});
    return;
  }
  ++worker->data_unanswered;
  worker->stream->OpenData(!options_.tls.plain_text);
}

void TicketClientImpl::OnData(ProducerId id) {
  const std::lock_guard lock(mutex_);
  const auto it = workers_.find(id);
  if (it != workers_.end()) it->second.data_unanswered = 0;
}

void TicketClientImpl::OnUp(ProducerId id) {
  const std::lock_guard lock(mutex_);
  const auto it = workers_.find(id);
  if (it == workers_.end() || closing_) return;
  it->second.backoff.Reset();
  ShareMemory(it->second);
  OpenData(&it->second);
  log::Info("CPU worker up", {{"worker", it->second.address.name}, {"rank", options_.rank}});
  Apply(Window::StreamUp{id});
}

void TicketClientImpl::OnDown(ProducerId id, const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  const auto it = workers_.find(id);
  if (it != workers_.end() && !closing_) {
    Worker& worker = it->second;
    log::Warning("stream to CPU worker broke", {{"worker", worker.address.name},
                                                {"address", worker.address.address},
                                                {"error", status.ToString()}});
    // A frame's own header can be what was damaged; then the whole stream is given up.
    if (absl::IsDataLoss(status)) ++stats_.batches_damaged;
    worker.stream.reset();
    worker.redial_at = clock_.Now() + worker.backoff.Next();
    Apply(Window::StreamDown{id});
  }
  if (auto node = ending_.extract(id)) ended_.push_back(std::move(node.mapped()));
  --live_streams_;
  changed_.notify_all();
}

}  // namespace hetero::feed
