#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/version.h"
#include "runtime/head/state.h"
#include "runtime/head/verdict.h"

namespace hetero::head {
namespace {

constexpr int kNamedBadSamples = 5;

void AddCounters(const v1::Counters& from, v1::Counters& to) {
  to.set_batches(to.batches() + from.batches());
  to.set_samples(to.samples() + from.samples());
  to.set_bytes(to.bytes() + from.bytes());
  to.set_cpu_seconds(to.cpu_seconds() + from.cpu_seconds());
  to.set_busy_seconds(to.busy_seconds() + from.busy_seconds());
  to.set_peak_rss_bytes(std::max(to.peak_rss_bytes(), from.peak_rss_bytes()));
}

Refuse MakeRefusal(StreamId stream, std::string reason, bool superseded) {
  Refuse refusal{.stream = stream};
  refusal.refused.set_reason(std::move(reason));
  refusal.refused.set_superseded(superseded);
  return refusal;
}

}  // namespace

void State::On(const HelloReceived& event) {
  if (streams_.contains(event.stream)) return;
  const v1::Identity& identity = event.hello.identity();
  const absl::StatusOr<const RolePlan::Role*> role = plan_.Find(identity);
  if (!role.ok()) {
    AddNote(true, absl::StrCat("refused: ", role.status().message()));
    actions_.push_back(MakeRefusal(event.stream, std::string(role.status().message()), false));
    return;
  }
  // Two versions might compute different batches from one ticket, and no digest would tell which.
  if (const std::string& version = event.hello.version();
      !version.empty() && version != base::kVersion) {
    const std::string reason = absl::StrCat(
        MemberName(**role, identity.index(), identity.local_rank()), " runs version ", version,
        ", the head ", base::kVersion, ": give every role of the job an image of the same version");
    AddNote(true, absl::StrCat("refused: ", reason));
    actions_.push_back(MakeRefusal(event.stream, reason, false));
    return;
  }
  MemberRecord& member =
      record_.members[{identity.role(), identity.index(), identity.local_rank()}];
  if (Admit(event, **role, member)) Greet(member);
}

bool State::Admit(const HelloReceived& event, const RolePlan::Role& role, MemberRecord& member) {
  const v1::Identity& identity = event.hello.identity();
  const bool first_time = member.name.empty();
  if (!first_time) {
    const int64_t known = member.hello.identity().incarnation();
    if (identity.incarnation() < known) {
      actions_.push_back(MakeRefusal(
          event.stream, absl::StrCat("a newer process of ", member.name, " has joined"), true));
      return false;
    }
    if (identity.incarnation() > known) {
      Replace(member, identity);
    } else if (member.connected()) {
      streams_.erase(*member.stream);
      actions_.push_back(CloseStream{*member.stream});
    }
  }
  if (first_time) {
    member.name = MemberName(role, identity.index(), identity.local_rank());
    if (role.trainer) {
      member.rank = role.first_rank + identity.index() * role.local_ranks + identity.local_rank();
    }
    AddNote(false, "joined", member.name);
  }
  member.hello = event.hello;
  member.stream = event.stream;
  streams_[event.stream] = {identity.role(), identity.index(), identity.local_rank()};
  Return(member, "connected again");
  return true;
}

void State::Replace(MemberRecord& member, const v1::Identity& newer) {
  if (member.connected()) {
    streams_.erase(*member.stream);
    actions_.push_back(MakeRefusal(
        *member.stream, absl::StrCat("a newer process of ", member.name, " has joined"), true));
    member.stream.reset();
  }
  AddCounters(member.counters, member.earlier);
  member.counters.Clear();
  // One that left when it was not needed comes back as a new process: no fault.
  const bool left = !member.trainer() && member.finished && member.finished->ok();
  if (!left) ++member.restarts;
  member.finished.reset();
  if (!ending_ && !left && !member.open_fault) {
    record_.faults.push_back({.time = now_.wall,
                              .since = now_.steady,
                              .what = absl::StrCat(member.name, " was replaced by a new process")});
  }
  if (options_.input_only && member.trainer() && record_.generation > 0) {
    Fail(member.name, "its process was replaced by a new one after reading had begun");
  }
  member.broken_generation = 0;
  Return(member, "replaced by a new process");
}

// The first message of a stream is always Welcome; what else the member has missed follows.
void State::Greet(MemberRecord& member) {
  v1::HeadMessage welcome;
  welcome.mutable_welcome()->set_job_json(options_.job_json);
  welcome.mutable_welcome()->set_member_timeout_seconds(
      record_.job.spec.run_policy.member_timeout_seconds);
  welcome.mutable_welcome()->set_input_only(options_.input_only);
  actions_.push_back(Send{*member.stream, std::move(welcome)});
  if (ending_) {
    SendStop(member, "the job is ending");
    return;
  }
  if (record_.generation == 0) return;
  v1::HeadMessage message;
  if (member.trainer() && !PlaysInGeneration(member)) return;  // the next one is its first
  if (member.hello.generation() < record_.generation) {
    *message.mutable_generation() = CurrentGeneration();
  } else if (member.trainer()) {
    *message.mutable_roster() = CurrentRoster();
  } else {
    return;
  }
  actions_.push_back(Send{*member.stream, std::move(message)});
}

void State::On(const HeartbeatReceived& event) {
  MemberRecord* member = FindStream(event.stream);
  if (member == nullptr) return;
  Return(*member, "heard again");
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

void State::On(const FinishedReceived& event) {
  MemberRecord* member = FindStream(event.stream);
  if (member == nullptr) return;
  Return(*member, "heard again");
  if (event.finished.has_last()) TakeHeartbeat(*member, event.finished.last());
  const bool repeated = member->finished.has_value();
  member->finished = event.finished;
  v1::HeadMessage ack;
  ack.mutable_finish_ack();
  actions_.push_back(Send{event.stream, std::move(ack)});
  if (repeated || ending_) return;

  const v1::Finished& finished = event.finished;
  AddNote(!finished.ok() && !finished.stopped(), absl::StrCat("finished ", finished.message()),
          member->name);
  if (!member->trainer()) {
    if (!finished.ok() && !finished.stopped()) {
      record_.faults.push_back(
          {.time = now_.wall,
           .since = now_.steady,
           .what = absl::StrCat(member->name, " failed: ", finished.message())});
    }
  } else if (finished.stopped()) {
    BeginEnding(v1::JobStatus::STOPPED, absl::StrCat(member->name, " was asked to stop"));
  } else if (!finished.ok()) {
    // Peers of a dead rank fail in their collectives before the head misses the dead one.
    for (const auto& [key, peer] : record_.members) {
      if (peer.trainer() && !peer.connected() && !peer.finished) {
        Fail(peer.name, absl::StrCat("its connection to the head broke without a last word (then ",
                                     member->name, ": ", finished.message(), ")"));
        return;
      }
    }
    failed_by_last_word_ = member->name;
    Fail(member->name, finished.message());
  }
}

void State::On(const StreamClosed& event) {
  MemberRecord* member = FindStream(event.stream);
  streams_.erase(event.stream);
  if (member == nullptr) return;
  member->stream.reset();
  member->disconnected_at = now_.steady;
  member->process_gone = event.process_gone;
  if (event.process_gone) Lose(*member, "its process ended");
}

void State::CheckSilence(MemberRecord& member) {
  if (!member.registered()) return;
  const auto over = [this](base::Instant since, base::Duration limit) {
    return now_.steady - since > limit;
  };
  const double timeout = base::ToSeconds(member_timeout());
  if (member.connected()) {
    if (!over(member.last_seen, member_timeout())) return;
    Lose(member, absl::StrFormat("silent for more than %g s (spec.runPolicy.memberTimeoutSeconds)",
                                 timeout));
  } else if (!member.trainer()) {
    if (over(member.disconnected_at, std::min(options_.redial_grace, member_timeout()))) {
      Lose(member, "its connection to the head broke");
    }
  } else if (over(member.disconnected_at, member_timeout())) {
    Lose(member, absl::StrFormat("its connection to the head broke and it was not back within %g s "
                                 "(spec.runPolicy.memberTimeoutSeconds)",
                                 timeout));
  }
}

void State::Lose(MemberRecord& member, const std::string& why) {
  if (member.finished || member.lost) return;
  member.lost = true;
  member.lost_at = now_.steady;
  if (ending_) return;
  AddNote(true, absl::StrCat("lost: ", why), member.name);
  member.open_fault = record_.faults.size();
  record_.faults.push_back({.time = now_.wall,
                            .since = now_.steady,
                            .what = absl::StrCat(member.name, " was lost: ", why)});
  // Nobody holds the place in the stream of a rank that only reads.
  if (options_.input_only && member.trainer() && record_.generation > 0) Fail(member.name, why);
}

// Before the first generation CheckStartupDeadline() looks after those who are missing.
void State::CheckReplacement(const MemberRecord& member) {
  if (ending_ || !member.trainer() || !member.lost || record_.generation == 0) return;
  const int32_t seconds = record_.job.spec.run_policy.startup_deadline_seconds;
  if (now_.steady - member.lost_at <= std::chrono::seconds(seconds)) return;
  const std::string what =
      member.open_fault ? record_.faults[*member.open_fault].what : member.name + " was lost";
  Fail(member.name, absl::StrCat(what,
                                 "; no new process took its place within "
                                 "spec.runPolicy.startupDeadlineSeconds (",
                                 seconds, " s)"));
}

void State::Return(MemberRecord& member, const std::string& how) {
  member.last_seen = now_.steady;
  member.lost = false;
  member.process_gone = false;
  if (!member.open_fault) return;
  Fault& fault = record_.faults[*member.open_fault];
  fault.recovery_seconds = base::ToSeconds(now_.steady - fault.since);
  absl::StrAppend(&fault.what, "; ", how);
  AddNote(false, how, member.name);
  member.open_fault.reset();
}

void State::TakeHeartbeat(MemberRecord& member, const v1::Heartbeat& heartbeat) {
  if (heartbeat.has_counters()) member.counters = heartbeat.counters();
  if (heartbeat.has_progress()) {
    member.progress = heartbeat.progress();
    if (member.trainer() && member.progress.has_phases()) {
      member.time_line.Add({.step = member.progress.step(),
                            .seconds = member.progress.train_seconds(),
                            .phases = MakePhases(member.progress.phases())});
    }
  }
  member.broken_generation = heartbeat.broken_generation();
  for (const v1::LossPoint& point : heartbeat.losses()) record_.loss_curve.Add(point);
  for (const v1::EvaluationResult& result : heartbeat.evaluations()) {
    const bool known = std::any_of(record_.evaluations.begin(), record_.evaluations.end(),
                                   [&](const auto& e) { return e.step() == result.step(); });
    if (!known) record_.evaluations.push_back(result);
  }
  for (const v1::FaultReport& report : heartbeat.faults()) {
    const base::WallTime time{std::chrono::duration_cast<base::WallTime::duration>(
        std::chrono::nanoseconds(report.unix_ns()))};
    const bool known =
        std::any_of(record_.faults.begin(), record_.faults.end(),
                    [&](const Fault& f) { return f.time == time && f.what == report.what(); });
    if (known) continue;
    Fault fault{.time = time, .since = now_.steady, .what = report.what()};
    if (report.recovery_seconds() > 0) fault.recovery_seconds = report.recovery_seconds();
    record_.faults.push_back(std::move(fault));
  }
  if (heartbeat.placement_size() > 0) {
    record_.placement.assign(heartbeat.placement().begin(), heartbeat.placement().end());
  }
  TakeBadSamples(member, heartbeat);
}

void State::TakeBadSamples(MemberRecord& member, const v1::Heartbeat& heartbeat) {
  for (const v1::BadSampleReport& sample : heartbeat.bad_samples()) record_.bad_samples.Add(sample);
  const api::Dataset& dataset = record_.job.spec.dataset;
  const auto check = [&](int64_t count, int32_t limit, bool validation, const char* field) {
    if (count <= limit) return;
    Fail(member.name,
         absl::StrCat(count, " bad samples, more than ", field, " (", limit,
                      ") allows: ", record_.bad_samples.Describe(validation, kNamedBadSamples),
                      "; repair the dataset or raise the limit"));
  };
  check(record_.bad_samples.training(), dataset.max_bad_samples, false,
        "spec.dataset.maxBadSamples");
  if (dataset.validation) {
    check(record_.bad_samples.validation(), dataset.validation->max_bad_samples, true,
          "spec.dataset.validation.maxBadSamples");
  }
}

MemberRecord* State::FindStream(StreamId stream) {
  const auto key = streams_.find(stream);
  if (key == streams_.end()) return nullptr;
  return &record_.members.at(key->second);
}

v1::Roster State::CurrentRoster() const {
  v1::Roster roster;
  for (const RolePlan::Role& role : plan_.roles()) {
    if (role.trainer) continue;
    for (int32_t index = 0; index < role.limit; ++index) {
      const auto member = record_.members.find({role.name, index, 0});
      if (member == record_.members.end() || !member->second.registered()) continue;
      v1::CpuWorker* worker = roster.add_cpu_workers();
      worker->set_role(role.name);
      worker->set_index(index);
      worker->set_address(member->second.hello.address());
      worker->set_incarnation(member->second.hello.identity().incarnation());
    }
  }
  return roster;
}

v1::Generation State::CurrentGeneration() const {
  v1::Generation generation;
  generation.set_number(record_.generation);
  *generation.mutable_cpu_workers() = CurrentRoster().cpu_workers();
  for (size_t rank = 0; rank < record_.ranks.size(); ++rank) {
    const MemberKey& key = record_.ranks[rank];
    v1::Rank* entry = generation.add_ranks();
    entry->set_rank(static_cast<int32_t>(rank));
    entry->set_role(key.role);
    entry->set_index(key.index);
    entry->set_local_rank(key.local_rank);
    const auto member = record_.members.find(key);
    if (member != record_.members.end()) entry->set_address(member->second.hello.address());
  }
  return generation;
}

}  // namespace hetero::head
