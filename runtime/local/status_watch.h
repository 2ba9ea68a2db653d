#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/tls.h"
#include "hetero/v1/status.grpc.pb.h"

namespace hetero::local {

// Follows a job's status stream on its own thread, from one head to the next, and passes requests
// on to the head. Thread-safe.
class StatusWatch {
 public:
  StatusWatch(std::string head_address, base::TlsOptions tls, base::Clock& clock);
  ~StatusWatch();

  // The newest status; none until the head answered once.
  std::optional<v1::JobStatus> latest() const;
  // How many times a head has said anything so far, its unchanged status included.
  int64_t words() const;
  // Gives up the stream and dials anew, so that a connection that broke without a word is not taken
  // for a head that hangs.
  void AskAgain();
  // Asks the head to end the job for `reason`, a sentence: as stopped, or as failed when `failure`
  // says why in one word (api/reasons.h). Fails fast when the head is not there.
  absl::Status RequestStop(const std::string& reason, const std::string& failure = "");
  // Tells the head that a member's process ended.
  absl::Status ReportExit(const v1::ExitReport& report);

 private:
  absl::StatusOr<std::unique_ptr<v1::Status::Stub>> Dial() const;
  void Run(std::stop_token stop);

  const std::string head_address_;
  const base::TlsOptions tls_;
  base::Clock& clock_;
  mutable base::Mutex mutex_;
  std::optional<v1::JobStatus> latest_ ABSL_GUARDED_BY(mutex_);
  int64_t words_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ClientContext* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;  // under way
  std::jthread thread_;
};

}  // namespace hetero::local
