#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/http_endpoint.h"

namespace hetero::controller {

// Starts the parts of an operator in controller-runtime's order and stops them in reverse: caches
// (until synced), election, workers. The HTTP port comes before: its owner starts it ahead of
// Start() and stops it afterwards. Each part runs on a thread of its own.
class Manager {
 public:
  struct Options {
    base::Duration cache_sync_timeout = std::chrono::seconds(120);
    base::Duration stop_timeout = std::chrono::seconds(30);
  };
  Manager(base::Clock& clock, Options options);
  ~Manager();  // stops and waits for what Start() has left running

  using Run = std::function<void(std::stop_token stop)>;  // blocks until stop
  // All before Start. Names appear in logs and errors.
  void AddCache(std::string name, Run run, std::function<bool()> synced);
  // `acquire` blocks until leading (OK); then `hold` runs beside the workers, and its error ends
  // everything. It is stopped after them, so that nobody else leads while they still write.
  void SetElection(std::function<absl::Status(std::stop_token)> acquire,
                   std::function<absl::Status(std::stop_token)> hold);
  void AddWorker(std::string name, Run run);

  // For /readyz: caches are synced; does not depend on leadership. Safe from any thread.
  absl::Status Ready() const;

  // Blocks until stop (OK), or until something failed: caches not synced in time
  // (kDeadlineExceeded, naming them), lease lost (kAborted; workers are told to stop but not waited
  // for), a part that ended by itself or with an exception (kInternal, naming it), parts that did
  // not end within stop_timeout (kDeadlineExceeded, naming them; what comes after them in the order
  // is left running, above all the election). Other errors are those of `acquire`. After an error
  // the caller leaves the process. Call once.
  absl::Status Start(std::stop_token stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::controller
