#include "runtime/process/membership.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace hetero::process {

Membership::Membership(std::stop_token outer, bool leaves)
    : outer_(std::move(outer), [this, leaves] {
        if (!leaves) {
          stop_.request_stop();
          return;
        }
        leave_.request_stop();
        const base::MutexLock lock(mutex_);
        changed_.NotifyAll();
      }) {}

head::Member::Callbacks Membership::MakeCallbacks(
    std::function<void(const v1::Roster&)> on_roster) {
  head::Member::Callbacks callbacks;
  callbacks.on_welcome = [this](const v1::Welcome& welcome) {
    const base::MutexLock lock(mutex_);
    welcome_ = welcome;
    changed_.NotifyAll();
  };
  callbacks.on_generation = [this, on_roster](const v1::Generation& generation) {
    if (on_roster) {
      v1::Roster roster;
      *roster.mutable_cpu_workers() = generation.cpu_workers();
      on_roster(roster);
    }
    std::stop_source over;
    {
      const base::MutexLock lock(mutex_);
      generation_ = generation;
      std::swap(over, generation_over_);
      changed_.NotifyAll();
    }
    over.request_stop();
  };
  callbacks.on_roster = std::move(on_roster);
  callbacks.on_command = [this](const v1::Command& command) {
    if (command.kind() == v1::Command::STOP) {
      log::Info("told to stop", {{"reason", command.reason()}});
      stop_.request_stop();
    } else if (command.kind() == v1::Command::CHECKPOINT) {
      log::Info("told to write a checkpoint", {{"reason", command.reason()}});
      checkpoint_wish_ = true;
    } else if (command.kind() == v1::Command::COMPLETE) {
      const base::MutexLock lock(mutex_);
      complete_ = true;
      changed_.NotifyAll();
    }
  };
  callbacks.on_not_admitted = [](const v1::NotAdmitted& not_admitted) {
    log::Error("takes no part in the job", {{"reason", not_admitted.reason()}});
  };
  callbacks.on_refused = [this](const v1::Refused& refused) {
    log::Warning("refused by the head", {{"reason", refused.reason()}});
    {
      const base::MutexLock lock(mutex_);
      refused_ = refused;
    }
    stop_.request_stop();
  };
  callbacks.on_head_lost = [](const absl::Status& status) {
    log::Warning("head does not answer", {{"error", status.message()}});
  };
  return callbacks;
}

absl::Status Membership::NotThere(const char* what, base::Duration timeout) const {
  if (stop_.stop_requested()) {
    if (refused_ && !refused_->superseded()) {
      return absl::FailedPreconditionError(
          absl::StrCat("refused by the head: ", refused_->reason()));
    }
    return absl::CancelledError(absl::StrCat("stopped while waiting for ", what));
  }
  if (leave_.stop_requested()) {
    return absl::AbortedError(absl::StrCat("asked to leave while waiting for ", what));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("no ", what, " from the head within ", base::ToSeconds(timeout), " s"));
}

absl::StatusOr<v1::Welcome> Membership::WaitForWelcome(base::Duration timeout) {
  const base::MutexLock lock(mutex_);
  const bool there =
      changed_.WaitUntil(mutex_, base::Clock::Real().Now() + timeout, stop_.get_token(),
                         [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                           return welcome_.has_value() || leave_.stop_requested();
                         });
  if (!there || !welcome_) return NotThere("welcome", timeout);
  return *welcome_;
}

absl::StatusOr<Membership::OpenGeneration> Membership::WaitForGeneration(int64_t after,
                                                                         base::Duration timeout) {
  const base::MutexLock lock(mutex_);
  const bool there = changed_.WaitUntil(
      mutex_, base::Clock::Real().Now() + timeout, stop_.get_token(),
      [this, after]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return generation_.number() > after || complete_ || leave_.stop_requested();
      });
  if (!there || (generation_.number() <= after && !complete_)) {
    return NotThere("generation", timeout);
  }
  if (generation_.number() > after) {
    return OpenGeneration{generation_, generation_over_.get_token()};
  }
  return absl::OutOfRangeError("another rank has left with the result of the job");
}

void Membership::WaitForStop() {
  const base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, stop_.get_token(), [] { return false; });
}

absl::Status Membership::EndingWith(absl::Status result) const {
  if (!absl::IsAborted(result) || leave_.stop_requested()) return result;
  return absl::InternalError(result.message());
}

absl::Status Membership::refusal() const {
  const base::MutexLock lock(mutex_);
  if (!refused_ || refused_->superseded()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("refused by the head: ", refused_->reason()));
}

bool Membership::superseded() const {
  const base::MutexLock lock(mutex_);
  return refused_ && refused_->superseded();
}

}  // namespace hetero::process
