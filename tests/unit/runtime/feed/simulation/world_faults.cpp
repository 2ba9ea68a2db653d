// What happens to a world's workers and network.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "simulation/world.h"

namespace hetero::feed::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::Duration kFirstRedial = milliseconds(50);  // as TicketClient's
constexpr base::Duration kLongestRedial = milliseconds(1000);
constexpr base::Duration kKeepalive = seconds(15);  // until gRPC gives a silent connection up
constexpr base::Duration kFaultStep = milliseconds(100);

}  // namespace

void World::StartWorker(int index) {
  const auto worker = static_cast<size_t>(index);
  workers_[worker]->Start();
  if (timeline_.tracing()) timeline_.Trace(absl::StrCat("worker ", index, " starts"));
  if (control_ != nullptr) {
    return control_->Start(control_->Worker(worker), workers_[worker]->life());
  }
  for (size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (dialled(rank, worker).id == 0) AddToRoster(rank, worker);
  }
}

void World::AddToRoster(size_t rank, size_t worker, int64_t incarnation) {
  const ProducerId id = next_id_++;
  Dialled& state = dialled(rank, worker);
  state = {.id = id, .incarnation = incarnation, .redial_due = state.redial_due};
  worker_of_[id] = worker;
  Trainer& trainer = *trainers_[rank];
  // All are added, and then dialled in the rank's order, as WorkerLinks does it.
  const size_t count = workers_.size();
  const auto first =
      static_cast<size_t>(Window::StartOf(static_cast<int32_t>(rank)) * static_cast<double>(count));
  const auto turn = static_cast<int64_t>((worker + count - first) % count);
  timeline_.After(microseconds(1), [this, &trainer, id, rank, worker, turn] {
    trainer.Run(&timeline_, [this, &trainer, id, rank, worker, turn] {
      trainer.Apply(Window::WorkerAdded{id});
      timeline_.After(microseconds(turn), [this, id, rank, worker] {
        if (dialled(rank, worker).id == id) Dial(rank, worker);
      });
    });
  });
}

void World::RemoveFromRoster(size_t rank, size_t worker) {
  const ProducerId id = std::exchange(dialled(rank, worker).id, 0);
  if (id == 0) return;
  worker_of_.erase(id);
  link(rank, worker).Break();
  Worker& peer = *workers_[worker];
  peer.Run(&timeline_, [&peer, rank] { peer.CancelAll(static_cast<int32_t>(rank)); });
  Trainer& trainer = *trainers_[rank];
  timeline_.After(microseconds(1), [this, &trainer, id] {
    trainer.Run(&timeline_, [&trainer, id] { trainer.Apply(Window::WorkerRemoved{id}); });
  });
}

void World::Dial(size_t rank, size_t worker) {
  Link& line = link(rank, worker);
  Worker& peer = *workers_[worker];
  if (dialled(rank, worker).id == 0 || line.connection() != 0) return;
  if (!peer.alive() || line.cut()) return DialLater(rank, worker);
  const int64_t connection = line.Connect();
  const int64_t life = peer.life();
  timeline_.After(2 * options_.weather.delay, [=, this, &line, &peer] {
    peer.Run(&timeline_, [=, this, &line, &peer] {
      if (line.connection() != connection) return;
      if (peer.life() != life) return Break(rank, worker, connection, microseconds(1));
      Trainer& trainer = *trainers_[rank];
      trainer.Run(&timeline_, [=, this, &line, &trainer] {
        if (line.connection() != connection) return;
        dialled(rank, worker).redials = 0;
        trainer.Apply(Window::StreamUp{dialled(rank, worker).id});
      });
    });
  });
}

void World::DialLater(size_t rank, size_t worker) {
  Dialled& state = dialled(rank, worker);
  if (std::exchange(state.redial_due, true)) return;
  const base::Duration wait =
      std::min(kLongestRedial, kFirstRedial * (int64_t{1} << std::min<int64_t>(state.redials, 5)));
  ++state.redials;
  timeline_.After(wait, [this, rank, worker] {
    dialled(rank, worker).redial_due = false;
    Dial(rank, worker);
  });
}

