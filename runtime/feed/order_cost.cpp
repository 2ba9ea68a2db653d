#include "runtime/feed/order_cost.h"

#include <algorithm>

#include "runtime/feed/read_ahead.h"
#include "runtime/job/permutation.h"

namespace hetero::feed {
namespace {

constexpr int64_t kTickets = 32;

OrderCost CostOf(const source::Dataset& dataset, uint64_t seed, int64_t ticket,
                 const api::Shuffle& shuffle) {
  const job::Permutation order(seed, /*epoch=*/0, dataset.size(), shuffle);
  const int64_t all = dataset.size() / ticket;
  const int64_t tickets = std::min(all, kTickets);
  int64_t requests = 0;
  int64_t bytes = 0;
  bool knows_bytes = true;
  const auto add = [&](const std::vector<int64_t>& ids) {
    for (const source::Dataset::Run& run : dataset.RunsOf(ids)) {
      ++requests;
      bytes += run.bytes;
      knows_bytes = knows_bytes && run.bytes > 0;
    }
  };
  for (int64_t i = 0; i < tickets; ++i) {
    const int64_t first = all * i / tickets * ticket;
    std::vector<int64_t> ahead;
    for (int64_t slot = first; slot < first + ticket; ++slot) {
      if (ahead.size() < ReadAhead::kMostExpected) {
        ahead.push_back(order.At(slot));
      } else {
        add({order.At(slot)});  // by itself, when its turn comes
      }
    }
    add(ahead);
  }
  const auto samples = static_cast<double>(tickets * ticket);
  return {.shuffle = shuffle,
          .requests_per_sample = static_cast<double>(requests) / samples,
          .bytes_per_sample = knows_bytes ? static_cast<double>(bytes) / samples : 0};
}

}  // namespace

std::vector<OrderCost> CostsOfOrders(const source::Dataset& dataset,
                                     const api::HeteroTrainingJob& job, int64_t ticket) {
  if (!dataset.is_remote() || dataset.size() == 0 || ticket <= 0) return {};
  ticket = std::min(ticket, dataset.size());
  const api::Shuffle& own = job.spec.dataset.shuffle;
  const auto seed = static_cast<uint64_t>(job.spec.training.seed);
  std::vector<OrderCost> costs = {CostOf(dataset, seed, ticket, own)};
  for (const api::Shuffle& other :
       {api::Shuffle{.mode = api::ShuffleMode::kFull},
        api::Shuffle{.mode = api::ShuffleMode::kBlock, .block_size = ticket}}) {
    const bool same = other.mode == own.mode &&
                      (other.mode == api::ShuffleMode::kFull ||
                       (other.block_size == own.block_size && own.window.value_or(1) == 1));
    if (!same) costs.push_back(CostOf(dataset, seed, ticket, other));
  }
  const bool by_itself = std::all_of(costs.begin(), costs.end(), [](const OrderCost& cost) {
    return cost.requests_per_sample == 1;
  });
  return by_itself ? std::vector<OrderCost>() : costs;
}

}  // namespace hetero::feed
