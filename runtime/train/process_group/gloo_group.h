#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "base/clock.h"
#include "runtime/train/device/device.h"
#include "runtime/train/process_group/key_value_store.h"
#include "runtime/train/process_group/pipeline_place.h"

namespace hetero::train {

// The connections between all ranks of one generation: one Gloo group for gradients and one for the
// small control vectors, so that neither ever waits in the other's queue. With partitions the
// gradients' group has the ranks that hold the same partition, and one more group the ranks of this
// rank's pipeline. Functions throw CollectiveError when a rank is lost or the connections are cut.
// Collectives belong to one thread; Cut() may be called from any.
class GlooGroup {
 public:
  struct Options {
    int32_t rank = 0;
    int32_t world_size = 2;
    int32_t partitions = 1;  // divides world_size
    int64_t generation = 1;
    std::string host;  // address of this rank that the others can reach
    // Whose own backend sums gradients, if it has one; null: Gloo does. Outlives the group.
    Device* device = nullptr;
    // For one connection, once all ranks are known to be there.
    std::chrono::milliseconds connect_timeout = std::chrono::seconds(20);
  };

  // Meets the other ranks in `store` and exercises both groups once, so that no later step needs
  // the store. Throws when the others do not come within a minute, and on `stop`; but when another
  // rank dies in the moment of connecting, Gloo does not look at `stop`, and only Options'
  // connect_timeout ends the wait (see GroupFormer).
  GlooGroup(const Options& options, std::shared_ptr<KeyValueStore> store, base::Clock& clock,
            std::stop_token stop);

  // Sums `values` over all ranks in place; every rank gets the same bits.
  void SumControl(torch::Tensor& values);
  // Gives all ranks the values of `root`.
  void BroadcastControl(torch::Tensor& values, int32_t root);

  // Ends every collective under way, and all later ones, with an exception, here and on the peers.
  void Cut() { Cutter()(); }
  // Does the same, also while the group is being destroyed and afterwards.
  std::function<void()> Cutter() const;

  // Numbered by pipeline. Null when there is but one.
  const c10::intrusive_ptr<c10d::ProcessGroup>& gradients() const { return gradients_; }
  // Numbered by stage. Null without partitions.
  const c10::intrusive_ptr<c10d::ProcessGroup>& pipeline() const { return pipeline_; }
  const PipelinePlace& place() const { return place_; }
  int32_t rank() const { return rank_; }
  int32_t world_size() const { return world_size_; }

 private:
  int32_t rank_;
  int32_t world_size_;
  PipelinePlace place_;
  Device* device_;
  std::set<std::string> listeners_;  // of all ranks
  c10::intrusive_ptr<c10d::ProcessGroup> gradients_;
  c10::intrusive_ptr<c10d::ProcessGroup> pipeline_;
  c10::intrusive_ptr<c10d::ProcessGroup> control_;
};

}  // namespace hetero::train
