#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "operator/kube/client.h"

namespace hetero::kube {

// client-go's election on a coordination.k8s.io Lease, measured on a local monotonic clock only
// (other machines' clocks do not matter): another holder counts as gone when its lease has not
// changed for as long as it says it lasts, since it was seen here. A thread of its own renews from
// the moment Acquire succeeds.
//
// Give it a client of its own whose timeout is renew_deadline / 2: a busy client's rate limit must
// not cost the lease, and a stop waits for a write under way, so as to release what it has brought.
class LeaderElection {
 public:
  struct Options {
    ObjectKey lease;
    std::string identity;  // of this process, unique
    base::Duration lease_duration = std::chrono::seconds(15);
    base::Duration renew_deadline = std::chrono::seconds(10);
    base::Duration retry_period = std::chrono::seconds(2);
  };
  // Sets leader_election_master_status{name} in `registry`. All outlive the election.
  LeaderElection(Client& client, base::Clock& clock, metrics::Registry& registry, Options options,
                 base::Backoff::Random random = base::Backoff::SystemRandom());
  ~LeaderElection();

  // Blocks until this process leads (OK) or stop (kCancelled). From one thread at a time, as is
  // Hold.
  absl::Status Acquire(std::stop_token stop);
  // After Acquire. Renews until stop, then releases the lease and returns OK. kAborted when the
  // lease is lost or could not be renewed within renew_deadline, measured from the sending of the
  // last renewal that succeeded: the caller must end its writers at once (the process exits).
  absl::Status Hold(std::stop_token stop);
  bool leading() const;
  // Who holds the lease as last seen; empty: nobody.
  std::string holder() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::kube
