#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "runtime/head/live_builder.h"
#include "runtime/head/server.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::played {

// `workers` CPU workers, and a GPU node of up to eight ranks for each thirty of them.
api::HeteroTrainingJob JobOf(int workers);
int RanksOf(int workers);  // of a node

// A head whose members are played: a real State, a real record and time of its own, no sockets and
// no processes. 300 steps a minute; cpu-1 is slow, cpu-2 is killed once and comes back, a line of
// each member's holds what would be a script in a page. Thread-safe.
class PlayedJob : public head::Server {
 public:
  explicit PlayedJob(int workers);

  void PlaySeconds(int seconds);
  // All members have said their last word.
  void Succeed();

  std::string address() const override { return ""; }
  std::string status_address() const override { return ""; }
  v1::JobStatus Wait() override { return status(); }
  void Stop(const std::string& reason, const std::string& failure) override {}
  void Fail(const std::string& member, const std::string& message) override {}
  void Leave() override {}
  v1::JobStatus status() const override;
  insight::Report ReportSoFar() const override;
  live::Snapshot Look(head::LiveBuilder& builder) const override;
  std::optional<live::MemberDetail> LookAt(const std::string& member, bool whole,
                                           double after) const override;

 private:
  struct Actor {
    head::StreamId stream = 0;
    std::string role;
    int32_t index = 0;
    int32_t local = 0;
    int32_t rank = -1;
    int64_t incarnation = 1;
    int64_t samples = 0;
    std::string name;
  };
  void PlaySecond() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KillAndReplace(Actor& actor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::Heartbeat Beat(Actor& actor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddUse(const Actor& actor, v1::Heartbeat& beat) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddProgress(const Actor& actor, v1::Heartbeat& beat) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::JobStatus StatusLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable base::Mutex mutex_;
  head::Drive drive_ ABSL_GUARDED_BY(mutex_);
  std::vector<Actor> actors_ ABSL_GUARDED_BY(mutex_);
  int64_t second_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hetero::played
