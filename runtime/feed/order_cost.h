#pragma once

#include <cstdint>
#include <vector>

#include "api/hetero_training_job.h"
#include "runtime/source/dataset.h"

namespace hetero::feed {

// What one order of a dataset's samples asks of the store that it lies in, when each batch is read
// ahead as SampleProducer does: from where samples lie, without retries.
struct OrderCost {
  api::Shuffle shuffle;
  double requests_per_sample = 0;
  double bytes_per_sample = 0;  // 0: not known
};

// Of the job's own order, which comes first, and of those that it might have instead: Full, and
// Block with blocks of what a ticket asks for, `ticket` samples. By a few tickets of the first
// epoch. Empty where the order makes no difference: no network lies between, or no samples lie
// behind each other.
std::vector<OrderCost> CostsOfOrders(const source::Dataset& dataset,
                                     const api::HeteroTrainingJob& job, int64_t ticket);

}  // namespace hetero::feed
