#include "runtime/head/history_codec.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/head/history_fit.h"

namespace hetero::head {
namespace {

constexpr int kMaxMembers = 100'000;  // and ranks; the manifest allows no more
constexpr int kMaxList = 10'000;
constexpr int64_t kMaxGeneration = int64_t{1} << 40;
constexpr int64_t kMaxStep = int64_t{1} << 50;
constexpr double kMaxAge = 1e9;  // seconds

absl::Status Wrong(const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the job's history is passed over: ", what,
                   "; the report tells of the time since this head began"));
}

bool Sound(double value) { return std::isfinite(value) && value >= 0; }

// Two of them can be added.
bool SoundCount(int32_t count) { return count >= 0 && count <= kMaxList; }

// A time that a job may take: with more, sums of times would overflow.
bool SoundAge(double seconds) { return Sound(seconds) && seconds < kMaxAge; }

template <typename Integer>
bool NoneNegative(std::initializer_list<Integer> values) {
  for (const Integer value : values) {
    if (value < 0) return false;
  }
  return true;
}

bool Sound(const v1::Counters& counters) {
  return NoneNegative({counters.batches(), counters.samples(), counters.bytes(),
                       counters.peak_rss_bytes(), counters.storage_requests(),
                       counters.storage_retries(), counters.storage_bytes(),
                       counters.storage_throttled()}) &&
         Sound(counters.cpu_seconds()) && Sound(counters.busy_seconds()) &&
         Sound(counters.storage_dollars()) && Sound(counters.produce_seconds()) &&
         Sound(counters.read_seconds()) && Sound(counters.storage_seconds());
}

bool Sound(const v1::RankHistory& rank) {
  for (const float seconds : rank.phases()) {
    if (!Sound(seconds)) return false;
  }
  for (const float seconds : rank.waits()) {
    if (!Sound(seconds)) return false;
  }
  return Sound(rank.train_seconds()) && Sound(rank.data_wait_percent()) &&
         NoneNegative({rank.steps(), rank.samples(), rank.tickets_reissued(),
                       rank.duplicates_dropped(), rank.skipped_steps()});
}

bool Sound(const v1::MemberHistory& member) {
  return NoneNegative({member.index(), member.local_rank(), member.attempt()}) &&
         NoneNegative({member.incarnation(), member.restarts()}) && Sound(member.now()) &&
         Sound(member.earlier()) && Sound(member.rank_now()) && Sound(member.rank_earlier());
}

absl::Status CheckAttempts(const v1::History& history, int32_t attempt) {
  int32_t before = 0;
  double end = 0;
  for (const v1::AttemptHistory& one : history.attempts()) {
    if (one.number() <= before) return Wrong("its attempts are not in order");
    if (!SoundAge(one.begin()) || !SoundAge(one.end()) || one.begin() < end ||
        one.end() < one.begin()) {
      return Wrong(absl::StrCat("attempt ", one.number(), " has times that cannot be"));
    }
    before = one.number();
    end = one.end();
  }
  if (before > attempt) {
    return Wrong(absl::StrCat("it knows attempt ", before, ", and this one is ", attempt));
  }
  return absl::OkStatus();
}

absl::Status Check(const v1::History& history, const std::string& run, int32_t attempt) {
  if (history.run() != run) return Wrong(absl::StrCat("it is of run '", history.run(), "'"));
  if (history.attempts_size() > kMaxList || history.faults_size() > kMaxList ||
      history.members_size() > kMaxMembers || history.roles_size() > kMaxList ||
      history.evaluations_size() > kMaxList || history.losses_size() > kMaxList ||
      history.bad_samples_size() > kMaxList || history.script_failures_size() > kMaxList ||
      history.disruptions_size() > kMaxList || history.findings_size() > kMaxList) {
    return Wrong("a list in it is longer than any job makes it");
  }
  if (!SoundAge(history.elapsed_seconds()) || !Sound(history.startup_seconds()) ||
      !Sound(history.ceiling_samples_per_second()) || !Sound(history.attempts_left_out_seconds()) ||
      history.faults_left_out() < 0 || history.generation() < 0 ||
      history.generation() > kMaxGeneration || history.reached_step() < 0 ||
      history.reached_step() > kMaxStep || !SoundCount(history.script_restarts()) ||
      !SoundCount(history.earlier_script_restarts())) {
    return Wrong("a number in it cannot be");
  }
  for (const v1::FaultHistory& fault : history.faults()) {
    if (fault.unix_ns() < 0 || !Sound(fault.recovery_seconds())) {
      return Wrong("a fault in it has a time that cannot be");
    }
  }
  for (const v1::DisruptionHistory& disruption : history.disruptions()) {
    if (disruption.unix_ns() < 0 || !SoundAge(disruption.checkpoint_seconds()) ||
        disruption.checkpoint_step() < 0 || disruption.checkpoint_step() > kMaxStep) {
      return Wrong("a disruption in it cannot be");
    }
  }
  for (const v1::Finding& finding : history.findings()) {
    if (finding.first_unix_ns() < 0 || !Sound(finding.seconds()) || !Sound(finding.dollars())) {
      return Wrong("a finding in it cannot be");
    }
  }
  const v1::StepsHistory& steps = history.steps();
  if (!NoneNegative({steps.furthest(), steps.redone(), steps.before(), steps.incarnation()}) ||
      std::max({steps.furthest(), steps.redone(), steps.before()}) > kMaxStep) {
    return Wrong("a number of its steps cannot be");
  }
  for (const v1::ScriptFailureHistory& failure : history.script_failures()) {
    if (failure.generation() <= 0 || failure.generation() > kMaxGeneration || failure.step() < 0) {
      return Wrong("a script's failure in it cannot be");
    }
  }
  for (const v1::MemberHistory& member : history.members()) {
    if (!Sound(member)) {
      return Wrong(absl::StrCat("a number of ", member.role(), "-", member.index(), " cannot be"));
    }
  }
  for (const v1::RoleHistory& role : history.roles()) {
    if (!Sound(role.sum()) || !Sound(role.living())) {
      return Wrong(absl::StrCat("a number of role ", role.role(), " cannot be"));
    }
  }
  return CheckAttempts(history, attempt);
}

}  // namespace

std::string EncodeHistory(v1::History history, size_t limit) {
  FitHistory(limit / 4 * 3, history);  // base64 makes four bytes of three
  return absl::Base64Escape(history.SerializeAsString());
}

absl::StatusOr<v1::History> DecodeHistory(std::string_view text, const std::string& run,
                                          int32_t attempt) {
  if (text.size() > kMaxHistoryFile) {
    return Wrong(absl::StrCat("it has ", text.size(), " bytes, more than ", kMaxHistoryFile));
  }
  std::string bytes;
  v1::History history;
  if (!absl::Base64Unescape(absl::string_view(text.data(), text.size()), &bytes) ||
      !history.ParseFromString(bytes)) {
    return Wrong("it is no text that a head wrote");
  }
  HETERO_RETURN_IF_ERROR(Check(history, run, attempt));
  return history;
}

}  // namespace hetero::head
