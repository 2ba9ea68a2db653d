#include "tests/unit/runtime/train/rank_runner.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/crc32c.h"
#include "base/mutex.h"
#include "runtime/job/philox.h"
#include "tests/unit/runtime/train/connections.h"
#include "tests/unit/runtime/train/memory_store.h"

namespace hetero::train {
namespace {

// LibTorch's recorder of collectives belongs to the process and crashes when two ranks in one
// process form their groups at once. It is read at the first collective.
[[maybe_unused]] const int kRecorderOff = setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);

// Sample `id` has the class id % classes; its picture is noise around a brightness that depends on
// the class.
void MakeSample(const TestJob& job, int64_t id, std::span<uint8_t> bytes) {
  if (job.make_sample) {
    job.make_sample(id, bytes);
    return;
  }
  job::RandomStream random(7, 0, id, 0);
  const auto base = static_cast<uint32_t>(20 * (id % job.classes));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(base + random.Below(56));
}

// What one rank and its replacements share.
struct Life {
  bool dead = false;       // between a death and the next start
  int64_t joined = 0;      // the last generation that it was given
  std::stop_source leave;  // of the latest start
  std::atomic<bool> save = false;
};

// Whose older ones end, where the test wants that.
class GenerationBook {
 public:
  std::stop_token Open(int64_t number, bool ends_older) {
    const base::MutexLock lock(mutex_);
    over_[number];
    newest_ = std::max(newest_, number);
    for (auto& [other, over] : over_) {
      if (ends_older && other < newest_) over.request_stop();
    }
    return over_[number].get_token();
  }

 private:
  base::Mutex mutex_;
  int64_t newest_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::stop_source> over_ ABSL_GUARDED_BY(mutex_);
};

class FormulaStream : public feed::BatchStream, public BatchSource {
 public:
  absl::StatusOr<feed::BatchStream*> From(int64_t index) override {
    index_ = index;
    return this;
  }
  FormulaStream(const TestJob& job, const job::Schedule& schedule, int32_t rank, Life& life,
                std::vector<std::stop_source>& stops)
      : job_(job), schedule_(schedule), rank_(rank), life_(life), stops_(stops) {}

  absl::StatusOr<std::unique_ptr<feed::Batch>> Next(std::stop_token stop) override {
    if (stop.stop_requested()) return absl::CancelledError("stop");
    if (index_ == schedule_.size()) return absl::OutOfRangeError("no more batches");
    if (job_.dies && job_.dies(rank_, index_)) {
      life_.dead = true;
      CutEveryConnection();
      return absl::UnavailableError("killed");
    }
    if (job_.leaves && job_.leaves(rank_, index_)) life_.leave.request_stop();
    if (job_.is_to_save && job_.is_to_save(rank_, index_)) life_.save = true;
    if (job_.before_batch) {
      if (absl::Status status = job_.before_batch(rank_, index_, stops_); !status.ok()) {
        return status;
      }
    }
    std::unique_ptr<feed::Batch> batch = MakeBatch(schedule_.At(index_++));
    if (job_.spoil_batch) job_.spoil_batch(rank_, *batch);
    return batch;
  }
  feed::StreamStats stats() const override { return {}; }

 private:
  std::unique_ptr<feed::Batch> MakeBatch(const job::PlannedBatch& planned) {
    const api::ImageShape& shape = job_.image;
    const int64_t sample_bytes = int64_t{shape.height} * shape.width * shape.channels;
    auto batch = std::make_unique<feed::Batch>();
    batch->ticket = {.id = index_,
                     .rank = rank_,
                     .split = planned.split,
                     .epoch = planned.epoch,
                     .step = planned.step,
                     .slots = planned.slots};
    batch->shape = shape;
    batch->images = feed::Slab(sample_bytes * planned.slots.count);
    for (int64_t i = 0; i < planned.slots.count; ++i) {
      const int64_t id = planned.slots.first + i;
      std::span<uint8_t> bytes(batch->images.data() + i * sample_bytes,
                               static_cast<size_t>(sample_bytes));
      MakeSample(job_, id, bytes);
      batch->labels.push_back(static_cast<int32_t>(id % job_.classes));
      batch->sample_ids.push_back(id);
      batch->crcs.push_back(base::Crc32c(bytes.data(), bytes.size()));
    }
    return batch;
  }

  const TestJob& job_;
  const job::Schedule& schedule_;
  int32_t rank_;
  Life& life_;
  std::vector<std::stop_source>& stops_;
  int64_t index_ = 0;
};

// The generations that the test opens, and no more than these.
class TestGenerations : public Generations {
 public:
  TestGenerations(const TestJob& job, Life& life, GenerationBook& book,
                  std::shared_ptr<KeyValueStore> store)
      : job_(job), life_(life), book_(book), store_(std::move(store)) {}

  absl::StatusOr<Generation> Next(int64_t after, std::stop_token) override {
    const int64_t number = std::max(after, life_.joined) + 1;
    if (life_.dead) return absl::UnavailableError("killed");
    if (number > job_.generations) return absl::UnavailableError("no further generation");
    life_.joined = number;
    return Generation{.number = number,
                      .host = "127.0.0.1",
                      .store = store_,
                      .over = book_.Open(number, job_.newer_generations_end_older)};
  }
  void ReportBroken(int64_t, const std::string&) override {}

 private:
  const TestJob& job_;
  Life& life_;
  GenerationBook& book_;
  std::shared_ptr<KeyValueStore> store_;
};

class RecordingObserver : public Observer {
 public:
  RecordingObserver(const TestJob& job, int32_t rank, RankRecord& record,
                    std::vector<std::stop_source>& stops)
      : job_(job), rank_(rank), record_(record), stops_(stops) {}

