#include "tests/unit/operator/reconcile/status_server.h"

#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

namespace hetero::reconcile {

class StatusServer::Watcher : public grpc::ServerWriteReactor<v1::JobStatus> {
 public:
  explicit Watcher(StatusServer& server) : server_(server) {}
  // With the server's mutex held.
  void Send(const v1::JobStatus& status) {
    if (writing_ || ended_) {
      pending_ = true;
      return;
    }
    message_ = status;
    writing_ = true;
    StartWrite(&message_);
  }
  void End() {
    if (!std::exchange(ended_, true)) Finish({grpc::StatusCode::UNAVAILABLE, "closing"});
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(server_.mutex_);
    writing_ = false;
    if (!ok) return End();
    if (std::exchange(pending_, false)) Send(server_.current_);
  }
  void OnCancel() override {
    const std::lock_guard lock(server_.mutex_);
    End();
  }
  void OnDone() override {
    {
      const std::lock_guard lock(server_.mutex_);
      std::erase(server_.watchers_, this);
    }
    delete this;
  }

 private:
  StatusServer& server_;
  v1::JobStatus message_;
  bool writing_ = false, pending_ = false, ended_ = false;
};

StatusServer::StatusServer(std::shared_ptr<grpc::ServerCredentials> credentials, int port,
                           std::string host)
    : host_(std::move(host)) {
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(host_ + ":" + std::to_string(port), std::move(credentials), &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

StatusServer::~StatusServer() {
  if (!listens()) return;
  {
    const std::lock_guard lock(mutex_);
    for (Watcher* watcher : watchers_) watcher->End();
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

void StatusServer::Say(v1::JobStatus status) {
  const std::lock_guard lock(mutex_);
  current_ = std::move(status);
  for (Watcher* watcher : watchers_) watcher->Send(current_);
}

std::vector<v1::StopRequest> StatusServer::stops() {
  const std::lock_guard lock(mutex_);
  return stops_;
}

std::vector<v1::ExitReport> StatusServer::exits() {
  const std::lock_guard lock(mutex_);
  return exits_;
}

std::vector<v1::Notices> StatusServer::warnings() {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

grpc::ServerWriteReactor<v1::JobStatus>* StatusServer::Watch(grpc::CallbackServerContext*,
                                                             const v1::WatchRequest*) {
  auto* watcher = new Watcher(*this);
  const std::lock_guard lock(mutex_);
  watchers_.push_back(watcher);
  watcher->Send(current_);
  return watcher;
}

grpc::ServerUnaryReactor* StatusServer::ReportExit(grpc::CallbackServerContext* context,
                                                   const v1::ExitReport* report, v1::ExitReply*) {
  {
    const std::lock_guard lock(mutex_);
    exits_.push_back(*report);
  }
  auto* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* StatusServer::Stop(grpc::CallbackServerContext* context,
                                             const v1::StopRequest* request, v1::StopReply*) {
  {
    const std::lock_guard lock(mutex_);
    stops_.push_back(*request);
  }
  auto* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* StatusServer::Warn(grpc::CallbackServerContext* context,
                                             const v1::Notices* notices, v1::NoticesReply*) {
  {
    const std::lock_guard lock(mutex_);
    warnings_.push_back(*notices);
  }
  auto* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace hetero::reconcile
