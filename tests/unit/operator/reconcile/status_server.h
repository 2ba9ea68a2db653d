#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hetero/v1/status.grpc.pb.h"

namespace hetero::reconcile {

// A head's status port: every watcher gets the current status and every later one.
class StatusServer : public v1::Status::CallbackService {
 public:
  explicit StatusServer(
      std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials(),
      int port = 0, std::string host = "127.0.0.1");
  ~StatusServer() override;

  bool listens() const { return server_ != nullptr && port_ > 0; }
  int port() const { return port_; }
  std::string address() const { return host_ + ":" + std::to_string(port_); }

  void Say(v1::JobStatus status);
  // What it was told, in order.
  std::vector<v1::StopRequest> stops();
  std::vector<v1::ExitReport> exits();
  std::vector<v1::Notices> warnings();

 private:
  class Watcher;

  grpc::ServerWriteReactor<v1::JobStatus>* Watch(grpc::CallbackServerContext*,
                                                 const v1::WatchRequest*) override;
  grpc::ServerUnaryReactor* ReportExit(grpc::CallbackServerContext* context,
                                       const v1::ExitReport* report, v1::ExitReply*) override;
  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const v1::StopRequest* request, v1::StopReply*) override;
  grpc::ServerUnaryReactor* Warn(grpc::CallbackServerContext* context, const v1::Notices* notices,
                                 v1::NoticesReply*) override;

  const std::string host_;
  std::mutex mutex_;  // guards what follows
  v1::JobStatus current_;
  std::vector<Watcher*> watchers_;
  std::vector<v1::ExitReport> exits_;
  std::vector<v1::StopRequest> stops_;
  std::vector<v1::Notices> warnings_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace hetero::reconcile