  void OnStep(const StepRecord& step) override {
    record_.steps.push_back(step);
    if (job_.after_step) job_.after_step(rank_, step, stops_);
  }
  void OnSkippedStep(int64_t step) override { record_.skipped_steps.push_back(step); }
  void OnEvaluation(const EvaluationRecord& evaluation) override {
    if (job_.before_evaluation_record) job_.before_evaluation_record(rank_);
    record_.evaluations.push_back(evaluation);
  }
  void OnBatch(const feed::Batch& batch) override {
    std::vector<int64_t>& ids =
        batch.ticket.split == job::Split::kTrain ? record_.sample_ids : record_.validation_ids;
    ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
  }
  void OnDigest(uint64_t high, uint64_t low, int64_t samples_consumed) override {
    record_.digest_high = high;
    record_.digest_low = low;
    record_.samples_consumed = samples_consumed;
  }
  void OnPhases(const Phases& phases, double train_seconds) override {
    record_.phases = phases;
    record_.train_seconds = train_seconds;
  }
  void OnEpochEnd(int64_t epoch, uint32_t parameter_crc) override {
    record_.epoch_crcs.push_back(parameter_crc);
  }
  void OnResume(int64_t step, int64_t samples) override { record_.resumed_from = step; }
  void OnCheckpoint(const std::string& uri, int64_t step) override {
    record_.checkpoints.emplace_back(uri, step);
  }
  void OnCheckpointProblem(const std::string& problem) override {
    record_.checkpoint_problems.push_back(problem);
    if (job_.after_checkpoint_problem) job_.after_checkpoint_problem();
  }
  void OnCeiling(double samples_per_second) override { record_.ceiling = samples_per_second; }

 private:
  const TestJob& job_;
  int32_t rank_;
  RankRecord& record_;
  std::vector<std::stop_source>& stops_;
};

job::Schedule MakeSchedule(const TestJob& job, int32_t ranks, int32_t rank) {
  job::Schedule::Options options;
  options.training = {.samples = job.samples,
                      .batch_size_per_worker = job.training.batch_size_per_worker,
                      .ranks = ranks,
                      .partitions = job.training.parallelism.partitions,
                      .accumulation = job.training.gradient_accumulation_steps,
                      .last_batch = job.training.last_batch,
                      .epochs = job.training.epochs,
                      .max_steps = job.training.max_steps};
  options.validation_samples = job.validation_samples;
  options.evaluation = job.training.evaluation;
  return job::Schedule(options, rank);
}

void RunRank(const TestJob& job, int32_t ranks, int32_t rank, GenerationBook& book,
             const std::shared_ptr<KeyValueStore>& store, std::vector<std::stop_source>& stops,
             RankRecord& record) {
  const job::Schedule schedule = MakeSchedule(job, ranks, rank);
  Life life;
  FormulaStream stream(job, schedule, rank, life, stops);
  TestGenerations generations(job, life, book, store);
  RecordingObserver observer(job, rank, record, stops);
  TrainerOptions options;
  options.job.metadata.name = "test";
  options.job.spec.training = job.training;
  if (job.change_training) job.change_training(rank, options.job.spec.training);
  options.rank = rank;
  options.world_size = ranks;
  options.run = job.run;
  options.member = "gpu-" + std::to_string(rank);
  options.classes = job.classes;
  options.samples = job.samples;
  options.dataset_fingerprint = job.fingerprint;
  options.input = job.image;
  options.ceiling_probe_steps = job.ceiling_probe_steps;
  options.conversion = {.unit_scale = true, .mean = {0.5f}, .std = {0.25f}};
  options.output_folder = job.output_folder;
  options.gpu = job.gpu;
  base::Clock& clock = job.clocks.empty() ? *job.clock : *job.clocks.at(rank);
  const auto& at_once = job.leave_at_once;
  if (std::find(at_once.begin(), at_once.end(), rank) != at_once.end()) life.leave.request_stop();
  do {
    if (life.dead || record.starts > 0) life.leave = std::stop_source();
    life.dead = false;
    ++record.starts;
    record.status = RunTrainer(options, schedule, stream, generations, observer, clock,
                               {.stop = stops[static_cast<size_t>(rank)].get_token(),
                                .leave = life.leave.get_token(),
                                .save = &life.save});
  } while (life.dead || absl::IsAborted(record.status));
  if (job.after_run) job.after_run(rank);
}

}  // namespace

api::Training MakeTraining(const std::string& model, int32_t batch_size, int64_t max_steps) {
  api::Training training;
  training.model.name = model;
  training.batch_size_per_worker = batch_size;
  training.max_steps = max_steps;
  training.optimizer.learning_rate = 0.05;
  training.optimizer.momentum = 0.9;
  training.optimizer.weight_decay = 1e-4;
  training.seed = 11;
  return training;
}

std::vector<RankRecord> RunRanks(const TestJob& job, int32_t ranks) {
  std::vector<RankRecord> records(static_cast<size_t>(ranks));
  std::vector<std::stop_source> stops(static_cast<size_t>(ranks));
  const auto store = std::make_shared<MemoryStore>();
  GenerationBook book;
  {
    std::vector<std::jthread> threads;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        RunRank(job, ranks, rank, book, store, stops, records[static_cast<size_t>(rank)]);
      });
    }
  }
  return records;
}

}  // namespace hetero::train
