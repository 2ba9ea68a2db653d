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

// Follows a head's status stream on its own thread and passes requests on to it. Thread-safe.
class StatusWatch {
 public:
  StatusWatch(std::string head_address, base::TlsOptions tls, base::Clock& clock);
  ~StatusWatch();

  // The newest status; none until the head answered once.
  std::optional<v1::JobStatus> latest() const;
  // Asks the head to end the job: stopped, or failed for `failure` (one CamelCase word) when that
  // is not empty. Fails fast when the head is not there.
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
  std::jthread thread_;
};

}  // namespace hetero::local
