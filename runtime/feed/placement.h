#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/feed/cut_pipeline.h"
#include "runtime/feed/sample_producer.h"

// Which operators a CPU worker does and which it leaves to the trainer. Since operators run in
// order, that is one number: how many of the last entries are left. Results do not depend on it.
namespace hetero::feed {

// Between which two entries the pipeline may be cut, what the manifest fixes, and what one sample
// costs on each side of the cut.
struct CutCost {
  int32_t left = 0;          // entries that are the trainer's
  double front_seconds = 0;  // of one core of the trainer's host, per sample
  double rest_seconds = 0;
  int64_t bytes = 0;  // of one sample at the cut
};

// The cuts that the pipeline's shapes and the manifest's `placement` fields allow, the fewest left
// first. kInvalidArgument names the entry whose placement cannot be had: CPUWorker behind Trainer,
// Trainer where the picture's size still varies or bytes are stored.
absl::StatusOr<std::vector<int32_t>> AllowedCuts(const std::vector<api::OperatorSpec>& operators,
                                                 const SampleProducer& producer);

// Times a few samples on this thread, about `budget` of wall time in all. Costs are zero where a
// sample could not be read.
std::vector<CutCost> MeasureCuts(const std::vector<int32_t>& cuts, const SampleProducer& producer,
                                 base::Duration budget, base::Clock& clock);

struct PlacementInput {
  std::vector<CutCost> cuts;             // the first one is where it began
  double worker_samples_per_second = 0;  // of all workers, at the first cut
  double trainer_cores = 0;              // that training leaves over
  bool shares_whole_batches = false;     // these cores also take whole batches (local_share.h)
  double demand = 0;                     // samples per second without waiting; 0: not known
  double bytes_per_second = 0;           // of the network where it is the limit; 0: it is not
  bool fewer_workers_cost_less = false;  // autoscaled and priced
};

struct PlacementChoice {
  int32_t left = 0;
  std::string reason;
};

// The cut with the highest rate, where it beats the first by a tenth; among equal ones the first,
// or with fewer_workers_cost_less the one with the least work for the workers. Pure.
PlacementChoice ChooseCut(const PlacementInput& input);

// One entry of the pipeline, for the report.
struct PlacedOperator {
  std::string op;
  bool on_trainer = false;
  std::string reason;
  double worker_seconds = 0;  // of one core, per sample; 0: not measured
  double trainer_seconds = 0;
  int64_t bytes_in = 0;  // of one sample; 0: varies
  int64_t bytes_out = 0;
};

// `worker_seconds`: what a worker's core takes per sample for all that is not left over at the
// first cut; its entries share it as they do on the trainer.
std::vector<PlacedOperator> DescribePlacement(const std::vector<api::OperatorSpec>& operators,
                                              const SampleProducer& producer,
                                              const std::vector<CutCost>& cuts,
                                              const PlacementChoice& choice, double worker_seconds);

}  // namespace hetero::feed
