#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "operator/kube/client.h"

namespace hetero::kube {

// client-go's election on a coordination.k8s.io Lease, measured on a local monotonic clock only
// (other machines' clocks do not matter).
class LeaderElection {
 public:
  struct Options {
    ObjectKey lease;
    std::string identity;  // of this process, unique
    base::Duration lease_duration = std::chrono::seconds(15);
    base::Duration renew_deadline = std::chrono::seconds(10);
    base::Duration retry_period = std::chrono::seconds(2);
  };
  // Sets leader_election_master_status{name} in `registry`.
  LeaderElection(Client& client, base::Clock& clock, metrics::Registry& registry, Options options);

  // Blocks until this process leads (OK) or stop (kCancelled).
  absl::Status Acquire(std::stop_token stop);
  // Renews until stop, then releases the lease and returns OK. kAborted when the lease is lost or
  // could not be renewed within renew_deadline: the caller must end its writers at once (the
  // process exits).
  absl::Status Hold(std::stop_token stop);
  bool leading() const { return leading_; }
  // Who holds the lease as last seen; empty: nobody.
  std::string holder() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
  std::atomic<bool> leading_ = false;
};

}  // namespace hetero::kube
