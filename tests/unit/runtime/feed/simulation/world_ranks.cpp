// Ranks of a world with a head: rosters, generations, and what dies between them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "simulation/world.h"

namespace hetero::feed::simulation {

using std::chrono::milliseconds;

void World::MakeControl() {
  training_ = false;
  Control::Callbacks callbacks;
  callbacks.on_roster = [this](int32_t rank, std::shared_ptr<const Roster> roster) {
    OnRoster(static_cast<size_t>(rank), std::move(roster));
  };
  callbacks.on_generation = [this](int32_t rank, int64_t number,
                                   std::shared_ptr<const Roster> roster) {
    OnGeneration(static_cast<size_t>(rank), number, std::move(roster));
  };
  callbacks.steps = [this] { return steps_; };
  callbacks.on_violation = [this](const std::string& what) { Violate(what); };
  control_ = std::make_unique<Control>(
      Control::Options{.ranks = options_.ranks,
                       .workers = static_cast<int32_t>(options_.workers.size())},
      std::move(callbacks), &timeline_, &dice_);
  for (int32_t rank = 0; rank < options_.ranks; ++rank) control_->Start(rank, 1);
}

void World::OnRoster(size_t rank, std::shared_ptr<const Roster> roster) {
  trainers_[rank]->Run(
      &timeline_, [this, rank, roster = std::move(roster), incarnation = ranks_[rank].incarnation] {
        Rank& state = ranks_[rank];
        if (!state.alive || state.incarnation != incarnation) return;
        state.roster = roster;
        ApplyRoster(rank);
      });
}

void World::OnGeneration(size_t rank, int64_t generation, std::shared_ptr<const Roster> roster) {
  trainers_[rank]->Run(&timeline_, [this, rank, generation, roster = std::move(roster),
                                    incarnation = ranks_[rank].incarnation] {
    Rank& state = ranks_[rank];
    if (!state.alive || state.incarnation != incarnation) return;
    if (generation <= state.generation) {
      return Violate(absl::StrCat("generation ", generation, " opens after ", state.generation));
    }
    StopTraining();  // what this rank leaves, the others cannot go on with
    state.generation = generation;
    state.roster = roster;
    ApplyRoster(rank);
    const bool complete = std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
      return other.alive && other.generation == generation;
    });
    if (complete) BeginGeneration(generation);
  });
}

// As TicketClient::SetRoster() does it.
void World::ApplyRoster(size_t rank) {
  const std::shared_ptr<const Roster> roster = ranks_[rank].roster;
  if (roster == nullptr || trainers_[rank]->retired()) return;
  std::vector<const RosterEntry*> entries(workers_.size());
  for (const RosterEntry& entry : *roster) entries[static_cast<size_t>(entry.worker)] = &entry;
  for (size_t w = 0; w < workers_.size(); ++w) {
    const Dialled& known = dialled(rank, w);
    if (known.id == 0) continue;
    if (entries[w] == nullptr || entries[w]->incarnation != known.incarnation) {
      RemoveFromRoster(rank, w);
    }
  }
  for (const RosterEntry& entry : *roster) {
    const auto w = static_cast<size_t>(entry.worker);
    if (dialled(rank, w).id == 0) AddToRoster(rank, w, entry.incarnation);
    if (std::exchange(dialled(rank, w).leaving, entry.leaving) != entry.leaving) {
      TurnAt(rank, w, entry.leaving);
    }
  }
}

void World::StopTraining() {
  training_ = false;
  computing_ = false;
  ++stops_;
}

void World::BreakGroup() {
  if (!training_) return;
  if (timeline_.tracing()) timeline_.Trace("the process group breaks");
  StopTraining();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    timeline_.After(
        milliseconds(dice_.Between(1, 500)),
        [this, rank, incarnation = ranks_[rank].incarnation, generation = ranks_[rank].generation] {
          const Rank& state = ranks_[rank];
          if (!state.alive || state.incarnation != incarnation || state.generation != generation) {
            return;
          }
          control_->ReportBroken(static_cast<int32_t>(rank), generation);
        });
  }
}

void World::KillRank(int index, base::Duration restart_after) {
  const auto rank = static_cast<size_t>(index);
  Rank& state = ranks_[rank];
  if (!state.alive) return;
  if (timeline_.tracing()) timeline_.Trace(absl::StrCat("rank ", index, " dies"));
  BreakGroup();
  state.alive = false;
  EndTrainer(rank);
  control_->Die(index);
  timeline_.After(restart_after, [this, rank, index] {
    Rank& next = ranks_[rank];
    next = {.incarnation = next.incarnation + 1, .done = next.done};
    control_->Start(index, next.incarnation);
  });
}

void World::EndTrainer(size_t rank) {
  trainers_[rank]->Retire();
  EndStreams(rank);
  locals_[rank]->Crash();
  locals_[rank]->Start();
}

void World::EndStreams(size_t rank) {
  for (size_t w = 0; w < workers_.size(); ++w) {
    Dialled& state = dialled(rank, w);
    if (state.id == 0) continue;
    worker_of_.erase(state.id);
    link(rank, w).Break();
    Worker& peer = *workers_[w];
    peer.Run(&timeline_, [&peer, rank] { peer.CancelAll(static_cast<int32_t>(rank)); });
    state = {.redial_due = state.redial_due};
  }
}

// Ranks that have not taken the batch of the step to come keep their streams, as RankSession does;
// the others, and those whose process is new, begin them where the job stands.
void World::BeginGeneration(int64_t number) {
  if (timeline_.tracing()) {
    timeline_.Trace(absl::StrCat("generation ", number, " begins at step ", steps_));
  }
  generation_ = number;
  for (size_t rank = 0; rank < trainers_.size(); ++rank) {
    const bool ended = trainers_[rank]->retired();
    if (!ended && !taken_[rank]) continue;
    if (!ended) EndTrainer(rank);
    ranks_[rank].done += trainers_[rank]->digest();
    retired_.push_back(std::move(trainers_[rank]));
    trainers_[rank] = MakeTrainer(static_cast<int32_t>(rank), steps_);
    ApplyRoster(rank);
  }
  std::fill(taken_.begin(), taken_.end(), false);
  missing_ = options_.ranks;
  training_ = true;
  TakeWhatIsThere();
}

}  // namespace hetero::feed::simulation
