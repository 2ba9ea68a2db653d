#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/agent/coordinator.h"
#include "runtime/agent/master_address.h"

namespace hetero::agent {

// One rank's agreement with all others, by words to the head and its decisions. It knows all that
// its rank has said in the generation, so that a head that has just taken over hears it too. What
// is of another generation than the latest is passed over. Thread-safe.
class HeadCoordinator : public Coordinator {
 public:
  // How long a rank waits for the commit of a checkpoint that is being agreed: longer than the head
  // does for the ranks' answers.
  static constexpr base::Duration kCommitPatience = std::chrono::seconds(6);

  explicit HeadCoordinator(base::Clock& clock) : clock_(clock) {}
  ~HeadCoordinator() override;

  // Callbacks of head::Member.
  void OnDecision(const v1::ScriptDecision& decision);
  std::vector<v1::ScriptWord> AllWords() const;
  // From now on words are told by `tell`, on a thread of this object.
  struct Job {
    int32_t rank = 0;
    int64_t total_steps = 0, steps_per_epoch = 0;
    std::optional<api::Checkpoint> checkpoint;
    std::function<void(const v1::ScriptWord&)> tell;
  };
  void Connect(Job job);
  // Nothing is told any more.
  void Disconnect() { teller_ = {}; }

  // Forgets all of the generation before. Waits of it end with kAborted when `over` is requested.
  void BeginGeneration(int64_t number, std::stop_token over);
  // Rank 0 tells where its script listens, once in a generation; the others wait for that. A head
  // that takes over hears it again. kAborted: there is no need any more, by `stop` or the end of
  // the generation; kDeadlineExceeded.
  void TellMaster(const MasterAddress& master);
  absl::StatusOr<MasterAddress> AwaitMaster(const std::stop_token& stop, base::Duration deadline);
  // This rank is asked to leave: all shall save, and stop after the same step.
  void AskToStop();
  // This rank's script has ended well.
  void TellEnded();
  // All scripts of the generation have.
  bool all_ended() const;
  // After how many steps all scripts stop, once that is agreed.
  std::optional<int64_t> stop_after() const;

  absl::Status AgreePosition(const Position& position, const std::stop_token& stop,
                             base::Duration deadline) override;
  bool MayGoOn(int64_t step, const std::stop_token& stop) override;
  bool CheckpointDue(int64_t step, const std::stop_token& stop) override;
  void TellDigest(int64_t step, const job::StreamDigest& own) override;
  std::optional<job::StreamDigest> JobDigestAt(int64_t step, const std::stop_token& stop,
                                               base::Duration deadline) override;

 private:
  // What this rank and the head have said in one generation.
  struct Talk {
    int64_t generation = 0;
    std::stop_token over;
    std::optional<MasterAddress> own_master;
    std::optional<MasterAddress> master;
    std::optional<Position> position;
    bool agreed = false;
    std::map<int64_t, job::StreamDigest> own;  // by steps done; the latest kMostDigests
    std::set<int64_t> told;                    // of those
    std::set<int64_t> wanted_by_head, wanted_here;
    std::map<int64_t, std::optional<job::StreamDigest>> of_job;  // without value: not proven
    int64_t given = 0;                                           // steps given out
    int64_t refused_until = -1;        // up to here no checkpoint is due that was not then
    std::optional<int64_t> preparing;  // this rank's answer
    base::Instant prepared_at{};
    std::set<int64_t> commits;
    std::optional<int64_t> stop_after;
    bool wants_stop = false, ended = false, all_ended = false;
  };

  bool DueByRule(int64_t step) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Until no checkpoint at or before `step` is being agreed. False: stopped or over.
  bool WaitForCommit(int64_t step, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for `there`, also until the end of the generation.
  template <typename Condition>
  bool WaitFor(const std::stop_token& stop, base::Duration patience, Condition there)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::ScriptWord Word() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::ScriptWord MasterWord() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::ScriptWord PositionWord() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::ScriptWord DigestWord(int64_t step) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellOwn(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Say(v1::ScriptWord word) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(const std::stop_token& stop);

  base::Clock& clock_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  Job job_ ABSL_GUARDED_BY(mutex_);
  Talk talk_ ABSL_GUARDED_BY(mutex_);
  // Of a generation that has not begun here: rank 0 may be the first to hear of it.
  std::optional<v1::ScriptDecision> early_master_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::ScriptWord> unsaid_ ABSL_GUARDED_BY(mutex_);
  std::jthread teller_;
};

}  // namespace hetero::agent
