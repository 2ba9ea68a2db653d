#pragma once

#include <string>
#include <vector>

#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {

// The three ranks of MakeJob() run scripts, which save by themselves.
inline api::HeteroTrainingJob MakeScriptJob() {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.training.script = api::Script{.command = {"python3", "train.py"}};
  job.spec.training.checkpoint = api::Checkpoint{.uri = "file:///ck"};
  job.spec.run_policy.max_restarts = 2;
  job.spec.run_policy.stop_grace_seconds = 30;
  return job;
}

inline v1::ScriptWord WordOf(int64_t generation) {
  v1::ScriptWord word;
  word.set_generation(generation);
  return word;
}

inline v1::ScriptWord PositionWord(int64_t generation, int64_t step, uint64_t digest = 0,
                                   bool proven = true) {
  v1::ScriptWord word = WordOf(generation);
  word.mutable_position()->set_step(step);
  word.mutable_position()->set_digest_low(digest);
  word.mutable_position()->set_proven(proven);
  return word;
}

inline v1::ScriptWord DigestWord(int64_t generation, int64_t step, uint64_t high, uint64_t low) {
  v1::ScriptWord word = WordOf(generation);
  word.mutable_digest()->set_step(step);
  word.mutable_digest()->set_high(high);
  word.mutable_digest()->set_low(low);
  return word;
}

inline v1::ScriptWord WantDigestWord(int64_t generation, int64_t step) {
  v1::ScriptWord word = WordOf(generation);
  word.set_want_digest(step);
  return word;
}

inline v1::ScriptWord AnswerWord(int64_t generation, int64_t step) {
  v1::ScriptWord word = WordOf(generation);
  word.set_checkpoint_answer(step);
  return word;
}

inline v1::ScriptWord MasterWord(int64_t generation, const std::string& host, int32_t port) {
  v1::ScriptWord word = WordOf(generation);
  word.mutable_master()->set_host(host);
  word.mutable_master()->set_port(port);
  return word;
}

inline v1::ScriptWord StopWishWord(int64_t generation) {
  v1::ScriptWord word = WordOf(generation);
  word.set_want_checkpoint(true);
  return word;
}

inline v1::ScriptWord EndedWord(int64_t generation) {
  v1::ScriptWord word = WordOf(generation);
  word.set_ended(true);
  return word;
}

// "agree 7", "digest 8 = 1:2", "digest 8 unproven", "want 8", "prepare 9", "commit 9",
// "commit 9 stop", "ended"; each of generation 1 unless it says "g2 ".
inline std::string Describe(const v1::ScriptDecision& decision) {
  const std::string generation =
      decision.generation() == 1 ? "" : "g" + std::to_string(decision.generation()) + " ";
  const auto number = [](auto value) { return std::to_string(value); };
  switch (decision.decision_case()) {
    case v1::ScriptDecision::kPositionsAgree:
      return generation + "agree " + number(decision.positions_agree().step());
    case v1::ScriptDecision::kWantDigest:
      return generation + "want " + number(decision.want_digest());
    case v1::ScriptDecision::kJobDigest: {
      const v1::ScriptDecision::JobDigest& digest = decision.job_digest();
      const std::string text = generation + "digest " + number(digest.step());
      if (!digest.proven()) return text + " unproven";
      return text + " = " + number(digest.high()) + ":" + number(digest.low());
    }
    case v1::ScriptDecision::kPrepareCheckpoint:
      return generation + "prepare " + number(decision.prepare_checkpoint());
    case v1::ScriptDecision::kCommitCheckpoint:
      return generation + "commit " + number(decision.commit_checkpoint().step()) +
             (decision.commit_checkpoint().stop() ? " stop" : "");
    case v1::ScriptDecision::kAllEnded:
      return generation + "ended";
    case v1::ScriptDecision::kMaster:
      return generation + "master " + decision.master().host() + " " +
             number(decision.master().port());
    case v1::ScriptDecision::DECISION_NOT_SET:
      break;
  }
  return generation + "nothing";
}

inline std::vector<std::string> Describe(const std::vector<v1::ScriptDecision>& decisions) {
  std::vector<std::string> all;
  for (const v1::ScriptDecision& decision : decisions) all.push_back(Describe(decision));
  return all;
}

// What the stream is told, in order.
inline std::vector<std::string> ToldTo(StreamId stream, const std::vector<Action>& actions) {
  std::vector<std::string> told;
  for (const Send& send : Only<Send>(actions)) {
    if (send.stream != stream || !send.message.has_script_decision()) continue;
    told.push_back(Describe(send.message.script_decision()));
  }
  return told;
}

}  // namespace hetero::head
