// The GPU as a rank's device, against the CPU as one. ctest runs it where there is a GPU.
#include "runtime/train/device/device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

std::unique_ptr<Device> Gpu() {
  absl::StatusOr<std::unique_ptr<Device>> gpu = OpenGpu();
  if (!gpu.ok()) throw std::runtime_error(std::string(gpu.status().message()));
  return *std::move(gpu);
}

TEST(GpuDeviceTest, ConvertsToTheCpusValues) {
  const api::ImageShape shape = {17, 33, 3};
  constexpr int64_t kCount = 6;
  std::vector<uint8_t> bytes(static_cast<size_t>(kCount * 17 * 33 * 3));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  const std::unique_ptr<Device> gpu = Gpu(), cpu = MakeCpuDevice();
  for (const bool channels_last : {false, true}) {
    const PixelFormat format = {.scale = {0.0171f, 0.0175f, 0.0174f},
                                .shift = {-2.118f, -2.036f, -1.804f},
                                .channels_last = channels_last};
    // More often than there are pinned buffers.
    for (int turn = 0; turn < 5; ++turn) {
      const torch::Tensor got = gpu->Convert(bytes.data(), kCount, shape, format);
      EXPECT_TRUE(got.cpu().equal(cpu->Convert(bytes.data(), kCount, shape, format)));
      EXPECT_EQ(got.is_contiguous(torch::MemoryFormat::ChannelsLast), channels_last);
    }
  }
}

TEST(GpuDeviceTest, SumsGradientsWithNcclAndEndsThem) {
  const std::unique_ptr<Device> gpu = Gpu();
  const auto backend =
      gpu->ConnectGradients(c10::make_intrusive<c10d::HashStore>(), /*rank=*/0, /*world_size=*/1);
  std::vector<torch::Tensor> values = {torch::arange(1000, torch::device(gpu->place()))};
  backend->allreduce(values)->wait();
  EXPECT_TRUE(values[0].cpu().equal(torch::arange(1000)));
  gpu->CutGradients();
}

// Sums come in another order there, so the loss differs by rounding. Batch norm over so few values
// makes more of it with every step: weights that differ by a millionth give resnet18 a loss that
// differs by a fifth at step 4, on one and the same CPU.
TEST(GpuDeviceTest, TrainsLikeTheCpu) {
  for (const auto& [model, comparable_steps] : {std::pair("mlp", 10u), std::pair("resnet18", 3u)}) {
    TestJob job;
    job.training = MakeTraining(model, 16, 10);
    job.training.optimizer.learning_rate = 0.005;
    job.image = {32, 32, 3};
    job.samples = 160;
    job.validation_samples = 20;
    const RankRecord cpu = RunRanks(job, 1)[0];
    job.gpu = true;
    const RankRecord gpu = RunRanks(job, 1)[0];
    ASSERT_TRUE(gpu.status.ok()) << gpu.status;
    ASSERT_EQ(gpu.steps.size(), cpu.steps.size());
    EXPECT_NEAR(gpu.steps[0].loss, cpu.steps[0].loss, 1e-4 * std::abs(cpu.steps[0].loss)) << model;
    for (size_t i = 0; i < comparable_steps; ++i) {
      EXPECT_NEAR(gpu.steps[i].loss, cpu.steps[i].loss, 0.02 * std::abs(cpu.steps[i].loss))
          << model << " step " << i;
    }
    EXPECT_EQ(gpu.digest_high, cpu.digest_high);
    EXPECT_EQ(gpu.digest_low, cpu.digest_low);
  }
}

// The host asks for a step's work long before the GPU has done it.
TEST(GpuDeviceTest, PhasesAreTheGpusTime) {
  TestJob job;
  job.training = MakeTraining("vit_b_16", 32, 8);
  job.image = {224, 224, 3};
  job.samples = 32 * 8;
  job.gpu = true;
  const RankRecord record = RunRanks(job, 1)[0];
  ASSERT_TRUE(record.status.ok()) << record.status;
  const StepRecord& last = record.steps.back();
  const Phases& phases = last.phases;
  EXPECT_GT(phases.forward, 0.02 * last.seconds);  // 0.17 and 0.3 were seen
  EXPECT_GT(phases.backward, phases.forward);
  EXPECT_LT(phases.all_reduce, 0.1 * last.seconds);  // there is nobody to reduce with
  EXPECT_NEAR(phases.Sum(), last.seconds, 1e-6);
}

}  // namespace
}  // namespace hetero::train
