#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/trainer.h"

namespace hetero::train {

// What one rank told the outside, and how it ended.
struct RankRecord {
  absl::Status status;
  std::vector<StepRecord> steps;
  std::vector<EvaluationRecord> evaluations;
  std::vector<uint32_t> epoch_crcs;
  std::vector<int64_t> skipped_steps;
  std::vector<int64_t> sample_ids;                           // of training, in order
  std::vector<int64_t> validation_ids;                       // of all evaluations, in order
  std::vector<std::pair<std::string, int64_t>> checkpoints;  // uri, step
  std::vector<std::string> checkpoint_problems;
  int64_t resumed_from = -1;
  int starts = 0;  // of RunTrainer: one more than it died or left
  uint64_t digest_high = 0, digest_low = 0;
  int64_t samples_consumed = 0;
  Phases phases;
  double train_seconds = 0;
  double ceiling = 0;  // samples per second; 0: not probed
};

// A job whose ranks are threads of this process, fed with samples made by a formula.
struct TestJob {
  api::Training training;
  api::ImageShape image = {8, 8, 3};
  int32_t classes = 10;
  int64_t samples = 0;
  int64_t validation_samples = 0;
  std::string fingerprint = "0123456789abcdef";
  std::string run = "run-1";
  int64_t generations = 1;
  int32_t ceiling_probe_steps = 0;
  bool gpu = false;  // every rank on the first GPU
  base::Clock* clock = &base::Clock::Real();
  std::vector<base::Clock*> clocks;  // one per rank; empty: `clock` is all ranks'
  // Makes one rank train otherwise than the others.
  std::function<void(int32_t rank, api::Training&)> change_training;
  std::string output_folder;  // of the trained weights; empty: not written
  // The pixels of a sample; empty: noise around a brightness that depends on the class.
  std::function<void(int64_t id, std::span<uint8_t>)> make_sample;

  // Called by BatchStream::Next before it makes a batch, with the stop sources of all ranks; an
  // error is what Next returns.
  std::function<absl::Status(int32_t rank, int64_t index, std::vector<std::stop_source>&)>
      before_batch;
  // What is wrong with the batch that the input gives.
  std::function<void(int32_t rank, feed::Batch& batch)> spoil_batch;
  // Before batch `index`: a rank for which it is true dies as of SIGKILL, with every connection of
  // this process, and begins again in the next generation with what that gives it.
  std::function<bool(int32_t rank, int64_t index)> dies;
  // Before batch `index`: a rank for which it is true is asked to leave. It begins again likewise.
  std::function<bool(int32_t rank, int64_t index)> leaves;
  // As from the head: whoever asks for a generation ends those before it.
  bool newer_generations_end_older = false;
  // Before batch `index`: somebody wants a checkpoint of a rank for which it is true.
  std::function<bool(int32_t rank, int64_t index)> is_to_save;
  // Ranks that are asked to leave before they begin, the first time.
  std::vector<int32_t> leave_at_once;
  std::function<void(int32_t rank)> before_evaluation_record;  // what it throws, the loop throws

  // Called after each step's record.
  std::function<void(int32_t rank, const StepRecord&, std::vector<std::stop_source>&)> after_step;
  // Called when a rank hears that a checkpoint could not be written.
  std::function<void()> after_checkpoint_problem;
  // Called when a rank's RunTrainer has returned.
  std::function<void(int32_t rank)> after_run;
};

// A training specification for `model` with sane values.
api::Training MakeTraining(const std::string& model, int32_t batch_size, int64_t max_steps);

// Runs all ranks to their end. Entry r belongs to rank r.
std::vector<RankRecord> RunRanks(const TestJob& job, int32_t ranks);

}  // namespace hetero::train
