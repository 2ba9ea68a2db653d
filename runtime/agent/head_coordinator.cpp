#include "runtime/agent/head_coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/thread.h"

namespace hetero::agent {
namespace {

constexpr size_t kMostDigests = 4096;  // of one rank
constexpr size_t kMostTold = 64;       // as many as the head adds up

MasterAddress MasterOf(const v1::ScriptDecision& decision) {
  return {.host = decision.master().host(), .port = decision.master().port()};
}

template <typename Ordered>
void KeepLatest(size_t most, Ordered* ordered) {
  while (ordered->size() > most) ordered->erase(ordered->begin());
}

}  // namespace

HeadCoordinator::~HeadCoordinator() { teller_ = {}; }

void HeadCoordinator::Connect(Job job) {
  const base::MutexLock lock(mutex_);
  job_ = std::move(job);
  teller_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

// Not on the thread that hears the head: a member must not be told anything from its callbacks.
void HeadCoordinator::Run(const std::stop_token& stop) {
  base::SetThreadName("script-words");
  while (true) {
    v1::ScriptWord word;
    std::function<void(const v1::ScriptWord&)> tell;
    {
      const base::MutexLock lock(mutex_);
      const bool there = changed_.Wait(
          mutex_, stop,
          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !unsaid_.empty(); });
      if (!there) return;
      word = std::move(unsaid_.front());
      unsaid_.pop_front();
      tell = job_.tell;
    }
    tell(word);
  }
}

void HeadCoordinator::Say(v1::ScriptWord word) {
  unsaid_.push_back(std::move(word));
  changed_.NotifyAll();
}

v1::ScriptWord HeadCoordinator::Word() const {
  v1::ScriptWord word;
  word.set_generation(talk_.generation);
  return word;
}

v1::ScriptWord HeadCoordinator::MasterWord() const {
  v1::ScriptWord word = Word();
  word.mutable_master()->set_host(talk_.own_master->host);
  word.mutable_master()->set_port(talk_.own_master->port);
  return word;
}

v1::ScriptWord HeadCoordinator::PositionWord() const {
  v1::ScriptWord word = Word();
  v1::ScriptPosition& position = *word.mutable_position();
  position.set_step(talk_.position->step);
  position.set_digest_high(talk_.position->digest.high());
  position.set_digest_low(talk_.position->digest.low());
  position.set_proven(talk_.position->proven);
  return word;
}

v1::ScriptWord HeadCoordinator::DigestWord(int64_t step) const {
  v1::ScriptWord word = Word();
  const job::StreamDigest& own = talk_.own.at(step);
  word.mutable_digest()->set_step(step);
  word.mutable_digest()->set_high(own.high());
  word.mutable_digest()->set_low(own.low());
  word.mutable_digest()->set_saves(DueByRule(step) || talk_.commits.contains(step));
  return word;
}

std::vector<v1::ScriptWord> HeadCoordinator::AllWords() const {
  const base::MutexLock lock(mutex_);
  std::vector<v1::ScriptWord> words;
  if (talk_.generation == 0) return words;
  if (talk_.own_master) words.push_back(MasterWord());
  if (talk_.position) words.push_back(PositionWord());
  for (const int64_t step : talk_.told) {
    if (talk_.own.contains(step)) words.push_back(DigestWord(step));
  }
  for (const int64_t step : talk_.wanted_here) {
    words.push_back(Word());
    words.back().set_want_digest(step);
  }
  if (talk_.preparing) {
    words.push_back(Word());
    words.back().set_checkpoint_answer(*talk_.preparing);
  }
  if (talk_.wants_stop && !talk_.stop_after) {
    words.push_back(Word());
    words.back().set_want_checkpoint(true);
  }
  if (talk_.ended) {
    words.push_back(Word());
    words.back().set_ended(true);
  }
  return words;
}

void HeadCoordinator::OnDecision(const v1::ScriptDecision& decision) {
  const base::MutexLock lock(mutex_);
  if (decision.has_master() && decision.generation() > talk_.generation) early_master_ = decision;
  if (decision.generation() != talk_.generation) return;
  switch (decision.decision_case()) {
    case v1::ScriptDecision::kPositionsAgree:
      talk_.agreed = talk_.position && talk_.position->step == decision.positions_agree().step();
      break;
    case v1::ScriptDecision::kWantDigest:
      if (talk_.own.contains(decision.want_digest())) {
        TellOwn(decision.want_digest());
      } else {
        talk_.wanted_by_head.insert(decision.want_digest());
        KeepLatest(kMostTold, &talk_.wanted_by_head);
      }
      break;
    case v1::ScriptDecision::kJobDigest: {
      const v1::ScriptDecision::JobDigest& told = decision.job_digest();
      std::optional<job::StreamDigest>& digest = talk_.of_job[told.step()];
      if (told.proven()) digest.emplace(told.high(), told.low());
      KeepLatest(kMostTold, &talk_.of_job);
      break;
    }
    case v1::ScriptDecision::kPrepareCheckpoint: {
      // The first step after which this rank has not said already that it does not save.
      talk_.preparing =
          std::max({decision.prepare_checkpoint(), talk_.given, talk_.refused_until + 1});
      talk_.prepared_at = clock_.Now();
      v1::ScriptWord word = Word();
      word.set_checkpoint_answer(*talk_.preparing);
      Say(std::move(word));
      break;
    }
    case v1::ScriptDecision::kCommitCheckpoint:
      talk_.preparing.reset();
      talk_.commits.insert(decision.commit_checkpoint().step());
      KeepLatest(kMostTold, &talk_.commits);
      if (talk_.own.contains(decision.commit_checkpoint().step())) {
        TellOwn(decision.commit_checkpoint().step());
      }
      if (decision.commit_checkpoint().stop() && !talk_.stop_after) {
        talk_.stop_after = decision.commit_checkpoint().step();
      }
      break;
    case v1::ScriptDecision::kAllEnded:
      talk_.all_ended = true;
      break;
    case v1::ScriptDecision::kMaster:
      talk_.master = MasterOf(decision);
      break;
    case v1::ScriptDecision::DECISION_NOT_SET:  // of a newer version
      break;
  }
  changed_.NotifyAll();
}

void HeadCoordinator::BeginGeneration(int64_t number, std::stop_token over) {
  const base::MutexLock lock(mutex_);
  talk_ = {.generation = number, .over = std::move(over)};
  if (early_master_ && early_master_->generation() == number) {
    talk_.master = MasterOf(*std::exchange(early_master_, std::nullopt));
  }
  unsaid_.clear();
  changed_.NotifyAll();
}

void HeadCoordinator::TellMaster(const MasterAddress& master) {
  const base::MutexLock lock(mutex_);
  talk_.own_master = master;
  Say(MasterWord());
}

absl::StatusOr<MasterAddress> HeadCoordinator::AwaitMaster(const std::stop_token& stop,
                                                           base::Duration deadline) {
  const base::MutexLock lock(mutex_);
  WaitFor(stop, deadline,
          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return talk_.master.has_value(); });
  if (talk_.over.stop_requested() || stop.stop_requested()) {
    return absl::AbortedError("interrupted");
  }
  if (talk_.master) return *talk_.master;
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", job_.rank, " has waited ", base::ToSeconds(deadline),
      " s (spec.runPolicy.startupDeadlineSeconds) for the address of rank 0's script"));
}

