#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulation/control.h"
#include "simulation/link.h"
#include "simulation/trainer.h"
#include "simulation/worker.h"

namespace hetero::feed::simulation {

// A job's data plane in virtual time: ranks in lockstep, CPU workers, the network between them, and
// faults. With a head, that one says who takes part, and ranks may die: the others wait for the
// next generation, and what was not done by all is done again. The same options give the same run,
// to the nanosecond.
class World {
 public:
  struct Options {
    uint64_t seed = 1;
    int32_t ranks = 1;
    int64_t samples = 400;
    int64_t batch_size = 4;
    int64_t epochs = 1;
    int64_t window = 16;  // batches that each rank's byte budget holds
    bool sizes_known = true;
    base::Duration compute = std::chrono::milliseconds(10);  // of a step
    std::vector<Worker::Options> workers;
    std::vector<int> absent;  // workers that StartWorker() brings in later
    bool head = false;        // otherwise all ranks see at once which workers there are
    std::optional<Worker::Options> local;  // each rank's own cores; absent: they serve nothing
    Window::Local local_mode = Window::Local::kLastResort;
    Weather weather;
    base::Duration fault_time{0};  // faults happen until then
    bool tracing = false;
  };
  explicit World(Options options);

  // A world drawn from its seed.
  static Options Draw(uint64_t seed, bool tracing = false);
  // One of 64 ranks and 500 workers with a head, that come and go.
  static Options DrawLarge(uint64_t seed, bool tracing = false);

  // Faults of a script.
  void At(base::Duration time, const Timeline::Action& action);
  void StartWorker(int worker);
  void CrashWorker(int worker, std::optional<base::Duration> restart_after);
  void FreezeWorker(int worker, base::Duration time);
  void CutWorker(int worker, base::Duration time);
  // Its machine is about to go; after `time` it stays after all.
  void WarnOfWorker(int worker, base::Duration time);
  // It is told to go, finishes what it has begun as long as `time` lasts, and is gone.
  void DrainWorker(int worker, base::Duration time);
  // Its process dies, and another takes its place.
  void KillRank(int rank, base::Duration restart_after);
  // The process group of the ranks breaks, and each finds it out.
  void BreakGroup();
  void LoseHead(base::Duration time) { control_->LoseHead(time); }
  void SetSpeed(int worker, double speed) {
    workers_[static_cast<size_t>(worker)]->SetSpeed(speed);
  }

  // Runs until the job ends, a rule is broken, or `limit` of virtual time has passed, which breaks
  // the rule that every job ends. False when a rule was broken: violation() says which.
  bool Run(base::Duration limit = std::chrono::minutes(30));
  // Runs for `time`, or until the job ends.
  void RunFor(base::Duration time);

  const std::string& violation() const { return violation_; }
  std::string trace() const { return timeline_.trace(); }
  base::Duration elapsed() const { return timeline_.now() - start_; }
  int64_t steps() const { return steps_; }
  int64_t generations() const { return generation_; }
  int64_t heads() const { return control_ == nullptr ? 0 : control_->heads(); }
  const Worker& worker(int index) const { return *workers_[static_cast<size_t>(index)]; }
  const Trainer& trainer(int rank) const { return *trainers_[static_cast<size_t>(rank)]; }
  int64_t reissued() const;
  int64_t moved() const;
  int64_t duplicates() const;

 private:
  struct Dialled {
    ProducerId id = 0;        // this rank's name for the worker; 0: not in its roster
    int64_t incarnation = 0;  // by the head's roster
    bool leaving = false;     // likewise
    int64_t redials = 0;
    bool redial_due = false;
  };
  struct Rank {
    bool alive = true;
    int64_t incarnation = 1;
    int64_t generation = 0;  // that it has heard of
    std::shared_ptr<const Roster> roster;
    job::StreamDigest done;  // by trainers before the one it has
  };

  Link& link(size_t rank, size_t worker) { return *links_[rank * workers_.size() + worker]; }
  Dialled& dialled(size_t rank, size_t worker) { return dialled_[rank * workers_.size() + worker]; }
  void MakeControl();
  std::unique_ptr<Trainer> MakeTrainer(int32_t rank, int64_t first);
  void MakeWorker(size_t index);
  void MakeLocal(size_t rank);
  // Ranks of a world with a head (world_ranks.cpp).
  void OnRoster(size_t rank, std::shared_ptr<const Roster> roster);
  void OnGeneration(size_t rank, int64_t generation, std::shared_ptr<const Roster> roster);
  void ApplyRoster(size_t rank);
  void EndStreams(size_t rank);
  void EndTrainer(size_t rank);
  void BeginGeneration(int64_t number);
  void StopTraining();

  void AddToRoster(size_t rank, size_t worker, int64_t incarnation = 0);
  void RemoveFromRoster(size_t rank, size_t worker);
  void Dial(size_t rank, size_t worker);
  void DialLater(size_t rank, size_t worker);
  void Break(size_t rank, size_t worker, int64_t connection, base::Duration noticed_after);
  void Send(size_t rank, const Window::Assignment& assignment, bool cancel);
  void Answer(size_t worker, const Order& order, std::optional<base::Duration> work);
  void Tick();
  void TakeWhatIsThere();
  void Commit();
  void Turn(size_t worker, bool leaving);
  void TurnAt(size_t rank, size_t worker, bool leaving);
  void Disturb();
  void DisturbMembers();
  void EndFaults();
  void Check();
  bool RunUntil(base::Instant limit);
  bool ended() const { return ended_ || !violation_.empty(); }
  void Violate(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }

  const Options options_;
  Timeline timeline_;
  Dice dice_;
  const base::Instant start_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Worker>> locals_;  // by rank
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<std::unique_ptr<Trainer>> retired_;  // what was sent to them may be under way
  std::vector<Rank> ranks_;
  std::unique_ptr<Control> control_;  // null: there is no head
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<Dialled> dialled_;
  ProducerId next_id_ = kLocalProducer + 1;
  std::unordered_map<ProducerId, size_t> worker_of_;
  std::vector<bool> taken_;  // by rank: of the step under way
  int32_t missing_ = 0;      // ranks that have not taken it
  bool training_ = true;     // in a generation that has not broken
  int64_t generation_ = 0;
  int64_t stops_ = 0;  // of training
  bool computing_ = false;
  base::Duration pause_{0};
  int64_t steps_ = 0;
  bool ended_ = false;
  std::string violation_;
};

}  // namespace hetero::feed::simulation
