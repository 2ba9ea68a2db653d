#include "simulation/control.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/head/history_builder.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::feed::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::Duration kHeadTick = milliseconds(100);  // as head::Server's
constexpr base::Duration kBeatEvery = seconds(1);        // of each member
constexpr int64_t kSamples = 1000;                       // that all members see

api::HeteroTrainingJob JobOf(const Control::Options& options) {
  api::HeteroTrainingJob job = head::MakeJob();
  api::Role cpu = job.spec.roles[1], gpu = job.spec.roles[2];
  cpu.replicas = std::max(1, options.workers / 2);
  cpu.min_replicas = std::max(1, options.workers / 4);
  cpu.max_replicas = options.workers;
  gpu.replicas = options.ranks;
  gpu.gpus_per_replica = 1;
  job.spec.roles = {job.spec.roles[0], cpu, gpu};
  return job;
}

std::shared_ptr<const Roster> ToRoster(
    const google::protobuf::RepeatedPtrField<v1::CpuWorker>& workers) {
  auto roster = std::make_shared<Roster>();
  for (const v1::CpuWorker& worker : workers) {
    roster->push_back({worker.index(), worker.incarnation(), worker.leaving()});
  }
  return roster;
}

}  // namespace

Control::Control(Options options, Callbacks callbacks, Timeline* timeline, Dice* dice)
    : options_(options), callbacks_(std::move(callbacks)), timeline_(timeline), dice_(dice) {
  members_.resize(static_cast<size_t>(options_.ranks + options_.workers));
  BeginHead();
  TickHead();
  Beat();
}

