#include "runtime/feed/order_cost.h"

#include <algorithm>

#include "runtime/feed/read_ahead.h"
#include "runtime/job/permutation.h"

namespace hetero::feed {
namespace {

constexpr int64_t kBatches = 32;

OrderCost CostOf(const source::Dataset& dataset, const api::HeteroTrainingJob& job,
                 const api::Shuffle& shuffle) {
  const api::Training& training = job.spec.training;
  const job::Permutation order(static_cast<uint64_t>(training.seed), /*epoch=*/0, dataset.size(),
                               shuffle);
  // What is read ahead of a larger batch is its beginning.
  const int64_t batch = std::min({int64_t{training.batch_size_per_worker}, dataset.size(),
                                  static_cast<int64_t>(ReadAhead::kMostExpected)});
  const int64_t all = dataset.size() / batch;
  const int64_t batches = std::min(all, kBatches);
  int64_t requests = 0;
  int64_t bytes = 0;
  bool knows_bytes = true;
  for (int64_t i = 0; i < batches; ++i) {
    const int64_t first = all * i / batches * batch;
    std::vector<int64_t> ids;
    for (int64_t slot = first; slot < first + batch; ++slot) ids.push_back(order.At(slot));
    for (const source::Dataset::Run& run : dataset.RunsOf(ids)) {
      ++requests;
      bytes += run.bytes;
      knows_bytes = knows_bytes && run.bytes > 0;
    }
  }
  const auto samples = static_cast<double>(batches * batch);
  return {.shuffle = shuffle,
          .requests_per_sample = static_cast<double>(requests) / samples,
          .bytes_per_sample = knows_bytes ? static_cast<double>(bytes) / samples : 0};
}

}  // namespace

std::vector<OrderCost> CostsOfOrders(const source::Dataset& dataset,
                                     const api::HeteroTrainingJob& job) {
  const int64_t batch = job.spec.training.batch_size_per_worker;
  if (!dataset.is_remote() || dataset.size() == 0 || batch <= 0) return {};
  const api::Shuffle& own = job.spec.dataset.shuffle;
  std::vector<OrderCost> costs = {CostOf(dataset, job, own)};
  for (const api::Shuffle& other :
       {api::Shuffle{.mode = api::ShuffleMode::kFull},
        api::Shuffle{.mode = api::ShuffleMode::kBlock, .block_size = batch}}) {
    const bool same = other.mode == own.mode &&
                      (other.mode == api::ShuffleMode::kFull ||
                       (other.block_size == own.block_size && own.window.value_or(1) == 1));
    if (!same) costs.push_back(CostOf(dataset, job, other));
  }
  const bool by_itself = std::all_of(costs.begin(), costs.end(), [](const OrderCost& cost) {
    return cost.requests_per_sample == 1;
  });
  return by_itself ? std::vector<OrderCost>() : costs;
}

}  // namespace hetero::feed
