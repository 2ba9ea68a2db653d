#pragma once

#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "hetero/v1/membership.grpc.pb.h"
#include "runtime/head/event.h"
#include "runtime/head/peer_roles.h"

namespace hetero::head {

class JoinStream;

// The Join streams of all members: what arrives becomes events, what State answers is queued and
// sent. A slow member delays nobody. Thread-safe; `sink` is called from gRPC's threads without a
// lock held.
class MembershipService : public v1::Membership::CallbackService {
 public:
  using Sink = std::function<void(Event)>;
  MembershipService(Sink sink, PeerRoles peers);

  grpc::ServerBidiReactor<v1::MemberMessage, v1::HeadMessage>* Join(
      grpc::CallbackServerContext* context) override;

  // Does nothing for streams that are gone.
  void Send(const std::vector<StreamId>& streams,
            const std::shared_ptr<const v1::HeadMessage>& message);
  // After everything sent before.
  void CloseStream(StreamId stream);
  // All streams, and new ones at once.
  void Close();

 private:
  friend class JoinStream;
  void Remove(StreamId stream);

  const Sink sink_;
  const PeerRoles peers_;
  base::Mutex mutex_;
  // Each lives until its Remove().
  std::map<StreamId, JoinStream*> streams_ ABSL_GUARDED_BY(mutex_);
  StreamId next_ ABSL_GUARDED_BY(mutex_) = 1;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hetero::head
