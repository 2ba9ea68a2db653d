#include "runtime/head/membership_service.h"

#include <deque>
#include <utility>

#include "runtime/head/process_gone.h"

namespace hetero::head {

// One Join stream. gRPC owns the order of life: OnDone is the last call, and deletes it.
class JoinStream : public grpc::ServerBidiReactor<v1::MemberMessage, v1::HeadMessage> {
 public:
  JoinStream(StreamId id, MembershipService& service, bool local,
             std::vector<std::string> certified_as)
      : id_(id), local_(local), certified_as_(std::move(certified_as)), service_(service) {
    StartRead(&incoming_);
  }

  void Send(const std::shared_ptr<const v1::HeadMessage>& message) {
    const base::MutexLock lock(mutex_);
    if (closing_ || finished_) return;
    outgoing_.push_back(message);
    Continue();
  }

  void Close() {
    const base::MutexLock lock(mutex_);
    closing_ = true;
    Continue();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      service_.sink_(StreamClosed{id_, local_ && ProcessGone(pid_)});
      Close();
      return;
    }
    switch (incoming_.message_case()) {
      case v1::MemberMessage::kHello:
        pid_ = incoming_.hello().pid();
        service_.sink_(HelloReceived{id_, std::move(*incoming_.mutable_hello()), certified_as_});
        break;
      case v1::MemberMessage::kReady:
        service_.sink_(ReadyReceived{id_, std::move(*incoming_.mutable_ready())});
        break;
      case v1::MemberMessage::kHeartbeat:
        service_.sink_(HeartbeatReceived{id_, std::move(*incoming_.mutable_heartbeat())});
        break;
      case v1::MemberMessage::kFinished:
        service_.sink_(FinishedReceived{id_, std::move(*incoming_.mutable_finished())});
        break;
      case v1::MemberMessage::kScriptWord:
        service_.sink_(ScriptWordReceived{id_, std::move(*incoming_.mutable_script_word())});
        break;
      case v1::MemberMessage::MESSAGE_NOT_SET:  // of a newer version
        break;
    }
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    const base::MutexLock lock(mutex_);
    writing_ = false;
    outgoing_.pop_front();
    if (!ok) {
      outgoing_.clear();
      closing_ = true;
    }
    Continue();
  }

  void OnCancel() override {
    const base::MutexLock lock(mutex_);
    closing_ = true;
    if (!writing_) outgoing_.clear();
    Continue();
  }

  void OnDone() override {
    service_.Remove(id_);
    delete this;
  }

 private:
  // The next write, or the end.
  void Continue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (!outgoing_.empty()) {
      writing_ = true;
      StartWrite(outgoing_.front().get());
    } else if (closing_) {
      finished_ = true;
      Finish(grpc::Status::OK);
    }
  }

  const StreamId id_;
  const bool local_;
  const std::vector<std::string> certified_as_;
  MembershipService& service_;
  v1::MemberMessage incoming_;  // of the one read under way
  int64_t pid_ = 0;             // the same
  base::Mutex mutex_;
  std::deque<std::shared_ptr<const v1::HeadMessage>> outgoing_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

MembershipService::MembershipService(Sink sink, PeerRoles peers)
    : sink_(std::move(sink)), peers_(std::move(peers)) {}

grpc::ServerBidiReactor<v1::MemberMessage, v1::HeadMessage>* MembershipService::Join(
    grpc::CallbackServerContext* context) {
  const base::MutexLock lock(mutex_);
  const StreamId id = next_++;
  auto* stream = new JoinStream(id, *this, context->peer().starts_with("unix"),
                                peers_.Shown(*context->auth_context()));
  streams_[id] = stream;
  if (closed_) stream->Close();
  return stream;
}

void MembershipService::Send(const std::vector<StreamId>& streams,
                             const std::shared_ptr<const v1::HeadMessage>& message) {
  const base::MutexLock lock(mutex_);
  for (const StreamId stream : streams) {
    const auto found = streams_.find(stream);
    if (found != streams_.end()) found->second->Send(message);
  }
}

void MembershipService::CloseStream(StreamId stream) {
  const base::MutexLock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found != streams_.end()) found->second->Close();
}

void MembershipService::Close() {
  const base::MutexLock lock(mutex_);
  closed_ = true;
  for (const auto& [id, stream] : streams_) stream->Close();
}

void MembershipService::Remove(StreamId stream) {
  const base::MutexLock lock(mutex_);
  streams_.erase(stream);
}

}  // namespace hetero::head
