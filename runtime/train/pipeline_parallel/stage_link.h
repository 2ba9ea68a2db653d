#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <deque>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "runtime/train/process_group/gloo_group.h"

namespace hetero::train {

// Messages between the stages of one pipeline. Sends never block, so neighbours may both send
// first; what is received must be what was sent, in shape and type, and messages of one pair and
// tag arrive in their order. Belongs to one thread. Functions throw what LibTorch throws.
class StageLink {
 public:
  // `group` has partitions, and outlives this.
  explicit StageLink(const GlooGroup& group) : group_(*group.pipeline()) {}

  // From any device; the tensor may be changed as soon as this returns only when it is on a GPU.
  void Send(const torch::Tensor& tensor, int32_t stage, int tag);
  // On the CPU.
  torch::Tensor Receive(const std::vector<int64_t>& shape, torch::ScalarType type, int32_t stage,
                        int tag);
  void SendNumber(int64_t number, int32_t stage, int tag);
  int64_t ReceiveNumber(int32_t stage, int tag);
  // A message whose length the receiver does not know.
  void SendBytes(const std::string& bytes, int32_t stage);
  std::string ReceiveBytes(int32_t stage);

  // Waits until no more than `left` of the sends are under way.
  void Drain(size_t left = 0);

 private:
  c10d::ProcessGroup& group_;
  // The memory stays until it is sent.
  std::deque<std::pair<c10::intrusive_ptr<c10d::Work>, torch::Tensor>> under_way_;
};

}  // namespace hetero::train