void World::Break(size_t rank, size_t worker, int64_t connection, base::Duration noticed_after) {
  Link& line = link(rank, worker);
  if (connection == 0 || line.connection() != connection) return;
  Trainer& trainer = *trainers_[rank];
  timeline_.After(noticed_after, [=, this, &line, &trainer] {
    trainer.Run(&timeline_, [=, this, &line, &trainer] {
      if (line.connection() != connection) return;
      line.Break();
      Worker& peer = *workers_[worker];
      peer.Run(&timeline_, [&peer, rank] { peer.CancelAll(static_cast<int32_t>(rank)); });
      trainer.Apply(Window::StreamDown{dialled(rank, worker).id});
      DialLater(rank, worker);
      TakeWhatIsThere();
    });
  });
}

void World::CrashWorker(int index, std::optional<base::Duration> restart_after) {
  const auto worker = static_cast<size_t>(index);
  if (!workers_[worker]->alive()) return;
  if (timeline_.tracing()) timeline_.Trace(absl::StrCat("worker ", index, " dies"));
  workers_[worker]->Crash();
  if (control_ != nullptr) control_->Die(control_->Worker(worker));
  const bool leaves_roster = control_ == nullptr && dice_.Chance(0.5);
  for (size_t rank = 0; rank < trainers_.size(); ++rank) {
    Link& line = link(rank, worker);
    const base::Duration noticed =
        line.cut() ? kKeepalive : microseconds(dice_.Between(100, 20'000));
    Break(rank, worker, line.connection(), noticed);
    if (!leaves_roster) continue;
    timeline_.After(milliseconds(dice_.Between(1, 1000)), [this, rank, worker] {
      if (!workers_[worker]->alive()) RemoveFromRoster(rank, worker);
    });
  }
  if (restart_after.has_value()) {
    timeline_.After(*restart_after, [this, index, worker] {
      if (!workers_[worker]->alive()) StartWorker(index);
    });
  }
}

void World::FreezeWorker(int index, base::Duration time) {
  const auto worker = static_cast<size_t>(index);
  if (timeline_.tracing()) timeline_.Trace(absl::StrCat("worker ", index, " freezes"));
  workers_[worker]->FreezeUntil(timeline_.now() + time);
  if (control_ != nullptr) control_->Silence(control_->Worker(worker), timeline_.now() + time);
  if (time <= kKeepalive) return;
  for (size_t rank = 0; rank < trainers_.size(); ++rank) {
    Break(rank, worker, link(rank, worker).connection(), kKeepalive);
  }
}

void World::CutWorker(int index, base::Duration time) {
  const auto worker = static_cast<size_t>(index);
  if (timeline_.tracing()) timeline_.Trace(absl::StrCat("worker ", index, " is cut off"));
  if (control_ != nullptr) control_->Silence(control_->Worker(worker), timeline_.now() + time);
  for (size_t rank = 0; rank < trainers_.size(); ++rank) {
    link(rank, worker).CutUntil(timeline_.now() + time);
    if (time > kKeepalive) Break(rank, worker, link(rank, worker).connection(), kKeepalive);
  }
}

void World::WarnOfWorker(int index, base::Duration time) {
  const auto worker = static_cast<size_t>(index);
  if (timeline_.tracing()) timeline_.Trace(absl::StrCat("worker ", index, " is about to go"));
  Turn(worker, /*leaving=*/true);
  timeline_.After(time, [this, worker] { Turn(worker, /*leaving=*/false); });
}

void World::DrainWorker(int index, base::Duration time) {
  const auto worker = static_cast<size_t>(index);
  if (!workers_[worker]->alive()) return;
  const int64_t life = workers_[worker]->life();
  Turn(worker, /*leaving=*/true);
  timeline_.After(time, [this, index, worker, life] {
    if (workers_[worker]->life() != life) return;
    if (control_ != nullptr) control_->Leave(control_->Worker(worker));
    CrashWorker(index, std::nullopt);
    Turn(worker, /*leaving=*/false);
  });
}

void World::Turn(size_t worker, bool leaving) {
  if (control_ != nullptr) return control_->Warn(control_->Worker(worker), leaving);
  for (size_t rank = 0; rank < trainers_.size(); ++rank) TurnAt(rank, worker, leaving);
}

void World::TurnAt(size_t rank, size_t worker, bool leaving) {
  const ProducerId id = dialled(rank, worker).id;
  if (id == 0) return;
  Trainer& trainer = *trainers_[rank];
  timeline_.After(microseconds(1), [this, &trainer, id, leaving] {
    trainer.Run(&timeline_, [&trainer, id, leaving] {
      trainer.Apply(Window::WorkerTurned{id, leaving});
    });
  });
}

void World::EndFaults() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->SetSpeed(1);
    if (!workers_[i]->alive()) StartWorker(static_cast<int>(i));
  }
}

