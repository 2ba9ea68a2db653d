#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "runtime/feed/batch_producer.h"
#include "runtime/feed/producer_state.h"
#include "runtime/feed/trainer_stream.h"
#include "runtime/feed/transport/socket_threads.h"
#include "runtime/feed/transport/transport.h"
#include "runtime/feed/wire/messages.h"
#include "runtime/feed/worker_address.h"

namespace hetero::feed {

// A trainer's connections to the CPU workers of the roster: a stream to each, dialled again with
// backoff when it breaks, and what each worker leaves unanswered. Knows nothing of tickets. Not
// thread-safe: the owner's lock guards it. Outlives its streams: Close(), then wait until live()
// is 0.
class WorkerLinks {
 public:
  struct Options {
    std::shared_ptr<grpc::ChannelCredentials> credentials;
    Transports transports;       // those that fit a worker are offered to it
    bool secured = true;         // ReceiverContext's, and so are byte_budget and batch_bytes
    SlabSource slabs = nullptr;  // as in TicketClient::Options
    bool moves_shared = false;
    int64_t byte_budget = 0;
    int64_t batch_bytes = 0;
    double start = 0;  // where among the workers it begins to dial, in [0, 1)
  };
  // On the streams' threads, without the owner's lock; never from inside a call of this class.
  struct Callbacks {
    std::function<void(ProducerId)> on_up;
    std::function<void(ProducerId, Frame)> on_frame;
    std::function<void(ProducerId, const TrainerStream::Ending&)> on_down;  // call OnDown()
  };
  WorkerLinks(Options options, Callbacks callbacks, base::Clock& clock);

  struct Change {
    std::vector<ProducerId> removed, added;
    std::vector<ProducerId> turned;  // now leaving, or staying after all; new ones that leave too
  };
  // Cancels the streams of those who left; the others' and the new ones' are dialled by
  // DialWhereDue(). A worker has one id for as long as it is in the roster.
  Change SetRoster(const std::vector<WorkerAddress>& roster);
  void DialWhereDue();

  // Null once the worker has left.
  const WorkerAddress* Find(ProducerId id) const;
  // The worker answered: the next wait before dialling is short again. False once it has left.
  bool OnUp(ProducerId id);
  // The stream is over. False once the worker has left; otherwise it will be dialled again.
  bool OnDown(ProducerId id, const TrainerStream::Ending& ending);

  // Dropped when there is no stream.
  void Send(ProducerId id, const TicketRequest& request);
  void SendToAll(const TicketRequest& request);
  void BreakStream(ProducerId id);

  void Close();                       // breaks all streams
  int live() const { return live_; }  // streams that are not down yet
  // Channels that nothing needs any more. gRPC joins its threads when the last one goes, so they
  // must be let go of on a thread of one's own, and without the lock.
  std::vector<std::shared_ptr<grpc::Channel>> TakeUnused();

 private:
  struct Link {
    WorkerAddress address;
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<TrainerStream> stream;  // null while no dial is under way
    base::Backoff backoff{
        {.initial = std::chrono::milliseconds(50), .max = std::chrono::milliseconds(1000)}};
    base::Instant redial_at;
    std::map<const Transport*, int> unanswered;  // streams in a row
  };

  void Dial(ProducerId id, Link* link);
  void Remove(ProducerId id);
  static void Learn(const TrainerStream::Ending& ending, Link* link);

  const Options options_;
  const Callbacks callbacks_;
  base::Clock& clock_;
  SocketThreads threads_;  // which the streams' transports use
  std::map<ProducerId, Link> links_;
  ProducerId next_id_ = kLocalProducer + 1;
  int live_ = 0;
  // Of workers that left while their stream was still ending, and those whose stream has ended.
  std::map<ProducerId, std::shared_ptr<grpc::Channel>> ending_;
  std::vector<std::shared_ptr<grpc::Channel>> unused_;
};

}  // namespace hetero::feed
