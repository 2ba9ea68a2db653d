#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/head/member.h"

namespace hetero::process {

// What the head has told this process, for the thread that runs it. Thread-safe: Member's callbacks
// write, the main thread waits. Outlives the Member whose callbacks it makes.
class Membership {
 public:
  // `outer` is the process's own stop request (SIGTERM). With `leaves` it asks this member to
  // leave, and is no stop.
  explicit Membership(std::stop_token outer, bool leaves = false);

  // Callbacks that fill this object; `on_roster` is called for every roster, a generation's own
  // included.
  head::Member::Callbacks MakeCallbacks(std::function<void(const v1::Roster&)> on_roster = {});

  // Waits for the head's first word. kCancelled when stopped, kAborted when asked to leave,
  // kDeadlineExceeded naming the head.
  absl::StatusOr<v1::Welcome> WaitForWelcome(base::Duration timeout);
  struct OpenGeneration {
    v1::Generation generation;
    std::stop_token over;  // requested when a newer one has opened
  };
  // Waits for a generation newer than `after`: until all members have joined. kOutOfRange when
  // another rank has left with the result of the whole job.
  absl::StatusOr<OpenGeneration> WaitForGeneration(int64_t after, base::Duration timeout);
  // Waits until the head or the process asks this member to stop.
  void WaitForStop();

  // Requested by a STOP command, a refusal, or the outer stop if that is one.
  std::stop_token stop_token() const { return stop_.get_token(); }
  // Requested by the outer stop, if it asks this member to leave.
  std::stop_token leave_token() const { return leave_.get_token(); }
  // Set by a CHECKPOINT command, and taken back by whoever obeys.
  std::atomic<bool>& checkpoint_wish() { return checkpoint_wish_; }
  // How a member ends that came to `result`: as that says. But kAborted, "has left as it was asked
  // to", is kInternal where nobody has asked it: whoever said so meant a failure.
  absl::Status EndingWith(absl::Status result) const;
  // Why, when the head refused this process for good; OK when superseded or merely told to stop.
  absl::Status refusal() const;
  bool superseded() const;

 private:
  // Why the wait for `what` ended without it.
  absl::Status NotThere(const char* what, base::Duration timeout) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::optional<v1::Welcome> welcome_ ABSL_GUARDED_BY(mutex_);
  v1::Generation generation_ ABSL_GUARDED_BY(mutex_);  // number 0: none yet
  std::stop_source generation_over_ ABSL_GUARDED_BY(mutex_);
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<v1::Refused> refused_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> checkpoint_wish_ = false;
  std::stop_source stop_;
  std::stop_source leave_;
  std::stop_callback<std::function<void()>> outer_;
};

}  // namespace hetero::process
