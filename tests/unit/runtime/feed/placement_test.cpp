#include "runtime/feed/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/manifest.h"
#include "runtime/feed/batch_finisher.h"
#include "runtime/feed/placement_probe.h"

namespace hetero::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::unique_ptr<SampleProducer> Producer(const std::string& pipeline) {
  const api::ManifestResult manifest = api::ParseManifest(R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: cuts}
spec:
  dataset: {uri: "synthetic://", samples: 64, classes: 4, image: {height: 20, width: 24, channels: 3}}
  pipeline: )" + pipeline + R"(
  training: {model: {name: mlp}, batchSizePerWorker: 8, epochs: 1, seed: 5,
             optimizer: {name: SGD, learningRate: 0.1}}
  roles:
  - {name: head, type: Head}
  - {name: gpu, type: GPUWorker}
)");
  EXPECT_TRUE(manifest.errors.empty()) << api::FormatErrors(manifest.errors);
  auto producer = SampleProducer::Create(manifest.job);
  EXPECT_TRUE(producer.ok()) << producer.status();
  return *std::move(producer);
}

std::vector<api::OperatorSpec> Operators(size_t count, std::initializer_list<size_t> worker,
                                         std::initializer_list<size_t> trainer) {
  std::vector<api::OperatorSpec> operators(count);
  for (api::OperatorSpec& spec : operators) spec.op = api::OperatorKind::kHorizontalFlip;
  for (const size_t i : worker) operators[i].placement = api::Placement::kCpuWorker;
  for (const size_t i : trainer) operators[i].placement = api::Placement::kTrainer;
  return operators;
}

Batch Produce(const BatchProducer& producer, const Ticket& ticket) {
  EXPECT_TRUE(producer.Check(ticket).ok()) << producer.Check(ticket);
  Batch batch = producer.Allocate(ticket, NewSlab);
  for (int64_t i = 0; i < ticket.slots.count; ++i) {
    std::optional<BadSample> bad;
    const absl::Status status = producer.Produce(&batch, i, &bad);
    EXPECT_TRUE(status.ok()) << status;
  }
  return batch;
}

constexpr char kPipeline[] =
    "[{op: RandomResizedCrop, size: {height: 12, width: 16}, scale: {min: 0.3, max: 1.0}}, "
    "{op: HorizontalFlip}, {op: GaussianBlur, kernelSize: 3, repeat: 3}, {op: HorizontalFlip}, "
    "{op: Normalize}]";

TEST(CutPipelineTest, BothPartsTogetherYieldTheWholesBytes) {
  const std::unique_ptr<SampleProducer> producer = Producer(kPipeline);
  const CutPipeline& cut = producer->cut(job::Split::kTrain);
  ASSERT_EQ(cut.entries(), 4);
  const Ticket whole{.id = 3, .epoch = 2, .step = 1, .slots = {8, 16}};
  const Batch want = Produce(*producer, whole);
  for (int32_t left = 1; left <= 4; ++left) {
    ASSERT_TRUE(cut.CanLeave(left));
    Ticket ticket = whole;
    ticket.left_to_trainer = left;
    BatchFinisher finisher(*producer);
    finisher.Add({1, std::make_shared<const Batch>(Produce(*producer, ticket))});
    const Batch batch = Produce(finisher, whole);
    EXPECT_EQ(batch.crcs, want.crcs) << left;
    EXPECT_EQ(batch.sample_ids, want.sample_ids);
    EXPECT_EQ(batch.labels, want.labels);
    EXPECT_EQ(batch.shape, want.shape);
    EXPECT_EQ(batch.ticket.left_to_trainer, 0);
  }
}

TEST(CutPipelineTest, ATicketThatCannotBeCutIsRefused) {
  const std::unique_ptr<SampleProducer> producer = Producer(kPipeline);
  EXPECT_TRUE(absl::IsInvalidArgument(producer->Check({.slots = {0, 8}, .left_to_trainer = 5})));
  EXPECT_TRUE(absl::IsInvalidArgument(producer->Check({.slots = {0, 8}, .left_to_trainer = -1})));
}

