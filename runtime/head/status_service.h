#pragma once

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "hetero/v1/status.grpc.pb.h"

namespace hetero::head {

// Watch, Stop, ReportExit and Warn over gRPC. Watchers get every published status once; when to
// publish is the server's decision. A watcher that got none for a second gets the current one,
// marked as unchanged: a head that hangs is silent, one that has nothing to say is not.
// Thread-safe.
class StatusService : public v1::Status::Service {
 public:
  struct Requests {
    std::function<void(const v1::StopRequest&)> stop;
    std::function<void(const v1::ExitReport&)> report_exit;
    std::function<void(const v1::Notices&)> warn;
  };
  StatusService(std::function<v1::JobStatus()> current, Requests requests, base::Clock& clock);

  // Sends `status` to all watchers; after a `last` one their calls end.
  void Publish(const v1::JobStatus& status, bool last);
  // Lets watchers notice that their caller has gone, or that a second is over; called every tick.
  void Wake();
  // Ends all Watch calls, and later ones at once.
  void Close();

  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::JobStatus>* writer) override;
  grpc::Status Stop(grpc::ServerContext* context, const v1::StopRequest* request,
                    v1::StopReply* reply) override;
  grpc::Status ReportExit(grpc::ServerContext* context, const v1::ExitReport* report,
                          v1::ExitReply* reply) override;
  grpc::Status Warn(grpc::ServerContext* context, const v1::Notices* notices,
                    v1::NoticesReply* reply) override;

 private:
  const std::function<v1::JobStatus()> current_;
  const Requests requests_;
  base::Clock& clock_;
  base::Mutex mutex_;
  base::CondVar changed_;
  v1::JobStatus published_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool last_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hetero::head
