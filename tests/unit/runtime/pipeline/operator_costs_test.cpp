#include "runtime/pipeline/operator_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "runtime/pipeline/pipeline.h"
#include "runtime/pipeline/views.h"
#include "tests/unit/runtime/pipeline/fixtures.h"

namespace hetero::pipeline {
namespace {

using api::OperatorKind;

// A flip, twenty blurs, and the conversion, which is the trainer's.
std::vector<api::OperatorSpec> BlurAndFlip() {
  std::vector<api::OperatorSpec> specs = {Op(OperatorKind::kHorizontalFlip),
                                          Op(OperatorKind::kGaussianBlur),
                                          Op(OperatorKind::kNormalize)};
  specs[1].kernel_size = 11;
  specs[1].repeat = 20;
  return specs;
}

std::unique_ptr<Pipeline> Made(const std::vector<api::OperatorSpec>& specs) {
  auto made = Pipeline::Create(specs, {32, 32, 3}, job::Split::kTrain);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

void RunEpochs(const Pipeline& pipeline, int64_t epochs, int64_t samples) {
  const source::RawSample sample = RawSampleOf(NoiseImage({32, 32, 3}));
  std::vector<uint8_t> out(static_cast<size_t>(pipeline.output_bytes()));
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (int64_t id = 0; id < samples; ++id) {
      ASSERT_TRUE(pipeline.Run(sample, {.seed = 1, .epoch = epoch, .sample_id = id}, out).ok());
    }
  }
}

TEST(OperatorCostsTest, OneOfSoManySamplesOfEachEpochIsMeasured) {
  const auto pipeline = Made(BlurAndFlip());
  RunEpochs(*pipeline, 3, 130);  // 63, 127; 62, 126; 61, 125
  const std::vector<OperatorCost> costs = pipeline->costs();
  ASSERT_EQ(costs.size(), 3u);
  for (const OperatorCost& cost : costs) EXPECT_EQ(cost.samples, 6);
  EXPECT_GT(costs[0].cpu, base::Duration{});
  EXPECT_GT(costs[1].cpu, 10 * costs[0].cpu);
  EXPECT_EQ(costs[2].cpu, base::Duration{});
  for (const OperatorCost& cost : costs) EXPECT_EQ(cost.python, base::Duration{});
}

TEST(OperatorCostsTest, DecodingIsNobodysWhereNoEntryDecodes) {
  source::RawSample jpeg;
  jpeg.encoding = source::Encoding::kJpeg;
  jpeg.bytes = ReadGolden("420.jpg");
  std::vector<api::OperatorSpec> specs = {SizedOp(OperatorKind::kResize, 2, 2)};
  const auto cost_of_first = [&](const std::vector<api::OperatorSpec>& operators) {
    auto made = Pipeline::Create(operators, {}, job::Split::kTrain);
    EXPECT_TRUE(made.ok()) << made.status();
    std::vector<uint8_t> out(12);
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      EXPECT_TRUE((*made)->Run(jpeg, {.epoch = epoch, .sample_id = 64 + 63 - epoch}, out).ok());
    }
    EXPECT_EQ((*made)->costs()[0].samples, 20);
    return (*made)->costs()[0].cpu;
  };
  // What else the machine does costs a run more, and never less.
  const auto least = [&] {
    base::Duration cost = base::Duration::max();
    for (int run = 0; run < 10; ++run) cost = std::min(cost, cost_of_first(specs));
    return cost;
  };
  const base::Duration resize = least();
  specs.insert(specs.begin(), Op(OperatorKind::kDecode));
  EXPECT_GT(least(), 2 * resize);
}

TEST(OperatorCostsTest, ASampleThatFailsDoesNotCount) {
  const auto pipeline = Made(BlurAndFlip());
  const source::RawSample other = RawSampleOf(NoiseImage({16, 16, 3}));
  std::vector<uint8_t> out(static_cast<size_t>(pipeline->output_bytes()));
  EXPECT_FALSE(pipeline->Run(other, {.seed = 1, .epoch = 0, .sample_id = 63}, out).ok());
  for (const OperatorCost& cost : pipeline->costs()) {
    EXPECT_EQ(cost.samples, 0);
    EXPECT_EQ(cost.cpu, base::Duration{});
  }
}

TEST(OperatorCostsTest, AllViewsOfASampleAreOneSample) {
  const auto one = Made(BlurAndFlip());
  RunEpochs(*one, 8, 64);
  const auto views = MakeViews(Made(BlurAndFlip()), /*view=*/0, /*count=*/4);
  RunEpochs(*views, 8, 64);
  EXPECT_EQ(one->costs()[1].samples, 8);
  EXPECT_EQ(views->costs()[1].samples, 8);
  EXPECT_GT(views->costs()[1].cpu, 2 * one->costs()[1].cpu);
}

}  // namespace
}  // namespace hetero::pipeline
