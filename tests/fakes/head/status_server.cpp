#include "tests/fakes/head/status_server.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "hetero/v1/status.grpc.pb.h"
#include "runtime/head/listen_address.h"

namespace hetero::testing {
namespace {

class WatchStream;

class StatusService : public v1::Status::CallbackService {
 public:
  explicit StatusService(StatusServer::OnExit on_exit) : on_exit_(std::move(on_exit)) {}

  grpc::ServerWriteReactor<v1::JobStatus>* Watch(grpc::CallbackServerContext*,
                                                 const v1::WatchRequest*) override;
  // As a head whose ranks all leave their last word at once: stopped, or failed when it is told so.
  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const v1::StopRequest* request, v1::StopReply*) override {
    if (!request->failure().empty()) {
      Fail(*request);
      return Answer(context);
    }
    v1::JobStatus stopped;
    {
      const base::MutexLock lock(mutex_);
      if (now_) stopped = *now_;
    }
    stopped.set_state(v1::JobStatus::STOPPED);
    Publish(stopped, /*last=*/true);
    const base::MutexLock lock(mutex_);
    stopped_ = true;
    return Answer(context);
  }
  grpc::ServerUnaryReactor* ReportExit(grpc::CallbackServerContext* context,
                                       const v1::ExitReport* report, v1::ExitReply*) override {
    on_exit_(*report);
    return Answer(context);
  }

  void Publish(const v1::JobStatus& status, bool last);
  void Disconnect();
  int watchers() const {
    const base::MutexLock lock(mutex_);
    return static_cast<int>(streams_.size());
  }
  void Remove(WatchStream* stream) {
    const base::MutexLock lock(mutex_);
    streams_.erase(stream);
  }

 private:
  void Fail(const v1::StopRequest& request) {
    v1::JobStatus status;
    {
      const base::MutexLock lock(mutex_);
      if (now_) status = *now_;
    }
    status.set_state(v1::JobStatus::FAILED);
    status.mutable_first_failure()->set_message(request.failure() + ": " + request.reason());
    status.mutable_result()->set_steps(status.progress().step());
    Publish(status, /*last=*/true);
  }
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  const StatusServer::OnExit on_exit_;
  mutable base::Mutex mutex_;                               // taken before a stream's own
  std::set<WatchStream*> streams_ ABSL_GUARDED_BY(mutex_);  // each lives until its Remove()
  std::optional<v1::JobStatus> now_ ABSL_GUARDED_BY(mutex_);
  bool last_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// One Watch call. gRPC owns the order of life: OnDone is the last call, and deletes it. A slow
// watcher misses steps in between, never the newest.
class WatchStream : public grpc::ServerWriteReactor<v1::JobStatus> {
 public:
  explicit WatchStream(StatusService& service) : service_(service) {}

  void Send(const v1::JobStatus& status, bool last) {
    const base::MutexLock lock(mutex_);
    next_ = status;
    last_ = last;
    Continue();
  }
  void End(const grpc::Status& status) {
    const base::MutexLock lock(mutex_);
    if (std::exchange(finished_, true)) return;
    Finish(status);
  }

  void OnWriteDone(bool ok) override {
    const base::MutexLock lock(mutex_);
    writing_ = false;
    if (ok) Continue();
  }
  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled")); }
  void OnDone() override {
    service_.Remove(this);
    delete this;
  }

 private:
  void Continue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (next_) {
      current_ = *std::exchange(next_, std::nullopt);
      writing_ = true;
      StartWrite(&current_);
    } else if (last_) {
      finished_ = true;
      Finish(grpc::Status::OK);
    }
  }

  StatusService& service_;
  base::Mutex mutex_;
  v1::JobStatus current_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::JobStatus> next_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool last_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

grpc::ServerWriteReactor<v1::JobStatus>* StatusService::Watch(grpc::CallbackServerContext*,
                                                              const v1::WatchRequest*) {
  auto* const stream = new WatchStream(*this);  // deletes itself
  const base::MutexLock lock(mutex_);
  streams_.insert(stream);
  if (now_) stream->Send(*now_, last_);
  return stream;
}

void StatusService::Publish(const v1::JobStatus& status, bool last) {
  const base::MutexLock lock(mutex_);
  if (stopped_) return;
  now_ = status;
  last_ = last;
  for (WatchStream* const stream : streams_) stream->Send(status, last);
}

void StatusService::Disconnect() {
  const base::MutexLock lock(mutex_);
  for (WatchStream* const stream : streams_) {
    stream->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the script breaks the streams"));
  }
}

}  // namespace

struct StatusServer::Impl {
  explicit Impl(OnExit on_exit) : service(std::move(on_exit)) {}
  ~Impl() {
    if (server) server->Shutdown(std::chrono::system_clock::now());
  }
  StatusService service;
  std::unique_ptr<grpc::Server> server;
};

absl::StatusOr<std::unique_ptr<StatusServer>> StatusServer::Start(
    const std::string& address, std::shared_ptr<grpc::ServerCredentials> credentials,
    OnExit on_exit) {
  auto impl = std::make_unique<Impl>(std::move(on_exit));
  grpc::ServerBuilder builder;
  head::ConfigureServer(builder);
  int port = 0;
  builder.AddListeningPort(address, std::move(credentials), &port);
  builder.RegisterService(&impl->service);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || port == 0) return head::CannotListen(address);
  return std::unique_ptr<StatusServer>(new StatusServer(std::move(impl)));
}

StatusServer::StatusServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StatusServer::~StatusServer() = default;
void StatusServer::Publish(const v1::JobStatus& status, bool last) {
  impl_->service.Publish(status, last);
}
void StatusServer::Disconnect() { impl_->service.Disconnect(); }
int StatusServer::watchers() const { return impl_->service.watchers(); }

}  // namespace hetero::testing
