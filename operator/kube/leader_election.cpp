#include "operator/kube/leader_election.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "operator/kube/lease_claim.h"

namespace hetero::kube {
namespace {

// client-go's: waits for a lease are between once and 2.2 times the retry period.
constexpr double kAcquireJitter = 1.2;

}  // namespace

struct LeaderElection::Impl {
  Impl(Client& client, base::Clock& clock, metrics::Registry& registry, Options options,
       base::Backoff::Random random)
      : clock(clock),
        options(std::move(options)),
        random(std::move(random)),
        status(registry.GetGauge("leader_election_master_status",
                                 "1 while this process holds the lease.",
                                 {{"name", this->options.lease.name}})),
        claim(client, clock, this->options) {
    status.Set(0);
  }

  base::Clock& clock;
  const Options options;
  base::Backoff::Random random;  // worker only
  metrics::Gauge status;
  LeaseClaim claim;         // worker only, but for its holder()
  std::string last_logged;  // worker only

  mutable base::Mutex mutex;
  base::CondVar changed;  // leading, lost
  bool leading ABSL_GUARDED_BY(mutex) = false;
  // When the worker ends: nobody writes on the lease's strength any more.
  bool release ABSL_GUARDED_BY(mutex) = false;
  // Why the lease is gone, after leading.
  std::optional<absl::Status> lost ABSL_GUARDED_BY(mutex);
  // When the last successful renewal was sent.
  base::Instant renewed ABSL_GUARDED_BY(mutex);
  std::stop_source ended ABSL_GUARDED_BY(mutex);    // the worker has ended or lost the lease
  std::stop_source abandon ABSL_GUARDED_BY(mutex);  // a write under way is not waited for any more

  std::jthread worker;

  bool Leading() const {
    const base::MutexLock lock(mutex);
    return leading;
  }
  bool Releases() const {
    const base::MutexLock lock(mutex);
    return release;
  }
  // Until this process leads or cannot any more; whether it leads.
  bool AwaitLeading(const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    changed.Wait(mutex, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return leading || lost.has_value();
    });
    return leading;
  }

  void Run(const LeaseClaim::Ends& ends);
  void Lead(base::Instant sent);
  void Lose(absl::Status why);
  void Abandon();
  // Waits for the worker: for its release of the lease too, if it is to release it.
  void End();
  void Release(const std::stop_token& abandoned);
  void LogOnce(const std::string& what, const absl::Status& error = absl::OkStatus());
};

void LeaderElection::Impl::Lead(base::Instant sent) {
  const base::MutexLock lock(mutex);
  if (lost) return;  // too late: Hold has already told its caller
  renewed = sent;
  if (leading) return;
  leading = true;
  status.Set(1);
  changed.NotifyAll();
}

void LeaderElection::Impl::Lose(absl::Status why) {
  std::stop_source end;
  {
    const base::MutexLock lock(mutex);
    leading = false;
    status.Set(0);
    if (!lost) lost = std::move(why);
    end = ended;
    changed.NotifyAll();
  }
  end.request_stop();
}

void LeaderElection::Impl::Abandon() {
  std::stop_source writes;
  {
    const base::MutexLock lock(mutex);
    writes = abandon;
  }
  writes.request_stop();
}

void LeaderElection::Impl::End() {
  if (!worker.joinable()) return;
  worker.request_stop();
  if (!Releases()) Abandon();
  worker.join();
}

void LeaderElection::Impl::LogOnce(const std::string& what, const absl::Status& error) {
  const std::string text = what + (error.ok() ? "" : error.ToString());
  if (text == last_logged) return;
  last_logged = text;
  if (error.ok()) {
    log::Info(what, {{"lease", options.lease.ToString()}, {"identity", options.identity}});
  } else {
    log::Warning(what, {{"lease", options.lease.ToString()}, {"error", error.ToString()}});
  }
}

void LeaderElection::Impl::Release(const std::stop_token& abandoned) {
  {
    const base::MutexLock lock(mutex);
    if (!release || lost) return;
  }
  claim.Release(abandoned);
}

void LeaderElection::Impl::Run(const LeaseClaim::Ends& ends) {
  base::SetThreadName("lease");
  while (!ends.stop.stop_requested()) {
    const bool holding = Leading();
    switch (claim.Attempt(holding, ends)) {
      case LeaseClaim::Outcome::kHeld:
        Lead(claim.renewed());
        LogOnce("leading");
        break;
      case LeaseClaim::Outcome::kOther: {
        const std::string holder = claim.holder();
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
      case LeaseClaim::Outcome::kFailed:
        // A conflict is another candidate's turn, an abandoned call our own: nothing to tell.
        if (!absl::IsAborted(claim.error()) && !absl::IsAlreadyExists(claim.error()) &&
            !absl::IsCancelled(claim.error())) {
          LogOnce(holding ? "cannot renew the lease" : "cannot get the lease", claim.error());
        }
        break;
    }
    const double stretch = Leading() ? 1 : 1 + kAcquireJitter * random();
    clock.SleepFor(base::FromSeconds(base::ToSeconds(options.retry_period) * stretch), ends.stop);
  }
  Release(ends.abandon);
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
  const base::MutexLock lock(impl.mutex);
  impl.leading = false;
  impl.release = false;
  impl.lost.reset();
  impl.ended = std::stop_source();
  impl.abandon = std::stop_source();
  impl.worker = std::jthread([&impl, abandon = impl.abandon.get_token()](std::stop_token stop) {
    impl.Run({.stop = std::move(stop), .abandon = abandon});
  });
  if (impl.AwaitLeading(stop) && !stop.stop_requested()) return absl::OkStatus();
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
        const base::MutexLock lock(impl.mutex);
        return impl.ended.get_token();
      }(),
      [&] { wake.request_stop(); });
  std::stop_callback on_stop(stop, [&] {
    {
      const base::MutexLock lock(impl.mutex);
      impl.release = true;
    }
    impl.worker.request_stop();  // it releases, then ends
  });
  while (true) {
    base::Duration left;
    {
      const base::MutexLock lock(impl.mutex);
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

std::string LeaderElection::holder() const { return impl_->claim.holder(); }

}  // namespace hetero::kube
