#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "hetero/v1/status.grpc.pb.h"
#include "operator/plan/effect.h"
#include "operator/plan/head_target.h"
#include "operator/reconcile/certificates.h"
#include "operator/reconcile/head_limits.h"

namespace hetero::reconcile {

// A connection of its own to one head, which takes no message above StatusMessageLimit(). Errors
// name what is wrong with the certificates.
absl::StatusOr<std::shared_ptr<grpc::Channel>> DialStatusPort(const plan::HeadTarget& target,
                                                              const children::Leaf& leaf);

// One Watch call, read no faster than a ReadPacer allows. Holds itself until gRPC is done with it
// and then gives itself to `ended`, on a thread of gRPC's, which must not be the one to let go of
// it: that would tear the channel down from inside. Safe from any thread.
class HeadStream : public grpc::ClientReadReactor<v1::JobStatus>,
                   public std::enable_shared_from_this<HeadStream> {
 public:
  struct Callbacks {
    std::function<void(const v1::JobStatus&)> heard;
    // Runs `call` on the thread that lets go of streams.
    std::function<void(base::Duration wait, std::function<void()> call)> later;
    std::function<void(std::shared_ptr<HeadStream> self, const grpc::Status& status)> ended;
  };
  // `processes` of the job say how large a message may be.
  static std::shared_ptr<HeadStream> Open(std::shared_ptr<grpc::Channel> channel,
                                          base::Clock& clock, int64_t processes,
                                          Callbacks callbacks);

  void Cancel() { context_.TryCancel(); }
  // These have a deadline; `done` is called on a thread of gRPC's with this stream, as above.
  void ReportExit(const plan::ReportExit& exit,
                  std::function<void(std::shared_ptr<void> keep, const grpc::Status&)> done);
  void Stop(const plan::StopHead& stop,
            std::function<void(std::shared_ptr<void> keep, const grpc::Status&)> done);
  void Warn(const plan::WarnHead& warn,
            std::function<void(std::shared_ptr<void> keep, const grpc::Status&)> done);

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  HeadStream(std::shared_ptr<grpc::Channel> channel, base::Clock& clock, int64_t processes,
             Callbacks callbacks);

  base::Clock& clock_;
  const Callbacks callbacks_;
  ReadPacer pacer_;  // in OnReadDone only
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Status::Stub> stub_;
  grpc::ClientContext context_;
  v1::WatchRequest request_;
  v1::JobStatus message_;             // gRPC writes it between StartRead and OnReadDone
  std::shared_ptr<HeadStream> self_;  // dropped in OnDone
};

}  // namespace hetero::reconcile
