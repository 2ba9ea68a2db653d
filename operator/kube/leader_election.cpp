#include "operator/kube/leader_election.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/thread.h"
#include "operator/kube/lease_record.h"
#include "operator/kube/micro_time.h"

namespace hetero::kube {
namespace {

// client-go's: waits for a lease are between once and 2.2 times the retry period.
constexpr double kAcquireJitter = 1.2;

std::string Text(const absl::Status& status) { return status.ToString(); }

}  // namespace

struct LeaderElection::Impl {
  enum class Outcome {
    kHeld,    // ours, renewed just now
    kOther,   // somebody else's, or no longer ours
    kFailed,  // not known: the server could not be asked or has refused
  };

  Impl(Client& client, base::Clock& clock, metrics::Registry& registry, Options options,
       base::Backoff::Random random)
      : client(client),
        clock(clock),
        options(std::move(options)),
        random(std::move(random)),
        status(registry.GetGauge("leader_election_master_status",
                                 "1 while this process holds the lease.",
                                 {{"name", this->options.lease.name}})) {
    status.Set(0);
  }

  Client& client;
  base::Clock& clock;
  const Options options;
  base::Backoff::Random random;  // worker only
  metrics::Gauge status;

  // Worker only.
  nlohmann::json lease;      // as last seen; null: never, or it was not there
  nlohmann::json seen_spec;  // of it, to notice changes
  base::Instant seen_at;     // when seen_spec was first seen
  absl::Status last_error;
  std::string last_logged;

  mutable std::mutex mutex;  // guards all below
  std::condition_variable_any changed;
  LeaseRecord record;  // of the lease as last seen
  bool leading = false;
  bool release = false;  // when the worker ends: nobody writes on the lease's strength any more
  std::optional<absl::Status> lost;  // why the lease is gone, after leading
  base::Instant renewed;             // when the last successful renewal was sent
  std::stop_source ended;            // the worker has ended or lost the lease
  // A write under way is no longer waited for. A stop alone waits for it: what it has done must be
  // known, so that the lease can be released.
  std::stop_source abandon;

  std::jthread worker;

  bool Mine() const {
    std::lock_guard lock(mutex);
    return record.holder == options.identity;
  }
  bool Leading() const {
    std::lock_guard lock(mutex);
    return leading;
  }

  // What ends a call: a stop the reading, `abandon` the writing.
  struct Ends {
    std::stop_token stop;
    std::stop_token abandon;
  };

