#include "operator/controller/manager.h"

#include <exception>
#include <list>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace hetero::controller {
namespace {

constexpr base::Duration kSyncPoll = std::chrono::milliseconds(10);

std::string Seconds(base::Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

struct Manager::Impl {
  struct Part {
    std::string name;
    std::function<absl::Status(std::stop_token)> run;
    std::function<bool()> synced;  // caches only
    std::stop_source stop;
    std::jthread thread;
  };

  Impl(base::Clock& manager_clock, Options given) : clock(manager_clock), options(given) {}

  ~Impl() {
    for (std::list<Part>* group : {&workers, &election, &caches}) {
      for (Part& part : *group) part.stop.request_stop();
      group->clear();  // joins
    }
  }

  // An exception would end the process in the middle of everything, and nothing would name the
  // part.
  static absl::Status Guarded(Part& part) {
    std::string what = "of unknown kind";
    try {
      return part.run(part.stop.get_token());
    } catch (const std::exception& error) {
      what = error.what();
    } catch (...) {
    }
    log::Error("bug, please report it: an exception", {{"part", part.name}, {"what", what}});
    return absl::InternalError("an exception left " + part.name + ": " + what);
  }

  void StartPart(Part& part) {
    part.thread = std::jthread([this, &part] {
      base::SetThreadName(part.name);
      absl::Status status = Guarded(part);
      const base::MutexLock lock(mutex);
      ended.insert(&part);
      if (!part.stop.stop_requested()) {
        FailLocked(status.ok() ? absl::InternalError(part.name + " ended by itself")
                               : std::move(status));
      }
      wake.request_stop();
    });
  }

  void FailLocked(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (!failure) failure = std::move(status);
    halt.request_stop();
  }

  // Waits until all of `group` have ended, or the deadline; gives the names of those that have not.
  std::vector<std::string> WaitForEnd(const std::list<Part>& group, base::Instant deadline) {
    base::MutexLock lock(mutex);
    for (;;) {
      std::vector<std::string> running;
      for (const Part& part : group) {
        if (part.thread.joinable() && !ended.contains(&part)) running.push_back(part.name);
      }
      const base::Instant now = clock.Now();
      if (running.empty() || now >= deadline) return running;
      wake = std::stop_source();
      const std::stop_token changed = wake.get_token();
      lock.Unlock();
      clock.SleepFor(deadline - now, changed);
      lock.Lock();
    }
  }

  std::vector<std::string> NotSynced() const {
    std::vector<std::string> names;
    for (const Part& cache : caches) {
      if (!cache.synced()) names.push_back(cache.name);
    }
    return names;
  }

  absl::Status SyncCaches() {
    for (Part& cache : caches) StartPart(cache);
    const base::Instant deadline = clock.Now() + options.cache_sync_timeout;
    for (;;) {
      const std::vector<std::string> missing = NotSynced();
      if (missing.empty() || halt.stop_requested()) return absl::OkStatus();
      if (clock.Now() >= deadline) {
        return absl::DeadlineExceededError(
            "not listed within " + Seconds(options.cache_sync_timeout) + ": " + Join(missing) +
            "; see the log above for the server's answers, and check that the custom resource is "
            "installed and that the service account may list and watch them");
      }
      clock.SleepFor(kSyncPoll, halt.get_token());
    }
  }

  absl::Status Lead() {
    if (!acquire || halt.stop_requested()) return absl::OkStatus();
    absl::Status status = acquire(halt.get_token());
    if (halt.stop_requested()) return absl::OkStatus();  // the wait was ended by us
    return status;
  }

  void WaitForHalt() {
    const base::MutexLock lock(mutex);
    halted.Wait(mutex, halt.get_token(), [] { return false; });
  }

  absl::Status StopAll() {
    const base::Instant deadline = clock.Now() + options.stop_timeout;
    for (std::list<Part>* group : {&workers, &election, &caches}) {
      for (Part& part : *group) part.stop.request_stop();
      const std::vector<std::string> hanging = WaitForEnd(*group, deadline);
      if (!hanging.empty()) {
        return absl::DeadlineExceededError("did not stop within " + Seconds(options.stop_timeout) +
                                           ": " + Join(hanging));
      }
    }
    return absl::OkStatus();
  }

  base::Clock& clock;
  const Options options;
  std::function<absl::Status(std::stop_token)> acquire;
  std::stop_source halt;  // the outer stop, or a failure

  base::Mutex mutex;
  base::CondVar halted;  // never notified: `halt` ends the wait
  std::optional<absl::Status> failure ABSL_GUARDED_BY(mutex);
  std::stop_source wake ABSL_GUARDED_BY(mutex);  // a part has ended
  std::set<const Part*> ended ABSL_GUARDED_BY(mutex);

  // Lists, because the threads hold on to their part.
  std::list<Part> caches;
  std::list<Part> election;  // none or one
  std::list<Part> workers;
};

Manager::Manager(base::Clock& clock, Options options)
    : impl_(std::make_unique<Impl>(clock, options)) {}

Manager::~Manager() = default;

void Manager::AddCache(std::string name, Run run, std::function<bool()> synced) {
  Impl::Part& part = impl_->caches.emplace_back();
  part.name = std::move(name);
  part.run = [run = std::move(run)](std::stop_token stop) {
    run(std::move(stop));
    return absl::OkStatus();
  };
  part.synced = std::move(synced);
}

void Manager::SetElection(std::function<absl::Status(std::stop_token)> acquire,
                          std::function<absl::Status(std::stop_token)> hold) {
  impl_->acquire = std::move(acquire);
  Impl::Part& part = impl_->election.emplace_back();
  part.name = "leader election";
  part.run = [hold = std::move(hold)](std::stop_token stop) {
    const absl::Status status = hold(stop);
    if (stop.stop_requested()) return absl::OkStatus();
    return absl::AbortedError(status.ok() ? "leader election ended by itself" : status.message());
  };
}

void Manager::AddWorker(std::string name, Run run) {
  Impl::Part& part = impl_->workers.emplace_back();
  part.name = std::move(name);
  part.run = [run = std::move(run)](std::stop_token stop) {
    run(std::move(stop));
    return absl::OkStatus();
  };
}

absl::Status Manager::Ready() const {
  const std::vector<std::string> missing = impl_->NotSynced();
  if (missing.empty()) return absl::OkStatus();
  return absl::UnavailableError("not listed yet: " + Join(missing));
}

absl::Status Manager::Start(std::stop_token stop) {
  Impl& impl = *impl_;
  const std::stop_callback outer(stop, [&impl] { impl.halt.request_stop(); });

  absl::Status status = impl.SyncCaches();
  if (status.ok()) status = impl.Lead();
  if (status.ok() && !impl.halt.stop_requested()) {
    for (Impl::Part& part : impl.election) impl.StartPart(part);
    for (Impl::Part& part : impl.workers) impl.StartPart(part);
    impl.WaitForHalt();
  }
  {
    const base::MutexLock lock(impl.mutex);
    if (impl.failure) status = *impl.failure;
  }
  if (absl::IsAborted(status)) {
    // Somebody else may lead now; waiting for anything would only prolong the overlap.
    for (Impl::Part& part : impl.workers) part.stop.request_stop();
    return status;
  }
  const absl::Status stopped = impl.StopAll();
  return status.ok() ? stopped : status;
}

}  // namespace hetero::controller
