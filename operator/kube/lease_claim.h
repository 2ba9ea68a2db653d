#pragma once

#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "operator/kube/leader_election.h"
#include "operator/kube/lease_record.h"

// For leader_election.cpp only.
namespace hetero::kube {

// What one candidate knows of the lease, and its calls about it: client-go's tryAcquireOrRenew. One
// thread's at a time, but for holder().
class LeaseClaim {
 public:
  enum class Outcome {
    kHeld,    // ours, renewed just now
    kOther,   // somebody else's, or no longer ours
    kFailed,  // not known: the server could not be asked or has refused
  };
  // What ends a call: `stop` the reading, `abandon` the writing. A stop alone waits for a write
  // under way: what it has done must be known, so that the lease can be released.
  struct Ends {
    std::stop_token stop;
    std::stop_token abandon;
  };

  // All outlive it.
  LeaseClaim(Client& client, base::Clock& clock, const LeaderElection::Options& options)
      : client_(client), clock_(clock), options_(options) {}

  // Gets or renews the lease. `holding`: it is ours and must have stayed so all the time, so one
  // that somebody else took is lost even when it is free again.
  Outcome Attempt(bool holding, const Ends& ends);
  // When the renewal that ended in the last kHeld was sent.
  base::Instant renewed() const { return renewed_; }
  // Why the last kFailed failed.
  const absl::Status& error() const { return error_; }

  // Leaves the lease to whoever comes next, if it is ours. Tells in the log how that went.
  void Release(const std::stop_token& abandon);

  // Who holds the lease as last seen; empty: nobody. Safe from any thread.
  std::string holder() const;

 private:
  Outcome TryCreate(base::Instant now, const Ends& ends);
  Outcome TryUpdate(base::Instant now, const Ends& ends, bool* conflict);
  Outcome Written(absl::StatusOr<nlohmann::json> written, base::Instant sent);
  void See(nlohmann::json seen, base::Instant now);
  void Know(LeaseRecord record);
  // A fresh term of ours, or, with `keep_term`, the running one renewed.
  nlohmann::json Spec(bool keep_term) const;
  bool mine() const { return record_.holder == options_.identity; }

  Client& client_;
  base::Clock& clock_;
  const LeaderElection::Options& options_;
  nlohmann::json lease_;      // as last seen; null: never, or it was not there
  nlohmann::json seen_spec_;  // of it, to notice changes
  base::Instant seen_at_;     // when seen_spec_ was first seen
  LeaseRecord record_;        // of the lease as last seen
  base::Instant renewed_;
  absl::Status error_;

  mutable base::Mutex mutex_;
  std::string holder_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::kube
