#include "runtime/train/pipeline_parallel/pipeline_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "runtime/job/philox.h"
#include "runtime/train/model_runner.h"
#include "runtime/train/models/loss.h"
#include "runtime/train/models/vit.h"
#include "runtime/train/optimizer/optimizer.h"
#include "tests/unit/runtime/train/memory_store.h"

namespace hetero::train {
namespace {

using Gradients = std::map<std::string, torch::Tensor>;

const api::ImageShape kStagePicture = {32, 32, 3};
const pipeline::TensorConversion kConversion = {.unit_scale = true, .mean = {0.5f}, .std = {0.25f}};
constexpr int32_t kClasses = 5;

// LibTorch's generator belongs to the process.
std::shared_ptr<Model> FiveLayerVit() {
  static base::Mutex mutex;
  const base::MutexLock lock(mutex);
  torch::manual_seed(3);
  std::shared_ptr<Model> model =
      MakeVisionTransformer({.name = "small", .classes = kClasses, .input = kStagePicture},
                            {.layers = 5, .heads = 2, .width = 32, .mlp_width = 64});
  // A head of zeros would give the layers before it no gradient.
  torch::NoGradGuard no_grad;
  for (auto& parameter : model->named_parameters()) {
    if (parameter.key().starts_with("heads")) parameter.value().normal_(0, 0.5);
  }
  return model;
}

feed::Batch Samples(int64_t first, int64_t count) {
  feed::Batch batch;
  batch.shape = kStagePicture;
  batch.images =
      feed::Slab(count * kStagePicture.height * kStagePicture.width * kStagePicture.channels);
  job::RandomStream random(5, 0, first, 0);
  for (int64_t i = 0; i < batch.images.size(); ++i) {
    batch.images.data()[i] = static_cast<uint8_t>(random.Below(256));
  }
  for (int64_t i = 0; i < count; ++i) {
    batch.labels.push_back(static_cast<int32_t>((first + i) % kClasses));
  }
  return batch;
}

void AddGradientsOf(const Model& model, Gradients& gradients) {
  for (const auto& parameter : model.named_parameters()) {
    EXPECT_TRUE(gradients.emplace(parameter.key(), parameter.value().grad().clone()).second);
  }
}

struct Shape {
  int32_t partitions, pipelines, microbatches;
  std::vector<int64_t> samples;  // of each pipeline
};

struct Result {
  Gradients gradients;
  double loss = 0;
};

// The mean loss over all samples, by the whole model at once.
Result ByTheWholeModel(const Shape& shape) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  const std::shared_ptr<Model> model = FiveLayerVit();
  const Optimizer optimizer({}, model->parameters());
  const InputConverter input(kConversion, 3, false, *device);
  int64_t total = 0;
  for (const int64_t count : shape.samples) total += count;
  Result result;
  for (size_t i = 0; i < shape.samples.size(); ++i) {
    const int64_t count = shape.samples[i];
    if (count == 0) continue;
    const feed::Batch batch = Samples(static_cast<int64_t>(1000 * i), count);
    const torch::Tensor loss = LossPerSample({}, model->forward(input.Images(batch, 0, count)),
                                             input.Labels(batch, 0, count))
                                   .sum();
    result.loss += loss.item<double>();
    (loss / static_cast<double>(total)).backward();
  }
  AddGradientsOf(*model, result.gradients);
  return result;
}

class PipelineStageTest : public ::testing::Test {
 protected:
  // One step on rank `rank`; its partition's gradients go into its pipeline's result.
  void RunRank(const Shape& shape, int32_t rank, int64_t total) {
    const GlooGroup group({.rank = rank,
                           .world_size = shape.partitions * shape.pipelines,
                           .partitions = shape.partitions,
                           .host = "127.0.0.1"},
                          store_, base::Clock::Real(), {});
    const PipelinePlace place = group.place();
    absl::StatusOr<RankModel> part = CutModel(FiveLayerVit(), place, kStagePicture);
    ASSERT_TRUE(part.ok()) << part.status();
    Optimizer optimizer({}, part->model->parameters());
    const std::unique_ptr<Device> device = MakeCpuDevice();
    const InputConverter input(kConversion, 3, false, *device);
    PhaseClock phases(base::Clock::Real());
    std::unique_ptr<DataParallel> data_parallel;
    if (group.gradients()) {
      data_parallel = std::make_unique<DataParallel>(*part->model, const_cast<GlooGroup&>(group),
                                                     base::Clock::Real());
    }
    api::Training training;
    training.parallelism = {.partitions = shape.partitions, .microbatches = shape.microbatches};
    PipelineStage stage({.model = *part->model,
                         .layout = *part->layout,
                         .group = group,
                         .data_parallel = data_parallel.get(),
                         .input = input,
                         .picture = kStagePicture,
                         .training = training,
                         .phases = phases});
    const int64_t count = shape.samples[static_cast<size_t>(place.pipeline)];
    // Data parallel training gives the mean over the pipelines.
    const double scale = static_cast<double>(shape.pipelines) / static_cast<double>(total);
    double loss = 0;
    for (int step = 0; step < 3; ++step) {
      optimizer.DropGradients();
      const feed::Batch batch =
          place.first() ? Samples(int64_t{1000} * place.pipeline, count) : feed::Batch();
      loss = stage.ComputeGradients(batch, count, scale);
    }
    const base::MutexLock lock(mutex_);
    AddGradientsOf(*part->model, results_[static_cast<size_t>(place.pipeline)].gradients);
    loss_ += loss;
  }

