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
  for (size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (dialled(rank, worker).id == 0) AddToRoster(rank, worker);
  }
}

void World::AddToRoster(size_t rank, size_t worker) {
  const ProducerId id = next_id_++;
  dialled(rank, worker) = {.id = id};
  Trainer& trainer = *trainers_[rank];
  timeline_.After(microseconds(1), [this, &trainer, id, rank, worker] {
    trainer.Run(&timeline_, [this, &trainer, id, rank, worker] {
      trainer.Apply(Window::WorkerAdded{id});
      if (dialled(rank, worker).id == id) Dial(rank, worker);
    });
  });
}

void World::RemoveFromRoster(size_t rank, size_t worker) {
  const ProducerId id = std::exchange(dialled(rank, worker).id, 0);
  if (id == 0) return;
  link(rank, worker).Break();
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
  const bool leaves_roster = dice_.Chance(0.5);
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
  if (time <= kKeepalive) return;
  for (size_t rank = 0; rank < trainers_.size(); ++rank) {
    Break(rank, worker, link(rank, worker).connection(), kKeepalive);
  }
}

void World::CutWorker(int index, base::Duration time) {
  const auto worker = static_cast<size_t>(index);
  if (timeline_.tracing()) timeline_.Trace(absl::StrCat("worker ", index, " is cut off"));
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

void World::Turn(size_t worker, bool leaving) {
  for (size_t rank = 0; rank < trainers_.size(); ++rank) {
    const ProducerId id = dialled(rank, worker).id;
    if (id == 0) continue;
    Trainer& trainer = *trainers_[rank];
    timeline_.After(microseconds(1), [this, &trainer, id, leaving] {
      trainer.Run(&timeline_, [&trainer, id, leaving] {
        trainer.Apply(Window::WorkerTurned{id, leaving});
      });
    });
  }
}

void World::Disturb() {
  const Weather& weather = options_.weather;
  const auto happens = [&](double per_second) {
    return dice_.Chance(per_second * base::ToSeconds(kFaultStep));
  };
  if (elapsed() > options_.fault_time) {
    for (size_t i = 0; i < workers_.size(); ++i) {
      workers_[i]->SetSpeed(1);
      if (!workers_[i]->alive()) StartWorker(static_cast<int>(i));
    }
    return;
  }
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
      trainers_[rank]->FreezeUntil(timeline_.now() + dice_.Time(milliseconds(50), seconds(5)));
    } else {
      pause_ = dice_.Time(milliseconds(50), seconds(5));
    }
  }
  timeline_.After(kFaultStep, [this] { Disturb(); });
}

World::Options World::Draw(uint64_t seed, bool tracing) {
  Dice dice(seed ^ 0xA5A5A5A5);
  const auto odds = [&dice](double most) { return dice.Chance(0.5) ? 0 : most * dice.Fraction(); };
  Options options;
  options.seed = seed;
  options.tracing = tracing;
  options.ranks = static_cast<int32_t>(dice.Between(1, 3));
  options.batch_size = dice.Between(1, 6);
  options.samples = dice.Between(20, 80) * options.ranks * options.batch_size + dice.Between(0, 5);
  options.epochs = dice.Between(1, 2);
  options.window = dice.Between(2, 40);
  options.sizes_known = dice.Chance(0.7);
  options.compute = dice.Time(microseconds(100), milliseconds(200));
  const int64_t workers = dice.Between(0, 6);
  for (int64_t i = 0; i < workers; ++i) {
    options.workers.push_back({.service = dice.Time(milliseconds(1), milliseconds(400)),
                               .spread = dice.Fraction() * 0.9,
                               .threads = static_cast<int>(dice.Between(1, 3))});
    if (dice.Chance(0.1)) options.absent.push_back(static_cast<int>(i));
  }
  if (workers == 0 || dice.Chance(0.5)) {
    options.local = {.service = dice.Time(milliseconds(5), milliseconds(500))};
    if (dice.Chance(0.5)) options.local_mode = Window::Local::kShares;
  }
  options.weather = {.delay = dice.Time(microseconds(20), milliseconds(100)),
                     .jitter = dice.Time(microseconds(1), milliseconds(50)),
                     .reorder = odds(0.2),
                     .duplicate = odds(0.2),
                     .lose = odds(0.02),
                     .late_after_cut = odds(1),
                     .fail_ticket = odds(0.02),
                     .crash_per_second = odds(0.5),
                     .freeze_per_second = odds(0.5),
                     .slow_per_second = odds(0.3),
                     .cut_per_second = odds(0.2),
                     .pause_per_second = odds(0.3),
                     .notice_per_second = odds(0.3)};
  options.fault_time = seconds(dice.Between(1, 40));
  return options;
}

}  // namespace hetero::feed::simulation