TEST(BatchFinisherTest, PicturesOfAnotherShapeAreNotFinished) {
  const std::unique_ptr<SampleProducer> producer = Producer(kPipeline);
  const Ticket whole{.slots = {0, 4}};
  Batch half = Produce(*producer, {.slots = {0, 4}, .left_to_trainer = 1});
  half.shape.height += 1;
  BatchFinisher finisher(*producer);
  finisher.Add({1, std::make_shared<const Batch>(std::move(half))});
  EXPECT_THAT(std::string(finisher.Check(whole).message()), HasSubstr("another shape"));
  EXPECT_FALSE(finisher.Check({.id = 9}).ok());
}

// Two workers that finish each other's batches would answer for each other's.
TEST(BatchFinisherTest, BatchesOfOneTicketWaitForTheirTurn) {
  const std::unique_ptr<SampleProducer> producer = Producer(kPipeline);
  BatchFinisher finisher(*producer);
  const auto batch_of = [](int64_t ticket) {
    auto batch = std::make_shared<Batch>();
    batch->ticket.id = ticket;
    return batch;
  };
  const auto first = batch_of(3), second = batch_of(3);
  EXPECT_TRUE(finisher.Add({1, first}));
  EXPECT_FALSE(finisher.Add({2, second}));
  EXPECT_TRUE(finisher.Add({2, batch_of(4)}));
  EXPECT_EQ(finisher.First(3), first);
  const std::optional<BatchFinisher::Half> next = finisher.DropFirst(3);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->producer, 2);
  EXPECT_EQ(next->batch, second);
  EXPECT_EQ(finisher.First(3), second);
  EXPECT_FALSE(finisher.DropFirst(3).has_value());
  EXPECT_EQ(finisher.First(3), nullptr);
  EXPECT_FALSE(finisher.DropFirst(3).has_value());
  EXPECT_TRUE(finisher.Add({1, first}));
}

