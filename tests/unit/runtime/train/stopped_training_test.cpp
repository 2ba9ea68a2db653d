// What goes wrong once training has been asked to stop.
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/torch.h>

#include <atomic>
#include <string>

#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;

// For pictures of 4 x 4 x 3 and ten classes.
std::string SaveLinear(const TemporaryFolder& folder, const torch::Tensor& frozen,
                       const std::string& check) {
  torch::jit::Module module("Net");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("weight", torch::ones({10, 48}).requires_grad_(),
                            /*is_buffer=*/false);
  module.register_parameter("frozen", frozen.requires_grad_(false), false);
  module.define("def forward(self, images):\n    x = torch.flatten(images, 1)\n" + check +
                "    return torch.matmul(x, torch.t(self.weight))\n");
  module.save(folder / "net.pt");
  return "file://" + (folder / "net.pt");
}

TestJob MakeLinearJob(const std::string& script) {
  TestJob job;
  job.training = MakeTraining("net", 4, 6);
  job.training.model.torch_script = script;
  job.image = {4, 4, 3};
  job.samples = 200;
  return job;
}

// The model throws in the step that was under way when the job was stopped: a stop cuts connections
// too, and what LibTorch says then may look like this.
TEST(StoppedTrainingTest, WhatIsThrownAfterAStopWasBlamedOnTheModel) {
  TemporaryFolder folder;
  TestJob job = MakeLinearJob(SaveLinear(folder, torch::ones({1}),
                                         "    if self.training:\n"
                                         "        assert float(torch.max(x)) < 1.9, \"white\"\n"));
  // In the third step of two ranks, slots 16 to 23, rank 0 meets white.
  job.make_sample = [](int64_t id, std::span<uint8_t> bytes) {
    for (uint8_t& byte : bytes) byte = id == 18 ? 255 : static_cast<uint8_t>(id);
  };
  std::atomic<int> stopped = 0;
  // The loss of the second step is known once all ranks have agreed to do the third.
  job.after_step = [&](int32_t rank, const StepRecord& step, std::vector<std::stop_source>& stops) {
    if (step.step != 2) return;
    ++stopped;
    stops[static_cast<size_t>(rank)].request_stop();
  };
  for (const RankRecord& record : RunRanks(job, 2)) {
    EXPECT_TRUE(absl::IsCancelled(record.status)) << record.status;
    EXPECT_EQ(record.steps.size(), 2u);
  }
  EXPECT_EQ(stopped, 2);
}

// One value, seen a million billion times: training leaves it alone, but no memory holds a copy.
TEST(StoppedTrainingTest, ACheckpointThatDoesNotFitIntoMemoryEndedTheProcess) {
  TemporaryFolder folder;
  TemporaryFolder checkpoints;
  const torch::Tensor vast = torch::ones({1}).expand({1'000'000, 1'000'000, 1'000});
  TestJob job = MakeLinearJob(SaveLinear(folder, vast, ""));
  job.training.optimizer.momentum = 0;  // no moments of it
  job.training.checkpoint =
      api::Checkpoint{.uri = "file://" + checkpoints.path(), .every_steps = 1000};
  job.after_step = [](int32_t, const StepRecord& step, std::vector<std::stop_source>& stops) {
    if (step.step == 2) stops[0].request_stop();
  };
  const RankRecord record = RunRanks(job, 1).front();
  EXPECT_TRUE(absl::IsCancelled(record.status)) << record.status;
  EXPECT_TRUE(record.checkpoints.empty());
}

}  // namespace
}  // namespace hetero::train
