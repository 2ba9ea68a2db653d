#include "runtime/process/membership.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace hetero::process {

Membership::Membership(std::stop_token outer)
    : outer_(std::move(outer), [this] { stop_.request_stop(); }) {}

head::Member::Callbacks Membership::MakeCallbacks(
    std::function<void(const v1::Roster&)> on_roster) {
  head::Member::Callbacks callbacks;
  callbacks.on_welcome = [this](const v1::Welcome& welcome) {
    std::lock_guard lock(mutex_);
    welcome_ = welcome;
    changed_.notify_all();
  };
  callbacks.on_generation = [this, on_roster](const v1::Generation& generation) {
    if (on_roster) {
      v1::Roster roster;
      *roster.mutable_cpu_workers() = generation.cpu_workers();
      on_roster(roster);
    }
    std::stop_source over;
    {
      std::lock_guard lock(mutex_);
      generation_ = generation;
      std::swap(over, generation_over_);
      changed_.notify_all();
    }
    over.request_stop();
  };
  callbacks.on_roster = std::move(on_roster);
  callbacks.on_command = [this](const v1::Command& command) {
    if (command.kind() == v1::Command::STOP || command.kind() == v1::Command::DRAIN) {
      log::Info("told to stop", {{"reason", command.reason()}});
      stop_.request_stop();
    } else if (command.kind() == v1::Command::COMPLETE) {
      std::lock_guard lock(mutex_);
      complete_ = true;
      changed_.notify_all();
    }
  };
  callbacks.on_refused = [this](const v1::Refused& refused) {
    log::Warning("refused by the head", {{"reason", refused.reason()}});
    {
      std::lock_guard lock(mutex_);
      refused_ = refused;
    }
    stop_.request_stop();
  };
  callbacks.on_head_lost = [](const absl::Status& status) {
    log::Warning("head does not answer", {{"error", status.message()}});
  };
  return callbacks;
}

absl::Status Membership::WaitUntil(const std::function<bool()>& there, base::Duration timeout,
                                   const char* what, std::unique_lock<std::mutex>& lock) {
  if (changed_.wait_for(lock, stop_.get_token(), timeout, there)) return absl::OkStatus();
  if (stop_.stop_requested()) {
    if (refused_ && !refused_->superseded()) {
      return absl::FailedPreconditionError(
          absl::StrCat("refused by the head: ", refused_->reason()));
    }
    return absl::CancelledError(absl::StrCat("stopped while waiting for ", what));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("no ", what, " from the head within ", base::ToSeconds(timeout), " s"));
}

absl::StatusOr<v1::Welcome> Membership::WaitForWelcome(base::Duration timeout) {
  std::unique_lock lock(mutex_);
  const absl::Status status =
      WaitUntil([this] { return welcome_.has_value(); }, timeout, "welcome", lock);
  if (!status.ok()) return status;
  return *welcome_;
}

absl::StatusOr<Membership::OpenGeneration> Membership::WaitForGeneration(int64_t after,
                                                                         base::Duration timeout) {
  std::unique_lock lock(mutex_);
  const absl::Status status = WaitUntil([&] { return generation_.number() > after || complete_; },
                                        timeout, "generation", lock);
  if (!status.ok()) return status;
  if (generation_.number() > after) {
    return OpenGeneration{generation_, generation_over_.get_token()};
  }
  return absl::OutOfRangeError("another rank has left with the result of the job");
}

void Membership::WaitForStop() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop_.get_token(), [] { return false; });
}

absl::Status Membership::refusal() const {
  std::lock_guard lock(mutex_);
  if (!refused_ || refused_->superseded()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("refused by the head: ", refused_->reason()));
}

bool Membership::superseded() const {
  std::lock_guard lock(mutex_);
  return refused_ && refused_->superseded();
}

}  // namespace hetero::process
