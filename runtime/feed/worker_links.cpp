#include "runtime/feed/worker_links.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "base/log.h"

namespace hetero::feed {
namespace {

using Process = decltype(WorkerAddress().process());

constexpr int kAnySize = -1;
constexpr int kFrameBytes = 4 << 20;      // of HTTP/2
constexpr int kMostUnanswered = 3;        // offers of a transport, after which it is not offered
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

WorkerLinks::WorkerLinks(Options options, Callbacks callbacks, base::Clock& clock)
    : options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      clock_(clock),
      threads_("feed-data", SocketThreads::MostForBatches(), base::Clock::Real()) {}

WorkerLinks::Change WorkerLinks::SetRoster(const std::vector<WorkerAddress>& roster) {
  Change change;
  std::map<Process, const WorkerAddress*> told;
  for (const WorkerAddress& address : roster) told.emplace(address.process(), &address);
  std::set<Process> known;
  for (auto& [id, link] : links_) {
    const auto entry = told.find(link.address.process());
    if (entry == told.end()) {
      change.removed.push_back(id);
      continue;
    }
    known.insert(entry->first);
    if (entry->second->leaving != link.address.leaving) {
      link.address.leaving = entry->second->leaving;
      change.turned.push_back(id);
    }
  }
  for (const ProducerId id : change.removed) Remove(id);
  for (const WorkerAddress& address : roster) {
    if (!known.insert(address.process()).second) continue;
    const ProducerId id = next_id_++;
    if (address.leaving) change.turned.push_back(id);
    Link& link = links_[id];
    link.address = address;
    link.channel = MakeChannel(address.address, options_.credentials);
    link.redial_at = clock_.Now();
    change.added.push_back(id);
  }
  return change;
}

void WorkerLinks::Remove(ProducerId id) {
  const Link& link = links_.at(id);
  log::Info("CPU worker left", {{"worker", link.address.name}});
  if (link.stream != nullptr) {
    link.stream->Cancel();
    ending_[id] = link.channel;
  }
  links_.erase(id);
}

void WorkerLinks::DialWhereDue() {
  const base::Instant now = clock_.Now();
  // Who is up first is asked first, and not by all ranks.
  auto next = links_.begin();
  std::advance(next, static_cast<std::ptrdiff_t>(options_.start * double(links_.size())));
  for (size_t left = links_.size(); left > 0; --left) {
    if (next == links_.end()) next = links_.begin();
    auto& [id, link] = *next++;
    if (link.stream == nullptr && link.redial_at <= now) Dial(id, &link);
  }
}

void WorkerLinks::Dial(ProducerId id, Link* link) {
  ++live_;
  TrainerStream::Options options = {.address = link->address.address,
                                    .secured = options_.secured,
                                    .slabs = options_.slabs,
                                    .moves_shared = options_.moves_shared,
                                    .byte_budget = options_.byte_budget,
                                    .batch_bytes = options_.batch_bytes,
                                    .threads = &threads_};
  for (const Transport* transport : options_.transports) {
    const auto unanswered = link->unanswered.find(transport);
    if (unanswered != link->unanswered.end() && unanswered->second >= kMostUnanswered) continue;
    if (transport->fits(link->address.address)) options.transports.push_back(transport);
  }
  link->stream = TrainerStream::Dial(
      link->channel, std::move(options),
      {.on_up = [this, id] { callbacks_.on_up(id); },
       .on_frame = [this, id](Frame frame) { callbacks_.on_frame(id, std::move(frame)); },
       .on_down = [this, id](const auto& ending) { callbacks_.on_down(id, ending); }});
}

const WorkerAddress* WorkerLinks::Find(ProducerId id) const {
  const auto it = links_.find(id);
  return it == links_.end() ? nullptr : &it->second.address;
}

bool WorkerLinks::OnUp(ProducerId id) {
  const auto it = links_.find(id);
  if (it == links_.end()) return false;
  it->second.backoff.Reset();
  return true;
}

bool WorkerLinks::OnDown(ProducerId id, const TrainerStream::Ending& ending) {
  --live_;
  if (auto node = ending_.extract(id)) unused_.push_back(std::move(node.mapped()));
  const auto it = links_.find(id);
  if (it == links_.end()) return false;
  Link& link = it->second;
  Learn(ending, &link);
  link.stream.reset();
  link.redial_at = clock_.Now() + link.backoff.Next();
  return true;
}

void WorkerLinks::Learn(const TrainerStream::Ending& ending, Link* link) {
  for (const Transport* transport : ending.accepted) link->unanswered.erase(transport);
  for (const Transport* transport : ending.unanswered) {
    const int tried = ++link->unanswered[transport];
    if (tried < kMostUnanswered) continue;
    log::Info("a transport is not offered to a CPU worker any more",
              {{"transport", transport->name},
               {"worker", link->address.name},
               {"reason", "it answered none of the offers"},
               {"tried", tried}});
  }
}

void WorkerLinks::Send(ProducerId id, const TicketRequest& request) {
  const auto it = links_.find(id);
  if (it != links_.end() && it->second.stream != nullptr) it->second.stream->Send(request);
}

void WorkerLinks::SendToAll(const TicketRequest& request) {
  for (const auto& [id, link] : links_) {
    if (link.stream != nullptr) link.stream->Send(request);
  }
}

void WorkerLinks::BreakStream(ProducerId id) {
  const auto it = links_.find(id);
  if (it != links_.end() && it->second.stream != nullptr) it->second.stream->Cancel();
}

void WorkerLinks::Close() {
  for (const auto& [id, link] : links_) {
    if (link.stream != nullptr) link.stream->Cancel();
  }
}

std::vector<std::shared_ptr<grpc::Channel>> WorkerLinks::TakeUnused() {
  return std::exchange(unused_, {});
}

}  // namespace hetero::feed