void HeadCoordinator::AskToStop() {
  const base::MutexLock lock(mutex_);
  if (std::exchange(talk_.wants_stop, true)) return;
  v1::ScriptWord word = Word();
  word.set_want_checkpoint(true);
  Say(std::move(word));
}

void HeadCoordinator::TellEnded() {
  const base::MutexLock lock(mutex_);
  if (std::exchange(talk_.ended, true)) return;
  v1::ScriptWord word = Word();
  word.set_ended(true);
  Say(std::move(word));
}

bool HeadCoordinator::all_ended() const {
  const base::MutexLock lock(mutex_);
  return talk_.all_ended;
}

std::optional<int64_t> HeadCoordinator::stop_after() const {
  const base::MutexLock lock(mutex_);
  return talk_.stop_after;
}

template <typename Condition>
bool HeadCoordinator::WaitFor(const std::stop_token& stop, base::Duration patience,
                              Condition there) {
  std::stop_source either;
  const auto request = [&either] { either.request_stop(); };
  const std::stop_callback on_stop(stop, request);
  const std::stop_callback on_over(talk_.over, request);
  return changed_.WaitUntil(mutex_, clock_.Now() + patience, either.get_token(), there);
}

absl::Status HeadCoordinator::AgreePosition(const Position& position, const std::stop_token& stop,
                                            base::Duration deadline) {
  const base::MutexLock lock(mutex_);
  talk_.position = position;
  talk_.agreed = false;
  talk_.given = position.step;
  talk_.own[position.step] = job::StreamDigest();
  Say(PositionWord());
  const int64_t generation = talk_.generation;
  const bool agreed = WaitFor(
      stop, deadline, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return talk_.agreed; });
  if (talk_.generation != generation || talk_.over.stop_requested()) {
    return absl::AbortedError("the generation is over: the scripts start again");
  }
  if (agreed) return absl::OkStatus();
  if (stop.stop_requested()) return absl::CancelledError("the job stops");
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", job_.rank, " has waited ", base::ToSeconds(deadline),
      " s (spec.runPolicy.startupDeadlineSeconds) for the scripts of the other ranks to say where "
      "they begin; each must open a hetero.Stream and ask for its first batch, or load its state"));
}

