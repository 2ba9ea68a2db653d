#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/http_endpoint.h"

namespace hetero::controller {

// Starts the parts of an operator in controller-runtime's order and stops them in reverse: HTTP,
// caches (until synced), election, workers.
class Manager {
 public:
  struct Options {
    base::Duration cache_sync_timeout = std::chrono::seconds(120);
    base::Duration stop_timeout = std::chrono::seconds(30);
  };
  Manager(base::Clock& clock, Options options);
  ~Manager();

  using Run = std::function<void(std::stop_token stop)>;  // blocks until stop
  // All before Start. Names appear in logs and errors.
  void AddCache(std::string name, Run run, std::function<bool()> synced);
  // Blocks until leading (OK); then `hold` runs beside the workers, and its error ends everything.
  void SetElection(std::function<absl::Status(std::stop_token)> acquire,
                   std::function<absl::Status(std::stop_token)> hold);
  void AddWorker(std::string name, Run run);

  // For /readyz: caches are synced; does not depend on leadership.
  absl::Status Ready() const;

  // Blocks until stop (OK), or until something failed: caches not synced in time
  // (kDeadlineExceeded, naming them), lease lost (kAborted), parts that did not end within
  // stop_timeout (kDeadlineExceeded, naming them; the caller then leaves the process).
  absl::Status Start(std::stop_token stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::controller
