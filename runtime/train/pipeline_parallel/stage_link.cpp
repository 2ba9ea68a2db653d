#include "runtime/train/pipeline_parallel/stage_link.h"

#include <chrono>
#include <cstring>

#include "runtime/train/process_group/exceptions.h"

namespace hetero::train {
namespace {

// A neighbour may wait for its data for any time; a lost one ends the wait by its connection, or by
// GlooGroup::Cut. As for collectives, this is only the last resort.
constexpr std::chrono::milliseconds kMessageTimeout = std::chrono::hours(6);
constexpr int kBytesTag = 2;

}  // namespace

void StageLink::Send(const torch::Tensor& tensor, int32_t stage, int tag) {
  std::vector<torch::Tensor> message = {tensor.detach().to(torch::kCPU).contiguous()};
  auto work = Collectively([&] { return group_.send(message, stage, tag); });
  under_way_.emplace_back(std::move(work), message[0]);
}

torch::Tensor StageLink::Receive(const std::vector<int64_t>& shape, torch::ScalarType type,
                                 int32_t stage, int tag) {
  std::vector<torch::Tensor> message = {torch::empty(shape, type)};
  Collectively([&] { group_.recv(message, stage, tag)->wait(kMessageTimeout); });
  return message[0];
}

void StageLink::SendNumber(int64_t number, int32_t stage, int tag) {
  Send(torch::full({1}, number, torch::kInt64), stage, tag);
}

int64_t StageLink::ReceiveNumber(int32_t stage, int tag) {
  return Receive({1}, torch::kInt64, stage, tag).item<int64_t>();
}

void StageLink::SendBytes(const std::string& bytes, int32_t stage) {
  const auto size = static_cast<int64_t>(bytes.size());
  SendNumber(size, stage, kBytesTag);
  if (size == 0) return;
  torch::Tensor message = torch::empty({size}, torch::kUInt8);
  std::memcpy(message.data_ptr(), bytes.data(), bytes.size());
  Send(message, stage, kBytesTag);
}

std::string StageLink::ReceiveBytes(int32_t stage) {
  const int64_t size = ReceiveNumber(stage, kBytesTag);
  if (size == 0) return "";
  const torch::Tensor message = Receive({size}, torch::kUInt8, stage, kBytesTag);
  return {static_cast<const char*>(message.const_data_ptr()), static_cast<size_t>(size)};
}

void StageLink::Drain(size_t left) {
  while (under_way_.size() > left) {
    Collectively([&] { under_way_.front().first->wait(kMessageTimeout); });
    under_way_.pop_front();
  }
}

}  // namespace hetero::train
