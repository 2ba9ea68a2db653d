#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "hetero/v1/status.grpc.pb.h"

namespace hetero::head {

// Watch and Stop over gRPC. Watchers get every published status once; when to publish is the
// server's decision. Thread-safe.
class StatusService : public v1::Status::Service {
 public:
  StatusService(std::function<v1::JobStatus()> current, std::function<void(std::string)> stop);

  // Sends `status` to all watchers; after a `last` one their calls end.
  void Publish(const v1::JobStatus& status, bool last);
  // Lets watchers notice that their caller has gone; called every tick.
  void Wake();
  // Ends all Watch calls, and later ones at once.
  void Close();

  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::JobStatus>* writer) override;
  grpc::Status Stop(grpc::ServerContext* context, const v1::StopRequest* request,
                    v1::StopReply* reply) override;

 private:
  const std::function<v1::JobStatus()> current_;
  const std::function<void(std::string)> stop_;
  std::mutex mutex_;  // guards published_, version_, last_, closed_
  std::condition_variable changed_;
  v1::JobStatus published_;
  int64_t version_ = 0;
  bool last_ = false;
  bool closed_ = false;
};

}  // namespace hetero::head