  void ExpectTheGradientsOfTheWholeModel(const Shape& shape) {
    {
      const base::MutexLock lock(mutex_);
      results_.resize(static_cast<size_t>(shape.pipelines));
    }
    int64_t total = 0;
    for (const int64_t count : shape.samples) total += count;
    {
      std::vector<std::jthread> threads;
      for (int32_t rank = 0; rank < shape.partitions * shape.pipelines; ++rank) {
        threads.emplace_back([this, &shape, rank, total] { RunRank(shape, rank, total); });
      }
    }
    const Result want = ByTheWholeModel(shape);
    const base::MutexLock lock(mutex_);
    EXPECT_NEAR(loss_, want.loss, 1e-5 * want.loss);
    for (const Result& result : results_) {
      ASSERT_EQ(result.gradients.size(), want.gradients.size());
      for (const auto& [name, gradient] : want.gradients) {
        const double size = gradient.abs().max().item<double>();
        const double difference = (result.gradients.at(name) - gradient).abs().max().item<double>();
        EXPECT_GT(size, 0) << name;
        EXPECT_LE(difference, 1e-5 * std::max(size, 1.0)) << name;
        EXPECT_LE(difference, 1e-4 * size) << name;
      }
    }
  }

  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  base::Mutex mutex_;
  std::vector<Result> results_ ABSL_GUARDED_BY(mutex_);
  double loss_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(PipelineStageTest, TwoPartitionsGiveTheGradientsOfTheWholeModel) {
  ExpectTheGradientsOfTheWholeModel({2, 1, 4, {16}});
}

TEST_F(PipelineStageTest, ThreePartitionsAndAnUnevenNumberOfSamples) {
  ExpectTheGradientsOfTheWholeModel({3, 1, 5, {13}});
}

TEST_F(PipelineStageTest, MorePartitionsThanMicrobatches) {
  ExpectTheGradientsOfTheWholeModel({4, 1, 2, {6}});
}

TEST_F(PipelineStageTest, OneMicrobatch) { ExpectTheGradientsOfTheWholeModel({2, 1, 1, {5}}); }

TEST_F(PipelineStageTest, TwoPipelinesShareTheSamples) {
  ExpectTheGradientsOfTheWholeModel({2, 2, 4, {8, 8}});
}

TEST_F(PipelineStageTest, AShortStepLeavesOnePipelineFewSamplesOrNone) {
  ExpectTheGradientsOfTheWholeModel({2, 2, 4, {3, 2}});
}

TEST_F(PipelineStageTest, APipelineWithoutSamplesTakesPart) {
  ExpectTheGradientsOfTheWholeModel({2, 2, 4, {1, 0}});
}

// Three steps of rank `rank` of two partitions and as many pipelines as there are `pipelines`.
// Whoever computes gradients holds those of the step before nowhere else.
void ExpectGradientsInMemoryOnce(std::shared_ptr<KeyValueStore> store, int32_t rank,
                                 int32_t pipelines) {
  TrainerOptions options;
  options.rank = rank;
  options.world_size = 2 * pipelines;
  options.input = kStagePicture;
  options.conversion = kConversion;
  api::Training& training = options.job.spec.training;
  training.batch_size_per_worker = 4;
  training.parallelism = {.partitions = 2, .microbatches = 4};
  GlooGroup group(
      {.rank = rank, .world_size = options.world_size, .partitions = 2, .host = "127.0.0.1"},
      std::move(store), base::Clock::Real(), {});
  absl::StatusOr<RankModel> part = CutModel(FiveLayerVit(), group.place(), kStagePicture);
  ASSERT_TRUE(part.ok()) << part.status();
  const std::vector<torch::Tensor> parameters = part->model->parameters();
  Optimizer optimizer({.momentum = 0.9}, parameters);
  Agreement agreement(&group, rank, options.world_size);
  PhaseClock phases(base::Clock::Real());
  const std::unique_ptr<Device> device = MakeCpuDevice();
  ModelRunner runner(options,
                     {.model = *part->model,
                      .optimizer = optimizer,
                      .group = &group,
                      .layout = part->layout.get(),
                      .agreement = agreement,
                      .phases = phases,
                      .device = *device},
                     base::Clock::Real());
  std::vector<torch::Storage> memory;
  int backwards = 0;
  const auto check = [&](torch::Tensor) {
    ++backwards;
    if (memory.empty()) return;
    const torch::Tensor& gradient = parameters[0].grad();
    if (pipelines == 1) {
      EXPECT_EQ(memory[0].use_count(), 1u);
    } else if (gradient.defined()) {
      EXPECT_EQ(gradient.storage().unsafeGetStorageImpl(), memory[0].unsafeGetStorageImpl());
    } else {
      ADD_FAILURE() << "a gradient outside of the buckets";
    }
  };
  parameters[0].register_hook(check);
  for (int step = 0; step < 3; ++step) {
    const feed::Batch batch = group.place().first() ? Samples(0, 8) : feed::Batch();
    runner.ComputeGradients(batch, 8, 0.1);
    EXPECT_EQ(backwards, 4 * (step + 1));
    if (pipelines == 1) {
      for (const torch::Storage& storage : memory) EXPECT_EQ(storage.use_count(), 1u);
    }
    optimizer.Step(0.01);
    memory.clear();
    for (const torch::Tensor& parameter : parameters) memory.push_back(parameter.grad().storage());
  }
}

TEST(PipelineMemoryTest, GradientsOfTheStepBeforeWereKept) {
  for (const int32_t pipelines : {1, 2}) {
    const auto store = std::make_shared<MemoryStore>();
    std::vector<std::jthread> threads;
    for (int32_t rank = 0; rank < 2 * pipelines; ++rank) {
      threads.emplace_back(
          [store, rank, pipelines] { ExpectGradientsInMemoryOnce(store, rank, pipelines); });
    }
  }
}

}  // namespace
}  // namespace hetero::train