TEST(AllowedCutsTest, FollowTheManifest) {
  const std::unique_ptr<SampleProducer> producer = Producer(
      "[{op: HorizontalFlip}, {op: HorizontalFlip}, {op: HorizontalFlip}, {op: HorizontalFlip}]");
  const auto cuts = [&](std::initializer_list<size_t> worker,
                        std::initializer_list<size_t> trainer) {
    return AllowedCuts(Operators(4, worker, trainer), *producer);
  };
  EXPECT_THAT(*cuts({}, {}), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(*cuts({1}, {}), ElementsAre(0, 1, 2));
  EXPECT_THAT(*cuts({3}, {}), ElementsAre(0));
  EXPECT_THAT(*cuts({}, {3}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*cuts({1}, {2}), ElementsAre(2));
  EXPECT_THAT(*cuts({}, {0, 2}), ElementsAre(4));
  const absl::Status wrong = cuts({2}, {1}).status();
  EXPECT_EQ(
      wrong.message(),
      "spec.pipeline[2].placement (HorizontalFlip) cannot be CPUWorker: an operator before it "
      "is the trainer's");
}

// Ten milliseconds a sample, seven of them in the last entry; the worker makes 100 samples/s.
PlacementInput Input() {
  return {.cuts = {{.left = 0, .front_seconds = 0.010, .rest_seconds = 0, .bytes = 1000},
                   {.left = 1, .front_seconds = 0.003, .rest_seconds = 0.007, .bytes = 500},
                   {.left = 2, .front_seconds = 0, .rest_seconds = 0.010, .bytes = 4000}},
          .worker_samples_per_second = 100,
          .trainer_cores = 2};
}

TEST(ChooseCutTest, TheTrainersIdleCoresHelp) {
  const PlacementChoice choice = ChooseCut(Input());
  EXPECT_EQ(choice.left, 1);  // 2 / 0.007 = 286 samples/s; all of it there would be 200
  EXPECT_EQ(choice.reason, "2.9 times the rate: the CPU workers would be the limit otherwise");
}

TEST(ChooseCutTest, NothingMovesWithoutAGain) {
  PlacementInput input = Input();
  input.demand = 105;
  EXPECT_EQ(ChooseCut(input).left, 0);
  EXPECT_THAT(ChooseCut(input).reason, HasSubstr("no other cut is a tenth faster"));
  input = Input();
  input.trainer_cores = 0;
  EXPECT_EQ(ChooseCut(input).left, 0);
  EXPECT_EQ(ChooseCut(input).reason, "the trainer has no idle core");
}

TEST(ChooseCutTest, CoresThatTakeWholeBatchesNeedNoCut) {
  PlacementInput input = Input();
  input.shares_whole_batches = true;  // 100 + 2 / 0.010 = 300
  EXPECT_EQ(ChooseCut(input).left, 0);
}

TEST(ChooseCutTest, ASlowNetworkMovesTheCutToWhereLessTravels) {
  PlacementInput input = Input();
  input.worker_samples_per_second = 1000;
  input.trainer_cores = 8;
  input.bytes_per_second = 100'000;
  const PlacementChoice choice = ChooseCut(input);
  EXPECT_EQ(choice.left, 1);
  EXPECT_EQ(choice.reason, "2.0 times the rate: the network would be the limit otherwise");
}

TEST(ChooseCutTest, WhereWorkersAreScaledAndPaidFewerOfThemWin) {
  PlacementInput input = Input();
  input.demand = 90;
  EXPECT_EQ(ChooseCut(input).left, 0);
  input.fewer_workers_cost_less = true;
  EXPECT_EQ(ChooseCut(input).left, 2);
  EXPECT_EQ(ChooseCut(input).reason, "as fast, with fewer CPU workers to pay");
}

TEST(PlacementProbeTest, ChoosesOnceAfterTheFirstBatches) {
  PlacementProbe probe(Input());
  for (int64_t i = 0; i < PlacementProbe::kBatches; ++i) {
    EXPECT_FALSE(probe.due());
    EXPECT_EQ(probe.left(), 0);
    Batch batch;
    batch.labels.resize(4);
    batch.cpu_seconds = 0.08;
    probe.OnBatch(batch);
  }
  ASSERT_TRUE(probe.due());
  probe.Choose(100, 0, 0);
  EXPECT_FALSE(probe.due());
  EXPECT_EQ(probe.left(), 1);
  EXPECT_DOUBLE_EQ(probe.state().worker_seconds, 0.02);
}

TEST(PlacementProbeTest, WithoutAChoiceNothingIsWaitedFor) {
  PlacementInput input = Input();
  input.cuts = {{.left = 3}};
  EXPECT_EQ(PlacementProbe(input).left(), 3);
  EXPECT_FALSE(PlacementProbe(input).due());
  EXPECT_EQ(PlacementProbe(PlacementInput{}).left(), 0);
}

TEST(DescribePlacementTest, SaysWhereEachEntryRunsAndWhatItCosts) {
  const std::unique_ptr<SampleProducer> producer = Producer(
      "[{op: HorizontalFlip}, {op: CenterCrop, size: {height: 10, width: 10}}, "
      "{op: Normalize}]");
  std::vector<api::OperatorSpec> operators(3);
  operators[0].op = api::OperatorKind::kHorizontalFlip;
  operators[1].op = api::OperatorKind::kCenterCrop;
  operators[2].op = api::OperatorKind::kNormalize;
  const std::vector<PlacedOperator> placed =
      DescribePlacement(operators, *producer,
                        {{.left = 0, .front_seconds = 0.004},
                         {.left = 1, .front_seconds = 0.003, .rest_seconds = 0.001},
                         {.left = 2, .front_seconds = 0, .rest_seconds = 0.004}},
                        {1, "because"}, 0.008);
  ASSERT_THAT(placed, SizeIs(3));
  EXPECT_FALSE(placed[0].on_trainer);
  EXPECT_TRUE(placed[1].on_trainer);
  EXPECT_TRUE(placed[2].on_trainer);
  EXPECT_EQ(placed[1].reason, "because");
  EXPECT_EQ(placed[1].bytes_in, 20 * 24 * 3);
  EXPECT_EQ(placed[1].bytes_out, 10 * 10 * 3);
  EXPECT_NEAR(placed[0].trainer_seconds, 0.003, 1e-12);
  EXPECT_NEAR(placed[0].worker_seconds, 0.006, 1e-12);
  EXPECT_NEAR(placed[1].worker_seconds, 0.002, 1e-12);
}

}  // namespace
}  // namespace hetero::feed
