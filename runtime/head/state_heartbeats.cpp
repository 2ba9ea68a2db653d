// What State makes of a heartbeat.
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "runtime/head/heartbeat_record.h"
#include "runtime/head/state.h"

namespace hetero::head {
namespace {

// Of a trainer: what somebody may wait for who is not to wait for the next Tick.
bool BringsNews(const v1::Heartbeat& heartbeat, const MemberRecord& member) {
  if (heartbeat.broken_generation() != member.broken_generation) return true;
  if (heartbeat.has_script_failure()) return true;
  if (!heartbeat.has_progress()) return false;
  const v1::Progress& before = member.progress;
  const v1::Progress& now = heartbeat.progress();
  return now.checkpoint_step() != before.checkpoint_step() ||
         now.checkpoint_problem() != before.checkpoint_problem() ||
         (now.step() > 0) != (before.step() > 0);
}

}  // namespace

void State::On(const HeartbeatReceived& event) {
  MemberRecord* member = members_.Find(event.stream);
  if (member == nullptr) return;
  // Of a thousand members a thousand words a second come, and to look at all of them for each would
  // take more than a core. What the words say together the next Tick finds.
  const bool took_part = member->takes_part(), was_ending = ending_.begun();
  const bool news = BringsNews(event.heartbeat, *member);
  const absl::Cleanup judge = [&] {
    if (member->takes_part() != took_part || ending_.begun() != was_ending) return;
    effect_ = news ? Effect::kNotWhoTakesPart : Effect::kNone;
  };
  members_.Hear(*member, now_);
  if (!member->finished) {
    TakeHeartbeat(*member, event.heartbeat);
    return;
  }
  // The last word held the final totals; what comes after it was taken before.
  v1::Heartbeat lists = event.heartbeat;
  lists.clear_counters();
  lists.clear_progress();
  TakeHeartbeat(*member, lists);
}

void State::TakeHeartbeat(MemberRecord& member, const v1::Heartbeat& heartbeat) {
  RecordHeartbeat(heartbeat, member, now_, record_);
  if (heartbeat.has_script_failure()) TakeScriptFailure(member, heartbeat.script_failure());
  const std::string too_many = TooManyBadSamples(record_);
  if (!too_many.empty()) ending_.Fail(member.name, too_many, now_.steady);
  if (!record_.irreproducible.empty() && record_.job.spec.verify == api::Verification::kStrict) {
    ending_.Fail(member.name,
                 absl::StrCat(record_.irreproducible, "; spec.verify: Warn lets such jobs go on"),
                 now_.steady);
  }
}

}  // namespace hetero::head