  void Run(const Ends& ends);
  Outcome Attempt(bool holding, const Ends& ends);
  Outcome TryUpdate(base::Instant now, const Ends& ends, bool* conflict);
  Outcome TryCreate(base::Instant now, const Ends& ends);
  void See(nlohmann::json seen, base::Instant now);
  nlohmann::json Spec(bool keep_term) const;
  Outcome Written(absl::StatusOr<nlohmann::json> written, base::Instant sent);
  void Lead(base::Instant sent);
  void Lose(absl::Status why);
  void Abandon();
  // Waits for the worker: for its release of the lease too, if it is to release it.
  void End();
  void Release(const Ends& ends);
  void LogOnce(const std::string& what, const absl::Status& error = absl::OkStatus());
};

// A fresh term of ours, or, with `keep_term`, the running one renewed.
nlohmann::json LeaderElection::Impl::Spec(bool keep_term) const {
  std::lock_guard lock(mutex);
  const std::string now = MicroTime(clock.WallNow());
  const bool first = lease.is_null();
  const bool keep = keep_term && !record.acquire_time.empty();
  return LeaseSpec({.holder = options.identity,
                    .duration = options.lease_duration,
                    .transitions = first || keep_term ? record.transitions : record.transitions + 1,
                    .acquire_time = keep ? record.acquire_time : now},
                   now);
}

void LeaderElection::Impl::See(nlohmann::json seen, base::Instant now) {
  nlohmann::json spec = seen.is_object() ? seen.value("spec", nlohmann::json()) : nlohmann::json();
  if (lease.is_null() || spec != seen_spec) {
    seen_spec = std::move(spec);
    seen_at = now;
  }
  lease = std::move(seen);
  std::lock_guard lock(mutex);
  record = LeaseRecordOf(lease, options.lease_duration);
}

LeaderElection::Impl::Outcome LeaderElection::Impl::Written(absl::StatusOr<nlohmann::json> written,
                                                            base::Instant sent) {
  if (!written.ok()) {
    last_error = written.status();
    return Outcome::kFailed;
  }
  See(*std::move(written), sent);
  if (!Mine()) return Outcome::kOther;
  if (clock.Now() - sent >= options.renew_deadline) {
    last_error = absl::DeadlineExceededError("the answer came later than the renew deadline");
    return Outcome::kFailed;
  }
  Lead(sent);
  return Outcome::kHeld;
}

LeaderElection::Impl::Outcome LeaderElection::Impl::TryCreate(base::Instant now, const Ends& ends) {
  lease = nullptr;
  {
    std::lock_guard lock(mutex);
    record = {};
  }
  return Written(
      client.Create(
          kLeases, options.lease.name_space,
          {{"apiVersion", "coordination.k8s.io/v1"},
           {"kind", "Lease"},
           {"metadata", {{"name", options.lease.name}, {"namespace", options.lease.name_space}}},
           {"spec", Spec(false)}},
          ends.abandon),
      now);
}

LeaderElection::Impl::Outcome LeaderElection::Impl::TryUpdate(base::Instant now, const Ends& ends,
                                                              bool* conflict) {
  nlohmann::json wanted = lease;
  wanted["spec"] = Spec(Mine());
  absl::StatusOr<nlohmann::json> written =
      client.Update(kLeases, options.lease, wanted, "", ends.abandon);
  *conflict = absl::IsAborted(written.status()) || absl::IsNotFound(written.status());
  return Written(std::move(written), now);
}

// client-go's tryAcquireOrRenew. `holding`: it is ours and must have stayed so all the time, so one
// that somebody else took is lost even when it is free again.
LeaderElection::Impl::Outcome LeaderElection::Impl::Attempt(bool holding, const Ends& ends) {
  const base::Instant now = clock.Now();
  bool conflict = false;
  if (holding && lease.is_object()) {
    // Most renewals are this one call, on the strength of the version last seen.
    const Outcome outcome = TryUpdate(now, ends, &conflict);
    if (!conflict) return outcome;
  }
  absl::StatusOr<nlohmann::json> seen =
      client.Get(kLeases, options.lease, holding ? ends.abandon : ends.stop);
  if (absl::IsNotFound(seen.status())) return TryCreate(now, ends);
  if (!seen.ok()) {
    last_error = seen.status();
    return Outcome::kFailed;
  }
  if (!seen->is_object()) {
    last_error = absl::InternalError("the server's answer is not a Lease");
    return Outcome::kFailed;
  }
  See(*std::move(seen), now);
  LeaseRecord current;
  {
    std::lock_guard lock(mutex);
    current = record;
  }
  const bool mine = current.holder == options.identity;
  if (holding && !mine) return Outcome::kOther;
  if (!mine && !current.holder.empty() && now < seen_at + current.duration) return Outcome::kOther;
  return TryUpdate(now, ends, &conflict);
}

void LeaderElection::Impl::Lead(base::Instant sent) {
  std::lock_guard lock(mutex);
  if (lost) return;  // too late: Hold has already told its caller
  renewed = sent;
  if (leading) return;
  leading = true;
  status.Set(1);
  changed.notify_all();
}

void LeaderElection::Impl::Lose(absl::Status why) {
  std::stop_source end;
  {
    std::lock_guard lock(mutex);
    leading = false;
    status.Set(0);
    if (!lost) lost = std::move(why);
    end = ended;
    changed.notify_all();
  }
  end.request_stop();
}

void LeaderElection::Impl::Abandon() {
  std::stop_source writes;
  {
    std::lock_guard lock(mutex);
    writes = abandon;
  }
  writes.request_stop();
}

void LeaderElection::Impl::End() {
  if (!worker.joinable()) return;
  worker.request_stop();
  const bool releases = [&] {
    std::lock_guard lock(mutex);
    return release;
  }();
  if (!releases) Abandon();
  worker.join();
}

void LeaderElection::Impl::LogOnce(const std::string& what, const absl::Status& error) {
  const std::string text = what + (error.ok() ? "" : Text(error));
  if (text == last_logged) return;
  last_logged = text;
  if (error.ok()) {
    log::Info(what, {{"lease", options.lease.ToString()}, {"identity", options.identity}});
  } else {
    log::Warning(what, {{"lease", options.lease.ToString()}, {"error", Text(error)}});
  }
}

void LeaderElection::Impl::Release(const Ends& ends) {
  {
    std::lock_guard lock(mutex);
    if (!release || record.holder != options.identity || lost || !lease.is_object()) return;
  }
  nlohmann::json wanted = lease;
  wanted["spec"] = Spec(true);
  wanted["spec"]["holderIdentity"] = "";
  wanted["spec"]["leaseDurationSeconds"] = 1;
  wanted["spec"]["acquireTime"] = wanted["spec"]["renewTime"];
  // Guarded by the version last seen: a lease that changed hands meanwhile is left alone.
  const absl::StatusOr<nlohmann::json> written =
      client.Update(kLeases, options.lease, wanted, "", ends.abandon);
  if (written.ok()) {
    See(*written, clock.Now());
    log::Info("released the lease", {{"lease", options.lease.ToString()}});
  } else {
    log::Warning("could not release the lease; the next leader waits until it runs out",
                 {{"lease", options.lease.ToString()}, {"error", Text(written.status())}});
  }
}

void LeaderElection::Impl::Run(const Ends& ends) {
  base::SetThreadName("lease");
  while (!ends.stop.stop_requested()) {
    const bool holding = Leading();
    switch (Attempt(holding, ends)) {
      case Outcome::kHeld:
        LogOnce("leading");
        break;
      case Outcome::kOther: {
        const std::string holder = [&] {
          std::lock_guard lock(mutex);
          return record.holder;
        }();
        if (holding) {
          Lose(absl::AbortedError(
              absl::StrCat("the lease ", options.lease.ToString(), " is held by ",
                           holder.empty() ? "nobody" : holder,
                           " now, not by this process; it was renewed too late or taken by hand")));
          return;
        }
        LogOnce("waiting: the lease is held by " + holder);
        break;
      }
      case Outcome::kFailed:
        // A conflict is another candidate's turn, an abandoned call our own: nothing to tell.
        if (!absl::IsAborted(last_error) && !absl::IsAlreadyExists(last_error) &&
            !absl::IsCancelled(last_error)) {
          LogOnce(holding ? "cannot renew the lease" : "cannot get the lease", last_error);
        }
        break;
    }
    const double stretch = Leading() ? 1 : 1 + kAcquireJitter * random();
    clock.SleepFor(base::FromSeconds(base::ToSeconds(options.retry_period) * stretch), ends.stop);
  }
  Release(ends);
  Lose(absl::CancelledError("stopped"));
}

LeaderElection::LeaderElection(Client& client, base::Clock& clock, metrics::Registry& registry,
                               Options options, base::Backoff::Random random)
    : impl_(
          std::make_unique<Impl>(client, clock, registry, std::move(options), std::move(random))) {}

LeaderElection::~LeaderElection() { impl_->End(); }

absl::Status LeaderElection::Acquire(std::stop_token stop) {
  Impl& impl = *impl_;
  impl.End();
  std::unique_lock lock(impl.mutex);
  impl.leading = false;
  impl.release = false;
  impl.lost.reset();
  impl.ended = std::stop_source();
  impl.abandon = std::stop_source();
  impl.worker = std::jthread([&impl, abandon = impl.abandon.get_token()](std::stop_token stop) {
    impl.Run({.stop = std::move(stop), .abandon = abandon});
  });
  const bool led =
      impl.changed.wait(lock, stop, [&] { return impl.leading || impl.lost.has_value(); });
  if (led && impl.leading && !stop.stop_requested()) return absl::OkStatus();
  impl.release = true;  // should it still come, nobody has begun to write
  impl.worker.request_stop();
  return absl::CancelledError(
      absl::StrCat("stopped while waiting for the lease ", impl.options.lease.ToString()));
}

absl::Status LeaderElection::Hold(std::stop_token stop) {
  Impl& impl = *impl_;
  if (!impl.worker.joinable()) {
    return absl::FailedPreconditionError("Hold without Acquire");
  }
  std::stop_source wake;
  std::stop_callback on_end(
      [&] {
        std::lock_guard lock(impl.mutex);
        return impl.ended.get_token();
      }(),
      [&] { wake.request_stop(); });
  std::stop_callback on_stop(stop, [&] {
    {
      std::lock_guard lock(impl.mutex);
      impl.release = true;
    }
    impl.worker.request_stop();  // it releases, then ends
  });
  while (true) {
    base::Duration left;
    {
      std::lock_guard lock(impl.mutex);
      if (impl.lost) return stop.stop_requested() ? absl::OkStatus() : *impl.lost;
      left = impl.renewed + impl.options.renew_deadline - impl.clock.Now();
    }
    if (left <= base::Duration::zero()) break;
    impl.clock.SleepFor(left, wake.get_token());
  }
  impl.worker.request_stop();
  impl.Abandon();
  const absl::Status late = absl::AbortedError(absl::StrCat(
      "the lease ", impl.options.lease.ToString(), " could not be renewed within ",
      base::ToSeconds(impl.options.renew_deadline), " s; is the API server reachable?"));
  impl.Lose(late);
  return stop.stop_requested() ? absl::OkStatus() : late;
}

bool LeaderElection::leading() const { return impl_->Leading(); }

std::string LeaderElection::holder() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->record.holder;
}

}  // namespace hetero::kube