bool HeadCoordinator::WaitForCommit(int64_t step, const std::stop_token& stop) {
  if (!talk_.preparing || *talk_.preparing > step) return true;
  const base::Duration left = talk_.prepared_at + kCommitPatience - clock_.Now();
  WaitFor(stop, left, [this, step]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !talk_.preparing || *talk_.preparing > step;
  });
  if (stop.stop_requested() || talk_.over.stop_requested()) return false;
  // The head has given up as well, or is not there.
  if (talk_.preparing && *talk_.preparing <= step) talk_.preparing.reset();
  return true;
}

bool HeadCoordinator::MayGoOn(int64_t step, const std::stop_token& stop) {
  const base::MutexLock lock(mutex_);
  WaitForCommit(step, stop);
  if (talk_.stop_after && step >= *talk_.stop_after) return false;
  talk_.given = std::max(talk_.given, step + 1);
  return true;
}

bool HeadCoordinator::DueByRule(int64_t step) const {
  if (!job_.checkpoint || step <= 0) return false;
  // What goes by the clock the head says.
  const int64_t every =
      job_.checkpoint->usual() ? job_.steps_per_epoch : job_.checkpoint->every_steps.value_or(0);
  return step == job_.total_steps || (every > 0 && step % every == 0);
}

bool HeadCoordinator::CheckpointDue(int64_t step, const std::stop_token& stop) {
  const base::MutexLock lock(mutex_);
  if (DueByRule(step) || talk_.commits.contains(step)) return true;
  if (step <= talk_.refused_until) return false;
  WaitForCommit(step, stop);
  if (talk_.commits.contains(step)) return true;
  talk_.refused_until = std::max(talk_.refused_until, step);
  return false;
}

void HeadCoordinator::TellOwn(int64_t step) {
  talk_.told.insert(step);
  KeepLatest(kMostTold, &talk_.told);
  Say(DigestWord(step));
}

void HeadCoordinator::TellDigest(int64_t step, const job::StreamDigest& own) {
  const base::MutexLock lock(mutex_);
  talk_.own[step] = own;
  KeepLatest(kMostDigests, &talk_.own);
  if (DueByRule(step) || talk_.commits.contains(step) || talk_.wanted_by_head.erase(step) > 0) {
    TellOwn(step);
  }
}

std::optional<job::StreamDigest> HeadCoordinator::JobDigestAt(int64_t step,
                                                              const std::stop_token& stop,
                                                              base::Duration deadline) {
  const base::MutexLock lock(mutex_);
  if (talk_.position && step == talk_.position->step) {
    return talk_.position->proven ? std::optional(talk_.position->digest) : std::nullopt;
  }
  if (!talk_.of_job.contains(step)) {
    talk_.wanted_here.insert(step);
    if (talk_.own.contains(step)) TellOwn(step);
    v1::ScriptWord word = Word();
    word.set_want_digest(step);
    Say(std::move(word));
    WaitFor(stop, deadline, [this, step]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return talk_.of_job.contains(step);
    });
    talk_.wanted_here.erase(step);
  }
  const auto found = talk_.of_job.find(step);
  return found == talk_.of_job.end() ? std::nullopt : found->second;
}

}  // namespace hetero::agent