head::Moment Control::Now() const {
  const base::Duration since = timeline_->now() - base::Instant();
  return {timeline_->now(), base::WallTime(seconds(1'700'000'000)) +
                                std::chrono::duration_cast<base::WallTime::duration>(since)};
}

void Control::BeginHead() {
  ++heads_;
  state_ = std::make_unique<head::State>(
      head::State::Options{.job = JobOf(options_),
                           .job_json = "{}",
                           .created = base::WallTime(seconds(1'700'000'000)),
                           .incarnation = heads_,
                           .attempt = {.number = 1, .began = Now().wall},
                           .history = history_},
      Now());
  Tell(head::NoticesReceived{NoticesOf()});
  for (size_t i = 0; i < members_.size(); ++i) DialLater(static_cast<int32_t>(i));
}

void Control::LoseHead(base::Duration time) {
  if (state_ == nullptr) return;
  if (timeline_->tracing()) timeline_->Trace("the head dies");
  history_ = head::BuildHistory(state_->record(), "run", Now());
  state_.reset();
  streams_.clear();
  for (Member& member : members_) member.stream = 0;
  timeline_->After(time, [this] { BeginHead(); });
}

void Control::Start(int32_t member, int64_t incarnation) {
  Member& process = members_[static_cast<size_t>(member)];
  const base::Instant last_arrival = process.last_arrival;
  process = {.incarnation = incarnation,
             .first_step = callbacks_.steps(),
             .last_arrival = last_arrival,
             .dial_due = process.dial_due};
  DialLater(member);
}

void Control::Die(int32_t member) {
  Member& process = members_[static_cast<size_t>(member)];
  process.incarnation = 0;
  const head::StreamId stream = std::exchange(process.stream, 0);
  if (stream == 0) return;
  streams_.erase(stream);
  timeline_->After(microseconds(dice_->Between(100, 20'000)), [this, stream, head = heads_] {
    if (head == heads_ && state_ != nullptr) Tell(head::StreamClosed{.stream = stream});
  });
}

void Control::Leave(int32_t worker) {
  const Member& process = members_[static_cast<size_t>(worker)];
  if (process.stream != 0) {
    v1::Finished word;
    word.set_ok(true);
    Tell(head::FinishedReceived{process.stream, word});
  }
  Die(worker);
}

void Control::Silence(int32_t member, base::Instant until) {
  Member& process = members_[static_cast<size_t>(member)];
  process.silent_until = std::max(process.silent_until, until);
}

void Control::Warn(int32_t worker, bool leaving) {
  const int32_t index = worker - options_.ranks;
  if (leaving) {
    warned_[index] = members_[static_cast<size_t>(worker)].incarnation;
  } else {
    warned_.erase(index);
  }
  Tell(head::NoticesReceived{NoticesOf()});
}

v1::Notices Control::NoticesOf() const {
  v1::Notices notices;
  for (const auto& [index, incarnation] : warned_) {
    v1::Notice* notice = notices.add_notices();
    notice->set_role("cpu");
    notice->set_index(index);
    notice->set_incarnation(incarnation);
  }
  return notices;
}

void Control::ReportBroken(int32_t rank, int64_t generation) {
  members_[static_cast<size_t>(rank)].broken = generation;
}

v1::Hello Control::HelloOf(int32_t member) const {
  const Member& process = members_[static_cast<size_t>(member)];
  const bool rank = IsRank(member);
  v1::Hello hello = head::MakeHello(rank ? "gpu" : "cpu", rank ? member : member - options_.ranks,
                                    0, process.incarnation);
  hello.mutable_identity()->set_attempt(1);
  hello.set_generation(process.generation);
  hello.set_head_incarnation(process.welcomed_by);
  return hello;
}

void Control::DialLater(int32_t member) {
  Member& process = members_[static_cast<size_t>(member)];
  if (std::exchange(process.dial_due, true)) return;
  timeline_->After(milliseconds(dice_->Between(1, 1000)), [this, member] {
    members_[static_cast<size_t>(member)].dial_due = false;
    Dial(member);
  });
}

void Control::Dial(int32_t member) {
  Member& process = members_[static_cast<size_t>(member)];
  if (process.incarnation == 0 || process.stream != 0) return;
  if (state_ == nullptr || timeline_->now() < process.silent_until) return DialLater(member);
  const head::StreamId stream = next_stream_++;
  process.stream = stream;
  process.welcomed_by = heads_;
  streams_[stream] = member;
  Tell(head::HelloReceived{stream, HelloOf(member)});
  Tell(head::ReadyReceived{stream, head::MakeReady(kSamples)});
}

void Control::TickHead() {
  if (state_ != nullptr) Tell(head::Tick{});
  timeline_->After(kHeadTick, [this] { TickHead(); });
}

// The members in turns, each once in kBeatEvery.
void Control::Beat() {
  const size_t share = members_.size() / static_cast<size_t>(kBeatEvery / kHeadTick) + 1;
  for (size_t i = 0; i < share && state_ != nullptr; ++i) {
    const size_t at = next_to_beat_++ % members_.size();
    const Member& process = members_[at];
    if (process.stream == 0 || timeline_->now() < process.silent_until) continue;
    v1::Heartbeat beat;
    if (IsRank(static_cast<int32_t>(at))) {
      beat.mutable_progress()->set_step(callbacks_.steps());
      beat.mutable_progress()->set_first_step(process.first_step);
      beat.set_broken_generation(process.broken);
    }
    Tell(head::HeartbeatReceived{process.stream, beat});
  }
  timeline_->After(kHeadTick, [this] { Beat(); });
}

void Control::Tell(const head::Event& event) {
  if (state_ != nullptr) CarryOut(state_->Apply(event, Now()));
}

void Control::CarryOut(const std::vector<head::Action>& actions) {
  for (const head::Action& action : actions) {
    std::visit([this](const auto& one) { Carry(one); }, action);
  }
}

void Control::Carry(const head::Send& send) {
  if (send.message.has_generation()) {
    const v1::Generation& generation = send.message.generation();
    DeliverGeneration(send.stream, generation.number(), ToRoster(generation.cpu_workers()));
  } else if (send.message.has_roster()) {
    Deliver(send.stream, [this, roster = ToRoster(send.message.roster().cpu_workers())](
                             int32_t rank) { callbacks_.on_roster(rank, roster); });
  } else if (send.message.has_command()) {
    callbacks_.on_violation(
        absl::StrCat("the head: ", send.message.command().reason(), "; ", last_warning_));
  }
}

void Control::Carry(const head::OpenGeneration& open) {
  const auto roster = ToRoster(open.generation.cpu_workers());
  for (const auto* streams : {&open.trainers, &open.workers}) {
    for (const head::StreamId stream : *streams) {
      DeliverGeneration(stream, open.generation.number(), roster);
    }
  }
}

void Control::Carry(const head::BroadcastRoster& broadcast) {
  const auto roster = ToRoster(broadcast.roster.cpu_workers());
  for (const head::StreamId stream : broadcast.streams) {
    Deliver(stream, [this, roster](int32_t rank) { callbacks_.on_roster(rank, roster); });
  }
}

void Control::Carry(const head::Refuse& refuse) {
  if (refuse.refused.superseded()) return;
  callbacks_.on_violation(absl::StrCat("the head refuses a member: ", refuse.refused.reason()));
}

void Control::Carry(const head::CloseStream& close) { streams_.erase(close.stream); }

void Control::Carry(const head::Note& note) {
  if (note.warning) last_warning_ = absl::StrCat(note.member, " ", note.message);
  if (timeline_->tracing())
    timeline_->Trace(absl::StrCat("head: ", note.member, " ", note.message));
}

void Control::Carry(const head::EndJob&) {
  callbacks_.on_violation(absl::StrCat("the head has ended the job; ", last_warning_));
}

void Control::Carry(const head::StepDown&) {
  callbacks_.on_violation("the head steps down, and no other is there");
}

void Control::Deliver(head::StreamId stream, std::function<void(int32_t rank)> arrive) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || !IsRank(found->second)) return;
  const int32_t rank = found->second;
  Member& process = members_[static_cast<size_t>(rank)];
  process.last_arrival = std::max({process.last_arrival, process.silent_until,
                                   timeline_->now() + microseconds(dice_->Between(100, 20'000))});
  timeline_->At(process.last_arrival, [this, rank, stream, arrive = std::move(arrive)] {
    if (members_[static_cast<size_t>(rank)].stream == stream) arrive(rank);
  });
}

void Control::DeliverGeneration(head::StreamId stream, int64_t number,
                                std::shared_ptr<const Roster> roster) {
  Deliver(stream, [this, number, roster = std::move(roster)](int32_t rank) {
    Member& process = members_[static_cast<size_t>(rank)];
    process.generation = number;
    process.broken = 0;
    callbacks_.on_generation(rank, number, roster);
  });
}

}  // namespace hetero::feed::simulation
