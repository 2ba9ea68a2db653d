#include "operator/kube/lease_claim.h"

#include <utility>

#include "base/log.h"
#include "operator/kube/micro_time.h"

namespace hetero::kube {

LeaseClaim::Outcome LeaseClaim::Attempt(bool holding, const Ends& ends) {
  const base::Instant now = clock_.Now();
  bool conflict = false;
  if (holding && lease_.is_object()) {
    // Most renewals are this one call, on the strength of the version last seen.
    const Outcome outcome = TryUpdate(now, ends, &conflict);
    if (!conflict) return outcome;
  }
  absl::StatusOr<nlohmann::json> seen =
      client_.Get(kLeases, options_.lease, holding ? ends.abandon : ends.stop);
  if (absl::IsNotFound(seen.status())) return TryCreate(now, ends);
  if (!seen.ok()) {
    error_ = seen.status();
    return Outcome::kFailed;
  }
  if (!seen->is_object()) {
    error_ = absl::InternalError("the server's answer is not a Lease");
    return Outcome::kFailed;
  }
  See(*std::move(seen), now);
  if (holding && !mine()) return Outcome::kOther;
  const bool taken = !mine() && !record_.holder.empty() && now < seen_at_ + record_.duration;
  return taken ? Outcome::kOther : TryUpdate(now, ends, &conflict);
}

LeaseClaim::Outcome LeaseClaim::TryCreate(base::Instant now, const Ends& ends) {
  lease_ = nullptr;
  Know({});
  return Written(
      client_.Create(
          kLeases, options_.lease.name_space,
          {{"apiVersion", "coordination.k8s.io/v1"},
           {"kind", "Lease"},
           {"metadata", {{"name", options_.lease.name}, {"namespace", options_.lease.name_space}}},
           {"spec", Spec(false)}},
          ends.abandon),
      now);
}

LeaseClaim::Outcome LeaseClaim::TryUpdate(base::Instant now, const Ends& ends, bool* conflict) {
  nlohmann::json wanted = lease_;
  wanted["spec"] = Spec(mine());
  absl::StatusOr<nlohmann::json> written =
      client_.Update(kLeases, options_.lease, wanted, "", ends.abandon);
  *conflict = absl::IsAborted(written.status()) || absl::IsNotFound(written.status());
  return Written(std::move(written), now);
}

LeaseClaim::Outcome LeaseClaim::Written(absl::StatusOr<nlohmann::json> written,
                                        base::Instant sent) {
  if (!written.ok()) {
    error_ = written.status();
    return Outcome::kFailed;
  }
  See(*std::move(written), sent);
  if (!mine()) return Outcome::kOther;
  if (clock_.Now() - sent >= options_.renew_deadline) {
    error_ = absl::DeadlineExceededError("the answer came later than the renew deadline");
    return Outcome::kFailed;
  }
  renewed_ = sent;
  return Outcome::kHeld;
}

void LeaseClaim::See(nlohmann::json seen, base::Instant now) {
  nlohmann::json spec = seen.is_object() ? seen.value("spec", nlohmann::json()) : nlohmann::json();
  if (lease_.is_null() || spec != seen_spec_) {
    seen_spec_ = std::move(spec);
    seen_at_ = now;
  }
  lease_ = std::move(seen);
  Know(LeaseRecordOf(lease_, options_.lease_duration));
}

void LeaseClaim::Know(LeaseRecord record) {
  record_ = std::move(record);
  const base::MutexLock lock(mutex_);
  holder_ = record_.holder;
}

nlohmann::json LeaseClaim::Spec(bool keep_term) const {
  const std::string now = MicroTime(clock_.WallNow());
  const bool first = lease_.is_null();
  const bool keep = keep_term && !record_.acquire_time.empty();
  return LeaseSpec(
      {.holder = options_.identity,
       .duration = options_.lease_duration,
       .transitions = first || keep_term ? record_.transitions : record_.transitions + 1,
       .acquire_time = keep ? record_.acquire_time : now},
      now);
}

void LeaseClaim::Release(const std::stop_token& abandon) {
  if (!mine() || !lease_.is_object()) return;
  nlohmann::json wanted = lease_;
  wanted["spec"] = Spec(true);
  wanted["spec"]["holderIdentity"] = "";
  wanted["spec"]["leaseDurationSeconds"] = 1;
  wanted["spec"]["acquireTime"] = wanted["spec"]["renewTime"];
  // Guarded by the version last seen: a lease that changed hands meanwhile is left alone.
  const absl::StatusOr<nlohmann::json> written =
      client_.Update(kLeases, options_.lease, wanted, "", abandon);
  if (written.ok()) {
    See(*written, clock_.Now());
    log::Info("released the lease", {{"lease", options_.lease.ToString()}});
  } else {
    log::Warning("could not release the lease; the next leader waits until it runs out",
                 {{"lease", options_.lease.ToString()}, {"error", written.status().ToString()}});
  }
}

std::string LeaseClaim::holder() const {
  const base::MutexLock lock(mutex_);
  return holder_;
}

}  // namespace hetero::kube
