#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "operator/plan/observed.h"
#include "operator/plan/pod_lives.h"
#include "operator/reconcile/dropped_fields.h"
#include "operator/reconcile/expectations.h"

namespace hetero::reconcile {

// The job's object as this process last wrote it, for as long as the store shows an older one. The
// resourceVersion in a write allows no other change in between, so what was read plus the status
// written is exactly the object of the version returned. Not thread-safe.
class OwnWrites {
 public:
  // The newer of what the store shows and what was written.
  std::shared_ptr<const plan::ObservedJob> Newest(std::shared_ptr<const plan::ObservedJob> stored);
  void Written(const plan::ObservedJob& from, const api::JobStatus& status,
               const std::string& resource_version);

 private:
  static constexpr size_t kKept = 64;

  std::vector<std::string> superseded_;  // versions that were written over
  std::shared_ptr<const plan::ObservedJob> newest_;
};

// A write that was refused because the object had changed: not tried again with the same version
// for a while, longer each time, since the watch is about to bring the new one. Not thread-safe.
class ConflictBackoff {
 public:
  // How long to wait; zero: go ahead.
  base::Duration Wait(const std::string& resource_version, base::Instant now) const;
  base::Duration Conflicted(const std::string& resource_version, base::Instant now);
  void Written() { *this = {}; }

 private:
  std::string resource_version_;
  int conflicts_ = 0;
  base::Instant until_{};
};

// Uids of pods whose failures have been counted; the latest ones. Not thread-safe.
class SettledPods {
 public:
  void Add(const std::vector<std::string>& uids);
  const std::set<std::string>& uids() const { return uids_; }

 private:
  static constexpr size_t kKept = 256;

  std::set<std::string> uids_;
  std::vector<std::string> order_;
};

// Whose a job is, which never changes. While a definition with a new field is put over an older
// one, an API server may still bring an object as the older one has it, without the field: then a
// job that somebody else manages would look like the operator's. A process that begins in that
// moment cannot know better. Not thread-safe.
class KnownManager {
 public:
  // The job with the manager that it has had.
  std::shared_ptr<const plan::ObservedJob> Complete(std::shared_ptr<const plan::ObservedJob> job);

 private:
  std::string name_;  // empty: none has been seen
  bool told_ = false;
};

// What the reconciler remembers of one job between passes. But for the manager nothing in it is
// needed for a right end: a new process begins without it and may only make some calls in vain.
// Used by one pass at a time. There may be thousands: an empty deque would take half a kilobyte, an
// empty vector takes nothing.
struct JobMemory {
  std::string uid;
  OwnWrites writes;
  DroppedFields dropped;
  KnownManager manager;
  ConflictBackoff conflicts;
  Expectations expectations;
  SettledPods settled;
  plan::Backoff backoff;
  plan::PodLives lives;  // of a job that may have a price
  std::optional<plan::CreateError> create_error;
  int failed_creates = 0;  // passes in a row
  // After a refusal nothing is created before this, unless the job has changed.
  base::Instant create_from{};
  int64_t refused_generation = 0;
  // Roles, by their place in spec.roles, for whose pods a quota had no room; likewise.
  std::map<size_t, base::Instant> full_until;
  bool status_not_found = false;                // by the last write of it
  std::optional<base::Instant> status_written;  // last time
  std::optional<base::Instant> progress_place;  // reserved in the throttle
  std::optional<base::Instant> deleted_until;   // the job's own deletion was asked for
  std::string state;                            // as counted in the metrics; empty: not yet
};

}  // namespace hetero::reconcile
