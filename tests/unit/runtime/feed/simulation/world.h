#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/link.h"
#include "simulation/trainer.h"
#include "simulation/worker.h"

namespace hetero::feed::simulation {

// A job's data plane in virtual time: ranks in lockstep, CPU workers, the network between them, and
// faults. The same options give the same run, to the nanosecond.
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
    std::vector<int> absent;               // workers that StartWorker() brings in later
    std::optional<Worker::Options> local;  // each rank's own cores; absent: they serve nothing
    Window::Local local_mode = Window::Local::kLastResort;
    Weather weather;
    base::Duration fault_time{0};  // faults happen until then
    bool tracing = false;
  };
  explicit World(Options options);

  // A world drawn from its seed.
  static Options Draw(uint64_t seed, bool tracing = false);

  // Faults of a script.
  void At(base::Duration time, const Timeline::Action& action);
  void StartWorker(int worker);
  void CrashWorker(int worker, std::optional<base::Duration> restart_after);
  void FreezeWorker(int worker, base::Duration time);
  void CutWorker(int worker, base::Duration time);
  // Its machine is about to go; after `time` it stays after all.
  void WarnOfWorker(int worker, base::Duration time);
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
  const Worker& worker(int index) const { return *workers_[static_cast<size_t>(index)]; }
  const Trainer& trainer(int rank) const { return *trainers_[static_cast<size_t>(rank)]; }
  int64_t reissued() const;
  int64_t moved() const;
  int64_t duplicates() const;

 private:
  struct Dialled {
    ProducerId id = 0;  // this rank's name for the worker; 0: not in its roster
    int64_t redials = 0;
    bool redial_due = false;
  };

  Link& link(size_t rank, size_t worker) { return *links_[rank * workers_.size() + worker]; }
  Dialled& dialled(size_t rank, size_t worker) { return dialled_[rank * workers_.size() + worker]; }
  void MakeTrainer(int32_t rank);
  void MakeWorker(size_t index);
  void MakeLocal(size_t rank);
  void AddToRoster(size_t rank, size_t worker);
  void RemoveFromRoster(size_t rank, size_t worker);
  void Dial(size_t rank, size_t worker);
  void DialLater(size_t rank, size_t worker);
  void Break(size_t rank, size_t worker, int64_t connection, base::Duration noticed_after);
  void Send(size_t rank, const Window::Assignment& assignment, bool cancel);
  void Answer(size_t worker, const Order& order, std::optional<base::Duration> work);
  void Tick();
  void TakeWhatIsThere();
  void Turn(size_t worker, bool leaving);
  void Disturb();
  void Check();
  bool RunUntil(base::Instant limit);
  bool ended() const { return ended_ || !violation_.empty(); }

  const Options options_;
  Timeline timeline_;
  Dice dice_;
  const base::Instant start_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Worker>> locals_;  // by rank
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<Dialled> dialled_;
  ProducerId next_id_ = kLocalProducer + 1;
  std::vector<bool> taken_;  // by rank: of the step under way
  bool computing_ = false;
  base::Duration pause_{0};
  int64_t steps_ = 0;
  bool ended_ = false;
  std::string violation_;
};

}  // namespace hetero::feed::simulation
