#include "api/unsupported_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hetero::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

HeteroTrainingJob Runnable() {
  HeteroTrainingJob job;
  job.spec.dataset.uri = "file:///data/train";
  job.spec.dataset.format = DatasetFormat::kIdx;
  job.spec.dataset.validation = DatasetSource{.uri = "file:///data/test"};
  job.spec.pipeline = {{.op = OperatorKind::kDecode}, {.op = OperatorKind::kNormalize}};
  job.spec.training.model.name = "resnet18";
  job.spec.training.batch_size_per_worker = 128;
  job.spec.output = Output{"file:///out"};
  job.spec.roles = {{.name = "head"},
                    {.name = "gpu", .type = RoleType::kGpuWorker, .gpus_per_replica = 2}};
  return job;
}

std::vector<std::string> Paths(const HeteroTrainingJob& job) {
  std::vector<std::string> paths;
  for (const FieldError& error : UnsupportedFields(job)) paths.push_back(error.path);
  return paths;
}

TEST(UnsupportedFieldsTest, NothingForAPlainJob) {
  EXPECT_TRUE(UnsupportedFields(Runnable()).empty());
}

TEST(UnsupportedFieldsTest, AnUnknownModelIsNamed) {
  HeteroTrainingJob job = Runnable();
  job.spec.training.model.name = "resnet99";
  EXPECT_THAT(Paths(job), ElementsAre("spec.training.model.name"));
  EXPECT_THAT(UnsupportedFields(job).front().reason, HasSubstr("not supported yet; "));
}

TEST(UnsupportedFieldsTest, PartitionsNeedCutPoints) {
  const std::string path = "spec.training.parallelism.partitions";
  HeteroTrainingJob job = Runnable();
  job.spec.training.parallelism = {.partitions = 2, .microbatches = 4};
  for (const char* name : {"mlp", "resnet18", "resnet50"}) {
    job.spec.training.model.name = name;
    EXPECT_THAT(Paths(job), ElementsAre(path));
    EXPECT_THAT(UnsupportedFields(job).front().reason, HasSubstr("has no cut points"));
  }
  job.spec.training.model = {.torch_script = "file:///model.pt"};
  EXPECT_THAT(Paths(job), ElementsAre(path));
  job.spec.training.model = {.name = "vit_b_16"};
  EXPECT_TRUE(UnsupportedFields(job).empty());
  job.spec.training.model = {.name = "net", .plugin = "/models/libnet.so"};
  EXPECT_TRUE(UnsupportedFields(job).empty());
}

TEST(UnsupportedFieldsTest, EveryFormatMayLieInABucket) {
  HeteroTrainingJob job = Runnable();
  for (const DatasetFormat format :
       {DatasetFormat::kAuto, DatasetFormat::kIdx, DatasetFormat::kImageFolder,
        DatasetFormat::kWebDataset, DatasetFormat::kTfRecord, DatasetFormat::kMds,
        DatasetFormat::kParquet, DatasetFormat::kRecordIo, DatasetFormat::kCifar10,
        DatasetFormat::kCifar100, DatasetFormat::kManifest}) {
    job.spec.dataset.uri = "s3://bucket/train";
    job.spec.dataset.format = format;
    EXPECT_TRUE(UnsupportedFields(job).empty());
  }
}

TEST(UnsupportedFieldsTest, OutputCheckpointsAndTheModelsFilesMayLieInABucket) {
  HeteroTrainingJob job = Runnable();
  job.spec.output->uri = "s3://bucket/out";
  job.spec.training.model.weights = "s3://bucket/w.safetensors";
  job.spec.training.checkpoint = Checkpoint{.uri = "s3://bucket/checkpoints"};
  EXPECT_TRUE(UnsupportedFields(job).empty());
  job.spec.training.model = {.torch_script = "s3://bucket/net.pt"};
  EXPECT_TRUE(UnsupportedFields(job).empty());
}

// It has no model of ours, and its checkpoints are its own.
TEST(UnsupportedFieldsTest, NothingForAScript) {
  HeteroTrainingJob job = Runnable();
  job.spec.training.model = {};
  job.spec.training.script = Script{.command = {"python3", "train.py"}};
  job.spec.training.checkpoint = Checkpoint{.uri = "s3://bucket/checkpoints"};
  EXPECT_TRUE(UnsupportedFields(job).empty());
}

TEST(UnsupportedFieldsTest, ReportsAllInManifestOrder) {
  HeteroTrainingJob job = Runnable();
  job.spec.training.parallelism.partitions = 2;
  job.spec.training.model = {.name = "resnet101"};
  EXPECT_THAT(Paths(job),
              ElementsAre("spec.training.model.name", "spec.training.parallelism.partitions"));
  EXPECT_EQ(UnsupportedFields(job).front().reason,
            "model \"resnet101\" is not supported yet; name one of mlp, resnet18, resnet50, "
            "vit_b_16, or give your own as torchScript or plugin");
}

// Training on the CPU (gpusPerReplica 0) or on GPUs is decided by the build, not here.
TEST(UnsupportedFieldsTest, GpusAreNotReported) {
  HeteroTrainingJob job = Runnable();
  job.spec.roles[1].gpus_per_replica = 0;
  EXPECT_TRUE(UnsupportedFields(job).empty());
}

}  // namespace
}  // namespace hetero::api
