#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/job/stream_digest.h"

namespace hetero::head {

// What the scripts of one generation agree on through the head, since nothing is known of how they
// speak with each other: where rank 0's listens, where they begin, which digest the stream has up
// to a step, after which step all save, and that all have ended. It knows what their ranks have
// said, and no more: ranks say all of it again to another head, and hear the decisions again on
// another stream. No decision waits for a script; those about checkpoints wait for the ranks'
// answers alone. Pure: time comes with each call. Not thread-safe.
class ScriptAgreement {
 public:
  // Ranks that have not answered by then do without the checkpoint.
  static constexpr base::Duration kAnswerGrace = std::chrono::seconds(5);
  static constexpr size_t kMostSteps = 64;  // whose sums are known, the latest

  struct Options {
    int32_t ranks = 1;
    std::optional<base::Duration> checkpoint_interval;  // api::Checkpoint's
  };
  explicit ScriptAgreement(Options options) : options_(options) {}

  // Forgets everything, unless `generation` is the one that ranks speak of already.
  void Begin(int64_t generation);
  int64_t generation() const { return generation_; }

  // A word of `rank`, in this generation. `total_steps`: of the job; 0: not known.
  void Take(int32_t rank, const v1::ScriptWord& word, int64_t total_steps, base::Instant now);
  // A rank leaves, and what its script has done since the last checkpoint is not to be lost: as
  // Prepare() with `stop`. Where not all ranks have told this head yet where they began, it waits
  // for that.
  bool TakeStopWish(int64_t reached, base::Instant now);
  // All ranks shall save after the same step, and go no further with `stop`. `reached`: the highest
  // step that any of them has told. False: their positions are not agreed, or differ.
  bool Prepare(bool stop, int64_t reached, base::Instant now);
  // Begins checkpoints by the clock, and gives up those that ranks do not answer for.
  void Look(int64_t reached, base::Instant now);

  // For all ranks: what was decided since the last call.
  std::vector<v1::ScriptDecision> TakeDecisions();
  // All that a rank may have missed while it had no stream.
  std::vector<v1::ScriptDecision> Decided() const;

  // Where all scripts begin, once they agree.
  const std::optional<v1::ScriptPosition>& position() const { return agreed_; }
  // The latest that all were told to save after; -1: none.
  int64_t committed_step() const { return committed_step_; }
  // Why they do not; empty: they may still.
  const std::string& difference() const { return difference_; }
  // Ranks did not answer when all were to save and stop.
  bool gave_up_stop() const { return gave_up_stop_; }
  // After which step no script goes on, once that is agreed.
  std::optional<int64_t> stop_step() const { return stop_step_; }
  bool HasEnded(int32_t rank) const { return Said(ended_, rank); }

 private:
  struct Ranks {  // that have said something
    std::vector<bool> said;
    int32_t count = 0;
  };
  struct Sum {
    job::StreamDigest digest;
    Ranks ranks;
    bool wanted = false;  // the ranks were asked
  };
  struct Checkpoint {
    int64_t asked = 0;
    int64_t step = 0;  // the latest that was answered
    bool stop = false;
    base::Instant since;
    Ranks answered;
  };

  static bool Said(const Ranks& ranks, int32_t rank);
  // False: it was said before.
  bool Say(int32_t rank, Ranks& ranks) const;
  bool AllSaid(const Ranks& ranks) const { return ranks.count == options_.ranks; }

  void TakeMaster(int32_t rank, const v1::ScriptMaster& master);
  void TakePosition(int32_t rank, const v1::ScriptPosition& position, base::Instant now);
  void TakeDigest(int32_t rank, const v1::ScriptDigest& digest, base::Instant now);
  void TakeWish(int64_t step);
  void TakeAnswer(int32_t rank, int64_t step, int64_t total_steps, base::Instant now);
  void TakeEnd(int32_t rank);
  std::string DescribeDifference() const;
  void Commit(int64_t total_steps, base::Instant now);
  Sum& SumAt(int64_t step);
  bool Known(int64_t step) const;

  v1::ScriptDecision Decision() const;
  v1::ScriptDecision Master() const;
  v1::ScriptDecision Agreement() const;
  v1::ScriptDecision JobDigest(int64_t step) const;
  void Decide(v1::ScriptDecision decision) { decisions_.push_back(std::move(decision)); }

  const Options options_;
  int64_t generation_ = 0;
  std::optional<v1::ScriptMaster> master_;
  std::map<int32_t, v1::ScriptPosition> positions_;  // by rank
  std::optional<v1::ScriptPosition> agreed_;
  std::string difference_;
  std::map<int64_t, Sum> sums_;  // by step
  int64_t told_step_ = 0;        // the highest in any word
  std::optional<Checkpoint> preparing_;
  std::deque<v1::ScriptDecision> commits_;  // the latest few
  int64_t committed_step_ = -1;
  base::Instant saved_at_{};  // the last one, or the beginning
  std::optional<int64_t> stop_step_;
  bool gave_up_stop_ = false;
  bool stop_wished_ = false;  // before the positions were agreed
  Ranks ended_;
  std::vector<v1::ScriptDecision> decisions_;
};

}  // namespace hetero::head
