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
  callbacks.on_generation = [this](const v1::Generation& generation) {
    std::lock_guard lock(mutex_);
    generation_ = generation;
    changed_.notify_all();
  };
  callbacks.on_roster = std::move(on_roster);
  callbacks.on_command = [this](const v1::Command& command) {
    if (command.kind() == v1::Command::STOP || command.kind() == v1::Command::DRAIN) {
      log::Info("told to stop", {{"reason", command.reason()}});
      stop_.request_stop();
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

template <typename T>
absl::StatusOr<T> Membership::WaitFor(const std::optional<T>& value, base::Duration timeout,
                                      const char* what) {
  std::unique_lock lock(mutex_);
  const bool there =
      changed_.wait_for(lock, stop_.get_token(), timeout, [&value] { return value.has_value(); });
  if (there) return *value;
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
  return WaitFor(welcome_, timeout, "welcome");
}

absl::StatusOr<v1::Generation> Membership::WaitForGeneration(base::Duration timeout) {
  return WaitFor(generation_, timeout, "generation");
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