void World::Disturb() {
  if (elapsed() > options_.fault_time) return EndFaults();
  const Weather& weather = options_.weather;
  const auto happens = [&](double per_second) {
    return dice_.Chance(per_second * base::ToSeconds(kFaultStep));
  };
  if (!workers_.empty()) {
    const auto any = [&] {
      return static_cast<int>(dice_.Between(0, static_cast<int64_t>(workers_.size()) - 1));
    };
    if (happens(weather.crash_per_second)) {
      CrashWorker(any(), milliseconds(dice_.Between(100, 3000)));
    }
    if (happens(weather.freeze_per_second)) {
      FreezeWorker(any(), dice_.Time(milliseconds(50), seconds(20)));
    }
    if (happens(weather.cut_per_second))
      CutWorker(any(), dice_.Time(milliseconds(50), seconds(20)));
    if (happens(weather.notice_per_second)) {
      const int leaver = any();
      WarnOfWorker(leaver, dice_.Time(milliseconds(50), seconds(60)));
      if (dice_.Chance(0.5)) CrashWorker(leaver, milliseconds(dice_.Between(100, 3000)));
    }
    if (happens(weather.slow_per_second)) SetSpeed(any(), dice_.Chance(0.5) ? 0.1 : 1);
  }
  if (happens(weather.pause_per_second)) {
    const auto rank = static_cast<size_t>(dice_.Between(0, options_.ranks - 1));
    if (dice_.Chance(0.5)) {
      const base::Instant until = timeline_.now() + dice_.Time(milliseconds(50), seconds(5));
      trainers_[rank]->FreezeUntil(until);
      if (control_ != nullptr) control_->Silence(static_cast<int32_t>(rank), until);
    } else {
      pause_ = dice_.Time(milliseconds(50), seconds(5));
    }
  }
  if (control_ != nullptr) DisturbMembers();
  timeline_.After(kFaultStep, [this] { Disturb(); });
}

void World::DisturbMembers() {
  const Weather& weather = options_.weather;
  const auto happens = [&](double per_second) {
    return dice_.Chance(per_second * base::ToSeconds(kFaultStep));
  };
  const auto count = static_cast<int64_t>(workers_.size());
  for (const int worker : options_.absent) {
    const auto at = static_cast<size_t>(worker);
    if (workers_[at]->life() == 0 && happens(1 / base::ToSeconds(options_.fault_time))) {
      StartWorker(worker);
    }
  }
  if (happens(weather.drain_per_second)) {
    DrainWorker(static_cast<int>(dice_.Between(0, count - 1)),
                dice_.Time(milliseconds(50), seconds(5)));
  }
  if (happens(weather.rank_death_per_second)) {
    KillRank(static_cast<int>(dice_.Between(0, options_.ranks - 1)),
             dice_.Time(milliseconds(50), seconds(5)));
  }
  if (happens(weather.group_break_per_second)) BreakGroup();
  if (happens(weather.head_loss_per_second)) LoseHead(dice_.Time(milliseconds(50), seconds(10)));
}

}  // namespace hetero::feed::simulation
